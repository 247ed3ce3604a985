"""Every task can be trained, evaluated, saved and loaded."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.io.progress import ProgressEvent
from polyseme.tasks.experiment import Experiment
from polyseme.tasks.probes.probes import probe
from polyseme.tasks.settings import list_task_presets
from polyseme.tasks.task_model import TaskModel
from polyseme.tasks.tfidf import NAME as TFIDF
from polyseme.tasks.trainable import as_module
from polyseme.training.loop import StoppedError

FILES = {"classification": "csv", "tagging": "conll", "pairs": "jsonl", "relations": "txt"}
QUESTIONS = {
    "classification": "the film is good",
    "tagging": "the film is good",
    "pairs": ("the film is good", "a great story"),
    "relations": "the <e1>good</e1> film is <e2>bad</e2>.",
}


def train(task: str, elmo: Elmo | Path, files: Path, *settings: str, **named: object) -> TaskModel:
    ending = FILES[task]
    arguments = {part: files / f"{part}.{ending}" for part in ("train", "dev", "test")} | named
    return polyseme.train(task, elmo, settings=(*toys.QUICK, *settings), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("task", "minimum"), [("classification", 0.9), ("tagging", 0.9), ("relations", 0.9)])
def test_a_task_is_learned(task: str, minimum: float, files: Path, elmo: Elmo):
    model = train(task, elmo, files)
    (result,) = model.results
    assert result.test[result.main] >= minimum
    assert model.evaluate(files / f"test.{FILES[task]}").value == pytest.approx(result.test[result.main])
    assert torch.tensor(model.mix.shares).sum().item() == pytest.approx(1)


def test_numbers_of_pairs_are_learned(files: Path, elmo: Elmo):
    settings = ("head.answer=number", "data.label=score", "train.epochs=30")
    model = train("pairs", elmo, files, *settings)
    assert model.results[0].test["Pearson"] > 0.6
    assert 0 < model.predict(("the film is good", "a great story")).number < 6


@pytest.mark.parametrize("task", FILES)
def test_a_task_is_saved_and_loaded(task: str, tmp_path: Path, files: Path, elmo: Elmo):
    model = train(task, elmo, files, "train.epochs=1", out=tmp_path / "task")
    loaded = polyseme.load_task(tmp_path / "task")
    assert loaded.labels == model.labels
    question = QUESTIONS[task]
    assert loaded.predict(question) == model.predict(question)
    path = files / f"test.{FILES[task]}"
    assert polyseme.evaluate(tmp_path / "task", path).metrics == model.evaluate(path).metrics
    lines = list(polyseme.predict(loaded, path))
    predictions = loaded.predict_examples(loaded.read(path))
    assert list(map(json.loads, lines)) == [prediction.as_dict() for prediction in predictions]
    names = {file.name for file in (tmp_path / "task").iterdir()}
    assert names >= {
        "task.json",
        "head.safetensors",
        "elmo",
        "report.md",
        "report.json",
        "README.md",
        "layers.png",
    }
    assert "vectors" not in names


@pytest.mark.parametrize(
    "preset", [name for name in list_task_presets() if name.startswith("classification-")]
)
def test_every_classification_preset_can_be_trained(preset: str, tmp_path: Path, files: Path, elmo: Elmo):
    settings = ["train.epochs=1", "encoder.size=8"]
    train, dev = files / "train.csv", files / "dev.csv"
    model = polyseme.train("classification", elmo, train=train, dev=dev, config=preset, settings=settings)
    model.save(tmp_path / "task")
    assert polyseme.load_task(tmp_path / "task").predict("a film") == model.predict("a film")


@pytest.mark.parametrize("elmo_at", ["output", "both"])
def test_elmo_can_be_used_at_the_output_and_at_both_ends(elmo_at: str, files: Path, elmo: Elmo):
    model = train("classification", elmo, files, f"input.elmo={elmo_at}", "train.epochs=1")
    assert len(model.mixes) == (2 if elmo_at == "both" else 1)
    before = model.predict("a good film").probability
    for mix in model.mixes:
        gamma = mix.gamma.detach().clone()
        mix.gamma.data.zero_()
        assert model.predict("a good film").probability != before
        mix.gamma.data.copy_(gamma)


def test_the_l2_term_keeps_the_weights_of_layers_similar(files: Path, elmo: Elmo):
    free, regularized = (
        train("classification", elmo, files, f"input.mix_l2={weight}", "train.epochs=5").mix.shares
        for weight in (0, 10)
    )
    assert max(regularized) - min(regularized) < (max(free) - min(free)) / 2


def test_training_stops_early_and_keeps_the_best_epoch(files: Path, elmo: Elmo):
    settings = ("train.rate=1e-9", "train.epochs=9", "train.patience=2")
    (result,) = train("classification", elmo, files, *settings, "train.min_steps=0").results
    assert (result.epochs, result.converged) == (3, True)
    (result,) = train("classification", elmo, files, *settings).results  # too few steps to lose patience
    assert (result.epochs, result.converged) == (9, False)


def test_gradients_of_several_batches_are_accumulated(files: Path, elmo: Elmo):
    steps = {}
    for count in (1, 2):
        events: list[ProgressEvent] = []
        train(
            "classification",
            elmo,
            files,
            "train.epochs=1",
            "train.batch=8",
            f"train.accumulate={count}",
            progress=events.append,
        )
        steps[count] = sum(event.detail.startswith("loss") for event in events)
    assert steps == {1: 8, 2: 4}


def test_comparing_is_refused_if_settings_turn_elmo_off(tmp_path: Path, files: Path, elmo: Elmo):
    model = train("classification", elmo, files, "input.elmo=none", "train.epochs=1")
    assert not model.results[0].run.elmo
    with pytest.raises(UsageError, match="there is no ELMo to compare with"):
        train("classification", elmo, files, "input.elmo=none", "train.epochs=1", compare=True)


def test_training_that_could_not_be_saved_is_refused_before_it_starts(
    tmp_path: Path, files: Path, elmo: Elmo
):
    with pytest.raises(UsageError, match="must have a path"):
        train("classification", elmo, files, "train.epochs=1", out=tmp_path / "task", copy=False)
    with pytest.raises(UsageError, match=r"train\.device is cuda:99"):
        train("classification", elmo, files, "train.device=cuda:99", out=tmp_path / "task")
    assert not (tmp_path / "task").exists()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file"):
        polyseme.probe(elmo, train=files / "train.conll", out=tmp_path / "file", force=True)


def test_a_fine_tuned_elmo_is_saved_with_its_new_weights(tmp_path: Path, files: Path, elmo: Elmo):
    model = train("tagging", elmo, files, "input.tune=full", "train.epochs=2", out=tmp_path / "task")
    tuned = polyseme.load(tmp_path / "task" / "elmo")
    old, new = (e.embed([["good"]])[0] for e in (elmo, tuned))
    assert not (abs(old - new) < 1e-6).all()
    assert polyseme.load_task(tmp_path / "task").predict("a good film") == model.predict("a good film")


def test_a_frozen_mix_stays_the_same_and_a_trained_mix_changes(files: Path, elmo: Elmo):
    frozen = train("classification", elmo, files, "input.tune=frozen", "train.epochs=1")
    assert frozen.mix.shares == [1.0]
    unscaled = train("classification", elmo, files, "input.tune=weights", "train.epochs=3")
    assert float(unscaled.mix.gamma) == 1
    assert max(unscaled.mix.shares) - min(unscaled.mix.shares) > 1e-4
    trained = train("classification", elmo, files, "train.epochs=3")
    assert max(trained.mix.shares) - min(trained.mix.shares) > 1e-4


def test_a_model_moves_between_devices(files: Path, elmo: Elmo, tmp_path: Path):
    model = train("classification", elmo, files, "train.epochs=1", out=tmp_path / "task")
    expected = model.predict("a good film")
    assert model.to("cpu") is model
    assert model.predict("a good film") == expected
    loaded = polyseme.load_task(tmp_path / "task", device="cpu")
    assert loaded.predict("a good film") == expected
    for move in (model.to, lambda device: polyseme.load_task(tmp_path / "task", device=device)):
        with pytest.raises(UsageError, match="cuda:99"):
            move("cuda:99")


def test_the_same_seed_gives_the_same_model(files: Path, elmo: Elmo):
    models = [train("tagging", elmo, files, "train.epochs=2") for _ in range(2)]
    for a, b in zip(*(as_module(model.network).parameters() for model in models), strict=True):
        assert torch.equal(a, b)


def test_the_report_compares_seeds_sizes_and_training_without_elmo(tmp_path: Path, files: Path, elmo: Elmo):
    model = train(
        "classification", elmo, files, "train.epochs=2", out=tmp_path / "task", runs=2, curve=[0.25]
    )
    assert len(model.results) == 8  # two sizes, with and without, two seeds
    assert {result.examples for result in model.results} == {16, 64}
    assert {(result.examples, result.epochs) for result in model.results} == {(16, 4), (64, 2)}  # 2 / √0.25
    report = (tmp_path / "task" / "report.md").read_text(encoding="utf-8")
    assert "with ELMo, 0.25 of the examples | 16 | 2 |" in report
    assert "without ELMo | 64 | 2 |" in report
    assert re.search(r"ELMo (raises|lowers) accuracy on test by [\d.]+ and (cuts|raises) the error", report)
    assert "| TF-IDF + logistic regression |" in report
    assert "Use " in report
    assert (tmp_path / "task" / "curve.png").stat().st_size > 5000
    assert (tmp_path / "task" / "confusion.png").stat().st_size > 3000


def test_a_model_without_elmo_has_no_mix(tmp_path: Path, files: Path, elmo: Elmo):
    model = train("classification", elmo, files, "train.epochs=1", out=tmp_path / "task", without_elmo=True)
    assert model.mixes == []
    assert not (tmp_path / "task" / "elmo").exists()
    assert polyseme.load_task(tmp_path / "task").predict("good") == model.predict("good")
    with pytest.raises(UsageError, match="no ELMo"):
        _ = model.mix


def test_finished_runs_are_not_trained_again(tmp_path: Path, files: Path, elmo: Elmo):
    first = train("classification", elmo, files, "train.epochs=1", out=tmp_path / "task", compare=True)
    assert [r.run.seed for r in first.results] == [1, 2, 3, 1, 2, 3]  # with ELMo, then without
    result = tmp_path / "task" / "runs" / "without-1-1" / "result.json"
    result.write_text(result.read_text(encoding="utf-8")[:40], encoding="utf-8")  # truncated
    events: list[ProgressEvent] = []
    resumed = train(
        "classification",
        elmo,
        files,
        "train.epochs=1",
        out=tmp_path / "task",
        compare=True,
        resume=True,
        progress=events.append,
    )
    assert {event.stage for event in events} - {"vectors", "predicting", TFIDF} == {"without ELMo, seed 1"}
    assert [r.test for r in resumed.results] == [r.test for r in first.results]
    with pytest.raises(UsageError, match="other settings"):
        train("classification", elmo, files, "train.epochs=2", out=tmp_path / "task", resume=True)
    with pytest.raises(UsageError, match="exists already"):
        train("classification", elmo, files, "train.epochs=1", out=tmp_path / "task")


def test_an_elmo_that_was_not_copied_is_found_by_its_path(tmp_path: Path, files: Path, elmo: Elmo):
    save_pretrained(elmo.model, tmp_path / "model")
    settings = "train.epochs=1"
    train("classification", tmp_path / "model", files, settings, out=tmp_path / "task", copy=False)
    assert not (tmp_path / "task" / "elmo").exists()
    polyseme.load_task(tmp_path / "task")
    shutil.move(tmp_path / "model", tmp_path / "moved")
    with pytest.raises(FormatError, match=r"its ELMo is missing: there is no .*model"):
        polyseme.load_task(tmp_path / "task")
    polyseme.load_task(tmp_path / "task", tmp_path / "moved")
    other_elmo = Elmo(elmo.model)
    other_elmo.model = toys.random_model(toys.small_config(), seed=7)
    with pytest.raises(FormatError, match="another ELMo"):
        polyseme.load_task(tmp_path / "task", other_elmo)


def test_probe_scores_each_layer_and_the_mix(tmp_path: Path, files: Path, elmo: Elmo):
    paths = (files / "train.conll", files / "dev.conll", files / "test.conll")
    scores = probe(elmo, paths, tmp_path / "probes", settings=["train.epochs=2"])
    assert list(scores.values) == ["layer 0", "layer 1", "layer 2", "mix"]
    assert scores.baseline > 0.9  # each word has one tag in these files
    assert (tmp_path / "probes" / "probes.png").stat().st_size > 3000
    assert "| layer 2 |" in (tmp_path / "probes" / "probes.md").read_text(encoding="utf-8")


def test_static_vectors_and_characters_are_added_to_the_input(tmp_path: Path, files: Path, elmo: Elmo):
    words = [*toys.GOOD, *toys.BAD]
    rows = "".join(f"{word} {1 if word in toys.GOOD else -1} 0.5 0\n" for word in words)
    (tmp_path / "v.txt").write_text(rows, encoding="utf-8")
    settings = ("input.static=" + str(tmp_path / "v.txt"), "input.chars=8", "train.epochs=2")
    model = train("classification", elmo, files, *settings, out=tmp_path / "task")
    assert model.featurizer.size == 16 + 8 + 3 + elmo.config.size
    assert polyseme.load_task(tmp_path / "task").predict("good") == model.predict("good")


def test_texts_may_have_several_labels(tmp_path: Path, elmo: Elmo):
    rows = [f"good {'bad ' if n % 2 else ''}film\t{'g|b' if n % 2 else 'g'}" for n in range(40)]
    (tmp_path / "m.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    settings = (*toys.QUICK, "data.multi=true", "train.epochs=10")
    model = polyseme.train("classification", elmo, train=tmp_path / "m.tsv", settings=settings)
    assert model.results[0].dev["micro F1"] > 0.9
    assert set(model.predict("good bad film").labels) == {"g", "b"}


@pytest.mark.parametrize("named", [False, True])
def test_a_stopped_training_says_whether_it_was_saved(tmp_path: Path, files: Path, elmo: Elmo, named: bool):
    def stop(event: ProgressEvent) -> None:
        if event.message and "epoch 1" in event.message:
            signal.raise_signal(signal.SIGINT)

    out = {"out": tmp_path / "out"} if named else {}
    with pytest.raises(StoppedError) as stopped:
        train("classification", elmo, files, progress=stop, **out)
    expected = (
        "the run is saved. Continue with `resume=True`." if named else "Nothing was saved: it had no `out`."
    )
    assert str(stopped.value).endswith(expected)


def test_each_preset_belongs_to_the_task_in_its_name():
    for name in list_task_presets():
        assert Experiment(name.partition("-")[0], name).make_task().name == name.partition("-")[0]
