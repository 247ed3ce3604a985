"""The folder of an experiment: what `force` replaces, what can be resumed, what the folder contains."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.tasks import static_vectors
from polyseme.tasks.task_model import TaskModel
from polyseme.tasks.vector_store import VectorStore


def train(elmo: Elmo, files: Path, out: Path, *settings: str, **named: object) -> TaskModel:
    arguments = {"train": files / "train.csv", "dev": files / "dev.csv", "test": files / "test.csv"} | named
    return polyseme.train("classification", elmo, out=out, settings=(*toys.EPOCH, *settings), **arguments)  # type: ignore[arg-type]


# ---- force ----


def test_force_does_not_touch_the_folders_of_the_user(tmp_path: Path, files: Path, elmo: Elmo):
    for name in ("runs", "vectors"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "dear.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "mine" / "plan.json").write_text('{"monday": "work"}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"plan\.json, runs, vectors came from no training of Polyseme"):
        train(elmo, files, tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "runs" / "dear.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "mine" / "vectors" / "dear.txt").exists()


def test_force_does_not_replace_a_user_folder_in_a_saved_task(tmp_path: Path, files: Path, elmo: Elmo):
    polyseme.train("classification", elmo, train=files / "train.csv", settings=toys.EPOCH).save(
        tmp_path / "task"
    )
    (tmp_path / "task" / "runs").mkdir()
    with pytest.raises(UsageError, match="runs came from no training"):
        train(elmo, files, tmp_path / "task", force=True)


def test_force_replaces_results_and_keeps_other_files(tmp_path: Path, files: Path, elmo: Elmo):
    out = tmp_path / "task"
    train(elmo, files, out, curve=[0.5])
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    assert (out / "curve.png").exists()
    train(elmo, files, out, force=True, without_elmo=True)
    assert (out / "notes.txt").exists()
    removed = {"curve.png", "layers.png", "elmo", "vectors"}
    assert not removed & {file.name for file in out.iterdir()}
    assert [folder.name for folder in (out / "runs").iterdir()] == ["without-1-1"]
    polyseme.load_task(out).predict("good")


# ---- resume ----


def test_a_run_is_not_resumed_with_another_model(tmp_path: Path, files: Path, elmo: Elmo):
    train(elmo, files, tmp_path / "task")
    other_elmo = Elmo(toys.random_model(toys.small_config(), seed=7))
    with pytest.raises(UsageError, match=r"other model\. Resume with the same"):
        train(other_elmo, files, tmp_path / "task", resume=True)


def test_a_run_is_not_resumed_with_other_texts(tmp_path: Path, files: Path, elmo: Elmo):
    data = shutil.copy(files / "train.csv", tmp_path / "train.csv")
    train(elmo, files, tmp_path / "task", train=data)
    text = Path(data).read_text(encoding="utf-8")
    Path(data).write_text(text.replace("film", "plot"), encoding="utf-8")  # as many tokens and labels
    with pytest.raises(UsageError, match="other examples"):
        train(elmo, files, tmp_path / "task", train=data, resume=True)


def test_a_run_of_another_version_must_be_started_again(tmp_path: Path, files: Path, elmo: Elmo):
    train(elmo, files, tmp_path / "task")
    (tmp_path / "task" / "plan.json").write_text('{"plan": "0123"}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"another version of Polyseme\. Start again with `force=True`"):
        train(elmo, files, tmp_path / "task", resume=True)
    train(elmo, files, tmp_path / "task", force=True)


def test_resuming_a_finished_run_does_not_embed_again(
    tmp_path: Path, files: Path, elmo: Elmo, monkeypatch: pytest.MonkeyPatch
):
    first = train(elmo, files, tmp_path / "task")
    monkeypatch.setattr(VectorStore, "_write", lambda *arguments: pytest.fail("embedded again"))
    resumed = train(elmo, files, tmp_path / "task", resume=True)
    assert resumed.results == first.results


def test_the_report_does_not_embed_the_texts_again(
    tmp_path: Path, files: Path, elmo: Elmo, monkeypatch: pytest.MonkeyPatch
):
    computed: list[int] = []
    embed_tokens = Elmo.embed_tokens

    def count_and_embed(self: Elmo, sentences: list[list[str]], *more: object) -> object:
        computed.append(len(sentences))
        return embed_tokens(self, sentences, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Elmo, "embed_tokens", count_and_embed)
    train(elmo, files, tmp_path / "task")
    assert "with ELMo | 64 | 1 |" in (tmp_path / "task" / "report.md").read_text(encoding="utf-8")
    assert sum(computed) <= 64 + 24 + 24


def test_stored_vectors_are_shared_between_calls(
    tmp_path: Path, files: Path, elmo: Elmo, monkeypatch: pytest.MonkeyPatch
):
    cache = tmp_path / "vectors"
    train(elmo, files, tmp_path / "one", vectors=cache)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(VectorStore, "_write", lambda *arguments: pytest.fail("embedded again"))
    train(elmo, files, tmp_path / "two", "encoder.size=8", vectors=cache)
    assert len(list(cache.iterdir())) == 1
    assert not (tmp_path / "two" / "vectors").exists()


# ---- static vectors ----


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rows = "".join(f"{word} {1 if word in toys.GOOD else -1} 0.5 0\n" for word in [*toys.GOOD, *toys.BAD])
    (tmp_path / "v.txt").write_text(rows, encoding="utf-8")
    return tmp_path / "v.txt"


def test_static_vectors_are_copied_to_the_folder(tmp_path: Path, files: Path, elmo: Elmo, vectors: Path):
    model = train(elmo, files, tmp_path / "task", f"input.static={vectors}")
    expected = model.predict("good")
    vectors.unlink()
    shutil.move(tmp_path / "task", tmp_path / "moved")
    assert str(tmp_path) not in (tmp_path / "moved" / "task.json").read_text(encoding="utf-8")
    loaded = polyseme.load_task(tmp_path / "moved")
    assert loaded.predict("good") == expected
    loaded.save(tmp_path / "saved")
    assert polyseme.load_task(tmp_path / "saved").predict("good") == expected
    (tmp_path / "saved" / static_vectors.COPY).write_text("good 1 2 3\n", encoding="utf-8")
    with pytest.raises(FormatError, match="holds other static vectors"):
        polyseme.load_task(tmp_path / "saved")


def test_missing_static_vectors_are_reported_if_they_were_not_copied(
    tmp_path: Path, files: Path, elmo: Elmo, vectors: Path
):
    model = train(elmo, files, tmp_path / "one", f"input.static={vectors}", without_elmo=True)
    model.save(tmp_path / "task", copy=False)
    assert not (tmp_path / "task" / static_vectors.COPY).exists()
    polyseme.load_task(tmp_path / "task")
    moved = vectors.rename(tmp_path / "moved.txt")
    with pytest.raises(FormatError, match=r"static vectors are missing: there is no .*v\.txt"):
        polyseme.load_task(tmp_path / "task")
    assert polyseme.load_task(tmp_path / "task", static=moved).predict("good") == model.predict("good")


def test_a_folder_of_an_earlier_version_opens_with_the_path_of_its_vectors(
    tmp_path: Path, files: Path, elmo: Elmo, vectors: Path
):
    model = train(elmo, files, tmp_path / "one", f"input.static={vectors}")
    model.save(tmp_path / "task", copy=True)
    values = json.loads((tmp_path / "task" / "task.json").read_text(encoding="utf-8"))
    del values["static"]
    values["settings"]["input"]["static"] = str(vectors)
    (tmp_path / "task" / "task.json").write_text(json.dumps(values), encoding="utf-8")
    assert polyseme.load_task(tmp_path / "task").predict("good") == model.predict("good")


def test_static_vectors_are_read_once_for_all_batches(
    tmp_path: Path, files: Path, elmo: Elmo, vectors: Path, monkeypatch: pytest.MonkeyPatch
):
    train(elmo, files, tmp_path / "task", f"input.static={vectors}")
    model = polyseme.load_task(tmp_path / "task")
    read: list[object] = []
    read_vectors: Callable[..., object] = static_vectors.read_vectors
    monkeypatch.setattr(
        static_vectors, "read_vectors", lambda *a, **k: read.append(a) or read_vectors(*a, **k)
    )
    rows = "".join(f"pos,word{n} film\n" for n in range(200))  # four batches, each with new words
    (tmp_path / "t.csv").write_text("label,text\n" + rows, encoding="utf-8")
    model.evaluate(tmp_path / "t.csv")
    assert len(read) == 1
