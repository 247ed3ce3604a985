"""What reports say of layers and confusions; probes; settings that change a training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.tasks.metrics import LabelScore, Scores, classes
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.report import confusion_text, layer_text
from polyseme.tasks.settings import InputConfig, TaskConfig, TaskTrainConfig, read_task_config


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("input.tune=frozen", "Vectors 1: the mean of all layers, not trained; gamma 1.000."),
        ("input.layers=top", "Vectors 1: the top layer alone; gamma "),
        ("input.layers=2", "Vectors 1: layer 2 alone; gamma "),
    ],
)
def test_a_report_names_the_layer_that_is_read(
    setting: str, says: str, tmp_path: Path, files: Path, elmo: Elmo
):
    settings = (*toys.EPOCH, setting)
    out = tmp_path / "task"
    model = polyseme.train("classification", elmo, train=files / "train.csv", out=out, settings=settings)
    report = (out / "report.md").read_text(encoding="utf-8")
    assert says in report
    assert "layer 0: 1.000" not in report
    assert not (out / "layers.png").exists()
    assert says in layer_text(model.results[0], model.config.input)[1]


def test_a_report_says_why_there_is_no_confusion(tmp_path: Path, files: Path, elmo: Elmo):
    polyseme.train("tagging", elmo, train=files / "train.conll", out=tmp_path / "task", settings=toys.EPOCH)
    report = (tmp_path / "task" / "report.md").read_text(encoding="utf-8")
    assert "There is no confusion matrix: of spans" in report
    labels = tuple(f"label{n}" for n in range(50))
    many = confusion_text(classes(labels, labels, labels))
    assert many.startswith("The confusion is not drawn: 50 labels are more than 40.")
    assert confusion_text(classes(["a"], ["b"], ("a", "b"))) == ""
    assert confusion_text(Scores("Pearson", {"Pearson": 1.0})) == ""
    assert "several labels" in confusion_text(Scores("micro F1", {}, [LabelScore("a", 1, 1, 1, 1)]))


# ---- probes ----


@pytest.mark.parametrize(
    "setting", ["data.scheme=iob2", "head.crf=true", "input.words=9", " encoder.directions = 2"]
)
def test_what_would_make_a_probe_more_than_linear_is_refused(setting: str, files: Path, elmo: Elmo):
    with pytest.raises(UsageError, match=rf"{setting.split('=')[0].strip()} is fixed in probes"):
        polyseme.probe(elmo, train=files / "train.conll", settings=[setting])


def test_training_probes_points_to_probe(files: Path, elmo: Elmo):
    with pytest.raises(UsageError, match=r"polyseme\.probe\(model, train=…\)"):
        polyseme.train("probes", elmo, train=files / "train.conll")


def test_probe_takes_files_by_name(files: Path, elmo: Elmo):
    found = polyseme.probe(
        elmo, train=files / "train.conll", test=files / "test.conll", settings=["train.epochs=1"]
    )
    assert list(found.values) == ["layer 0", "layer 1", "layer 2", "mix"]
    assert found.part == "test"


# ---- settings ----


def test_balanced_classes_find_the_rare_one(tmp_path: Path, elmo: Elmo):
    # Of the odd texts one in four has the rare label: only where labels weigh alike is it the better guess.
    texts = [("rare" if n % 8 == 0 else "usual", "plain" if n % 2 else "odd") for n in range(160)]
    rows = "".join(f"{label},{text} film\n" for label, text in texts)
    (tmp_path / "a.csv").write_text("label,text\n" + rows, encoding="utf-8")
    (tmp_path / "b.csv").write_text("label,text\nrare,odd film\nusual,plain film\n", encoding="utf-8")
    answers = {}
    for weights in ("none", "balanced"):
        settings = (*toys.QUICK, "train.epochs=10", f"train.class_weights={weights}")
        model = polyseme.train(
            "classification", elmo, train=tmp_path / "a.csv", dev=tmp_path / "b.csv", settings=settings
        )
        answers[weights] = model.predict("odd film").answer  # type: ignore[union-attr]
    assert answers == {"none": "usual", "balanced": "rare"}


def test_weights_of_classes_stand_in_the_network(files: Path, elmo: Elmo):
    settings = (*toys.EPOCH, "train.class_weights=balanced")
    model = polyseme.train(
        "relations", elmo, train=files / "train.txt", dev=files / "dev.txt", settings=settings
    )
    golds = [example.gold for example in model.read(files / "train.txt")]
    wanted = [len(golds) / (2 * golds.count(label)) for label in model.labels]
    assert model.network.weights.tolist() == pytest.approx(wanted)  # type: ignore[union-attr, operator]


def test_batch_norm_bears_a_batch_of_one_token():
    config = InputConfig(elmo="none", words=4, batch_norm=True)
    reader = TokenReader(config, ["a"], (), None)
    inputs = Featurizer(reader, None).train()
    x, _ = inputs(reader.read([("a",)], torch.device("cpu")))
    assert x.shape == (1, 1, 4)
    assert torch.isfinite(x).all()


def test_texts_of_one_token_are_learned_with_batch_norm(tmp_path: Path, elmo: Elmo):
    rows = "".join(f"{n % 2},{'good' if n % 2 else 'bad'}\n" for n in range(9))
    (tmp_path / "a.csv").write_text("label,text\n" + rows, encoding="utf-8")
    config = "classification-joined"
    assert read_task_config("classification", config).input.batch_norm
    settings = ["train.epochs=1", "train.batch=8", "encoder.size=8"]
    polyseme.train(
        "classification",
        elmo,
        train=tmp_path / "a.csv",
        dev=tmp_path / "a.csv",
        config=config,
        settings=settings,
    )


def test_the_docs_name_every_setting_of_training_with_its_default():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(\w+)` \| `([^|`]*)` \|", page, re.MULTILINE))
    wanted = {name: json.dumps(field.default) for name, field in TaskTrainConfig.model_fields.items()}
    assert shown == wanted


def test_the_docs_name_all_other_settings_with_their_defaults():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    row = r"^\| `((?:data|input|encoder|head)\.\w+)` \| `([^`]*)` \|"
    wanted = {
        f"{section}.{name}": json.dumps(field.default)
        for section in ("data", "input", "encoder", "head")
        for name, field in type(getattr(TaskConfig(task="tagging"), section)).model_fields.items()
    }
    shown = {name: default.replace("\\|", "|") for name, default in re.findall(row, page, re.MULTILINE)}
    assert shown == wanted
