"""A process may be killed at any moment: what it was replacing is the old or the new one, whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import builders
import kill_points
import polyseme
import task_files as toys
import training_story as story
from kill_points import killed_runs
from polyseme.elmo import Elmo
from polyseme.errors import FormatError
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.io.atomic import complete_write
from polyseme.tasks.experiment import Experiment
from polyseme.tasks.experiment import train as train_experiment
from polyseme.tasks.report import write_report as write_task_report
from polyseme.tasks.run_folder import PLAN, check_resumable, create_folder
from polyseme.tasks.task_model import TaskModel
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings
from polyseme.word_vectors import WordVectors, open_words

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
OLD = builders.random_model(builders.small_config(), seed=1)
NEW = builders.random_model(builders.small_config(), seed=2, words=builders.WORDS[::-1])


def words_and_weights(path: Path) -> tuple[str, tuple[str, ...]]:
    model = open_pretrained(path)
    return model.fingerprint(), () if model.vocab is None else tuple(model.vocab.words)


def restore(saved: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)


def check_kills(folder: Path, write: Callable[[], object], read: Callable[[], object]) -> None:
    """Kill `write` at every point: `read` sees the old or the new state, and `write` can be repeated."""
    saved = folder.with_name("saved")
    shutil.copytree(folder, saved)
    old = read()
    seen = []
    for _ in killed_runs(write):
        seen.append(read())
        write()
        restore(saved, folder)
    write()
    new = read()
    assert old != new
    assert seen
    assert all(state in (old, new) for state in seen)
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]  # no leftovers


@pytest.fixture(autouse=True)
def print_points(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Say how often the process was killed."""
    before = kill_points.points
    yield
    with capsys.disabled():
        print(f" {kill_points.points - before} kills", end="")


@pytest.mark.slow
@pytest.mark.skipif(kill_points.PRELOADED, reason="runs these tests")
def test_kills_before_every_write_of_every_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    compiler = shutil.which("cc")
    if compiler is None or not Path("/proc").is_dir():
        pytest.skip("needs a C compiler on Linux")
    library = tmp_path / "kill_before.so"
    source = Path(kill_points.__file__).with_suffix("").with_name("kill_before.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    tests = [__file__, str(Path(__file__).with_name("test_index_states.py"))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env=os.environ | {"LD_PRELOAD": str(library), "KILL_STEP": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    with capsys.disabled():
        print(done.stdout[-600:], end="")
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("to", ["native", "hdf5"])
def test_a_replaced_model_folder(to: str, tmp_path: Path):
    folder = tmp_path / "models"
    save_pretrained(OLD, folder / "m", to)
    check_kills(
        folder,
        lambda: save_pretrained(NEW, folder / "m", to, force=True),
        lambda: words_and_weights(folder / "m"),
    )


def test_replaced_hdf5_files_with_their_options_and_vocabulary(tmp_path: Path):
    folder = tmp_path / "models"
    weights = folder / "m_weights.hdf5"
    save_pretrained(OLD, weights, "hdf5")
    check_kills(
        folder,
        lambda: save_pretrained(NEW, weights, "hdf5", force=True),
        lambda: words_and_weights(weights),
    )


def test_a_replaced_task(tmp_path: Path):
    files, elmo = toys.write(tmp_path), toys.elmo()
    other = tmp_path / "other.csv"
    other.write_text("text,label\n" + "the good day,up\nthe bad day,down\n" * 8, encoding="utf-8")
    first, second = (make_task(elmo, file) for file in (files / "train.csv", other))
    folder = tmp_path / "task"
    first.save(folder)

    def read() -> tuple[tuple[str, ...], list[float]]:
        task = polyseme.load_task(folder)
        weights = task.network.parameters()  # type: ignore[attr-defined]
        return task.labels, [float(values.detach().sum()) for values in weights]

    check_kills(folder, lambda: second.write_into(folder), read)


def make_task(elmo: Elmo, file: Path) -> TaskModel:
    return polyseme.train("classification", elmo, train=file, settings=toys.EPOCH)


def test_a_run_that_was_killed_before_it_began_starts_with_the_same_call_or_with_resume(tmp_path: Path):
    config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=1"])
    text = story.write(tmp_path / "story.txt", 60)
    out = tmp_path / "model"

    def run(*, resume: bool = False) -> None:
        pretrain([text], out, config, resume=resume, workers=1)

    for point, _ in zip(killed_runs(run), range(12), strict=False):
        has_begun = (out / "run.json").exists()
        if point % 2 and not has_begun:
            run()
        elif out.exists():
            run(resume=True)
        shutil.rmtree(out, ignore_errors=True)


def test_a_task_that_was_killed_before_it_began_starts_with_the_same_call(tmp_path: Path):
    folder, plan = tmp_path / "task", {"examples": "x"}
    has_begun = []
    for _ in killed_runs(lambda: create_folder(folder, plan, force=False)):
        has_begun.append((folder / PLAN).exists())
        if not has_begun[-1]:
            create_folder(folder, plan, force=False)
        check_resumable(folder, plan)
        assert [entry.name for entry in folder.iterdir()] == [PLAN]
        shutil.rmtree(folder)
    assert has_begun.count(False) > 1


def index_words(folder: Path) -> tuple[int, list[str]]:
    """The usages of an index, and its words."""
    index = polyseme.open_index(folder / "index")
    return len(index), sorted(index.words.words)


def test_a_text_that_is_added_to_an_index(tmp_path: Path):
    folder, elmo = tmp_path / "indexes", toys.elmo()
    for name, text in (("a.txt", "the old bank\n"), ("b.txt", "the river rose\n")):
        (tmp_path / name).write_text(text * 3, encoding="utf-8")
    polyseme.index(elmo, tmp_path / "a.txt", folder / "index")
    saved = tmp_path / "saved"
    shutil.copytree(folder, saved)
    old = index_words(folder)

    def add() -> None:
        polyseme.index(elmo, tmp_path / "b.txt", folder / "index", add=True)

    add()
    new = index_words(folder)
    restore(saved, folder)
    points = 0
    for _ in killed_runs(add):
        points += 1
        try:
            assert index_words(folder) in (old, new)
        except FormatError as problem:
            assert "not finished" in str(problem)  # noqa: PT017
        add()
        assert index_words(folder) == new
        restore(saved, folder)
    assert points > 5


INDEXED = ("export", "export-parquet", "export-binary", "export-usages", "map", "map-image", "change")
FILES = {
    "cache": (
        "out.hdf5",
        lambda folder, out: polyseme.cache(folder / "m", folder / "vocab.txt", out, force=True),
    ),
    "embed": ("out.npz", lambda folder, out: polyseme.embed(folder / "m", folder / "t.txt", out, force=True)),
    "export": ("out.vec", lambda folder, out: polyseme.export(folder / "index", out, force=True)),
    "export-parquet": (
        "out.parquet",
        lambda folder, out: polyseme.export(folder / "index", to=out, force=True),
    ),
    "export-binary": ("out.bin", lambda folder, out: polyseme.export(folder / "index", out, force=True)),
    "export-usages": (
        "out.csv",
        lambda folder, out: polyseme.export(folder / "index", out, word="bank", force=True),
    ),
    "map-image": (
        "out.png",
        lambda folder, out: polyseme.map_usages(folder / "index", "bank", out, force=True),
    ),
    "change": (
        "out.png",
        lambda folder, out: polyseme.change(folder / "index", folder / "index", "bank", out=out, force=True),
    ),
    "map": ("out.html", lambda folder, out: polyseme.map_usages(folder / "index", "bank", out, force=True)),
}


@pytest.mark.parametrize("verb", FILES)
def test_a_replaced_file_is_the_old_or_the_new_one(verb: str, tmp_path: Path):
    text = "the river bank\nthe old bank\nthe bank failed\n" * 4
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nbank\n", encoding="utf-8")
    save_pretrained(OLD, tmp_path / "m")
    if verb in INDEXED:
        polyseme.index(tmp_path / "m", tmp_path / "t.txt", tmp_path / "index")
    name, write = FILES[verb]
    out = tmp_path / "outputs" / name
    out.parent.mkdir()
    write(tmp_path, out)
    new = out.read_bytes()
    points = 0
    for _ in killed_runs(lambda: write(tmp_path, out)):
        points += 1
        assert out.read_bytes() in (b"old", new)
        out.write_bytes(b"old")
    assert points >= 2
    write(tmp_path, out)
    assert out.read_bytes() == new
    assert [entry.name for entry in out.parent.iterdir()] == [name]


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder, which a reader opens first: that completes what a killed process began."""
    complete_write(folder)
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir())
        if entry.is_file() and not entry.name.startswith(".")
    }


def test_a_replaced_table_for_the_projector(tmp_path: Path):
    values = np.eye(3, dtype=np.float32)
    words = [
        WordVectors(tuple(texts), np.ones(3, np.int64), values, np.zeros(3, np.float32))
        for texts in ("abc", "xyz")
    ]
    folder = tmp_path / "outputs"
    folder.mkdir()
    polyseme.export(words[0], folder / "words")
    check_kills(
        folder,
        lambda: polyseme.export(words[1], folder / "words", force=True),
        lambda: read_folder(folder / "words"),
    )


def test_a_replaced_report_of_a_task(tmp_path: Path):
    files, elmo = toys.write(tmp_path), toys.elmo()
    out = tmp_path / "task"
    data = (files / "train.csv", files / "dev.csv", files / "test.csv")
    trained = []
    for seed in (1, 2):
        experiment = Experiment("classification", None, (*toys.EPOCH, f"train.seed={seed}"))
        trained.append(train_experiment(experiment, elmo, data, tmp_path / f"task{seed}"))
    out.mkdir()
    write_task_report(trained[0], out)
    check_kills(out, lambda: write_task_report(trained[1], out), lambda: read_folder(out))


def test_a_model_that_is_converted_keeps_its_word_vectors(tmp_path: Path):
    folder = tmp_path / "models"
    for name, model in (("old", OLD), ("new", NEW)):
        save_pretrained(model, tmp_path / name)
        polyseme.mean_vectors(Elmo(model), [["the", "bank"], ["river"]]).save(
            tmp_path / name / "words.safetensors"
        )
    polyseme.convert(tmp_path / "old", folder / "m")

    def read() -> tuple[object, float]:
        return words_and_weights(folder / "m"), float(open_words(folder / "m").vectors.sum())

    check_kills(folder, lambda: polyseme.convert(tmp_path / "new", folder / "m", force=True), read)


def test_a_book_whose_page_is_written_again_is_the_old_or_the_new_one(tmp_path: Path):
    text = tmp_path / "book.txt"
    text.write_text("Anna met Bruno . Bruno saw Anna .\n" * 60, encoding="utf-8")
    settings = ["train.epochs=1", "model.recurrent.cells=8", "model.recurrent.outputs=8"]
    folder = tmp_path / "book"
    aliases = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for path, name in zip(aliases, ("Anna\tAnn\n", "Bruno\tBru\n"), strict=True):
        path.write_text(name, encoding="utf-8")

    def write(number: int) -> object:
        return polyseme.book(text, folder, "tiny", settings=settings, alias=aliases[number])

    write(1)
    new = read_folder(folder)
    write(0)
    old = read_folder(folder)
    assert old.keys() == new.keys()
    seen = []
    for _, _ in zip(killed_runs(lambda: write(1), step=13), range(8), strict=False):
        seen.append(read_folder(folder))
        write(0)
    assert all(state in (old, new) for state in seen)


def test_a_book_continues_where_it_was_killed(tmp_path: Path):
    text = tmp_path / "book.txt"
    text.write_text("Anna met Bruno . Bruno saw Anna .\n" * 150, encoding="utf-8")
    out = tmp_path / "book"
    settings = ["train.epochs=1", "model.recurrent.cells=8", "model.recurrent.outputs=8"]

    def write() -> None:
        polyseme.book(text, out, "tiny", settings=settings)

    for _, _ in zip(killed_runs(write, step=17), range(5), strict=False):
        write()
        assert (out / "index.html").exists() or list(out.glob("*.html"))
        shutil.rmtree(out)
