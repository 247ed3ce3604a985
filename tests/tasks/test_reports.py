"""Reports of layers and confusions, probes, and settings that change the training."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.tasks.classification.settings import ClassificationSettings
from polyseme.tasks.metrics import LabelScore, Scores, score_classes
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.report import describe_mixes, explain_confusion
from polyseme.tasks.settings import DataSettings, InputSettings, read_task_settings
from polyseme.tasks.table import TASKS, find_task


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("input.tune=frozen", "Vectors 1: the mean of all layers, not trained; gamma 1.000."),
        ("input.layers=top", "Vectors 1: the top layer; gamma "),
        ("input.layers=2", "Vectors 1: layer 2; gamma "),
    ],
)
def test_a_report_names_the_layer_that_is_used(
    setting: str, message: str, tmp_path: Path, files: Path, elmo: Elmo
):
    settings = (*toys.EPOCH, setting)
    out = tmp_path / "task"
    model = polyseme.train("classification", elmo, train=files / "train.csv", out=out, settings=settings)
    report = (out / "report.md").read_text(encoding="utf-8")
    assert message in report
    assert "layer 0: 1.000" not in report
    assert not (out / "layers.png").exists()
    assert message in describe_mixes(model.results[0], model.settings.input)[1]


def test_a_report_says_why_there_is_no_confusion_matrix(tmp_path: Path, files: Path, elmo: Elmo):
    polyseme.train("tagging", elmo, train=files / "train.conll", out=tmp_path / "task", settings=toys.EPOCH)
    report = (tmp_path / "task" / "report.md").read_text(encoding="utf-8")
    assert "There is no confusion matrix: spans" in report
    labels = tuple(f"label{n}" for n in range(50))
    text = explain_confusion(score_classes(labels, labels, labels))
    assert text.startswith("The confusion matrix is not plotted: 50 labels are more than 40.")
    assert explain_confusion(score_classes(["a"], ["b"], ("a", "b"))) == ""
    assert explain_confusion(Scores("Pearson", {"Pearson": 1.0})) == ""
    assert "several labels" in explain_confusion(Scores("micro F1", {}, [LabelScore("a", 1, 1, 1, 1)]))


# ---- probes ----


@pytest.mark.parametrize(
    "setting", ["data.scheme=iob2", "head.crf=true", "input.words=9", " encoder.directions = 2"]
)
def test_settings_that_make_a_probe_more_than_linear_are_refused(setting: str, files: Path, elmo: Elmo):
    with pytest.raises(UsageError, match=rf"{setting.split('=')[0].strip()} is fixed in probes"):
        polyseme.probe(elmo, train=files / "train.conll", settings=[setting])


def test_train_with_the_task_probes_advises_to_use_probe(files: Path, elmo: Elmo):
    with pytest.raises(UsageError, match=r"polyseme\.probe\(model, train=…\)"):
        polyseme.train("probes", elmo, train=files / "train.conll")


def test_probe_takes_files_by_name(files: Path, elmo: Elmo):
    scores = polyseme.probe(
        elmo, train=files / "train.conll", test=files / "test.conll", settings=["train.epochs=1"]
    )
    assert list(scores.values) == ["layer 0", "layer 1", "layer 2", "mix"]
    assert scores.part == "test"


# ---- settings ----


def test_balanced_class_weights_favour_the_rare_label(tmp_path: Path, elmo: Elmo):
    # One in four odd texts has the rare label, so it is the better guess only if all labels weigh the same.
    texts = [("rare" if n % 8 == 0 else "usual", "plain" if n % 2 else "odd") for n in range(160)]
    rows = "".join(f"{label},{text} film\n" for label, text in texts)
    (tmp_path / "a.csv").write_text("label,text\n" + rows, encoding="utf-8")
    (tmp_path / "b.csv").write_text("label,text\nrare,odd film\nusual,plain film\n", encoding="utf-8")
    labels = {}
    for weights in ("none", "balanced"):
        settings = (*toys.QUICK, "train.epochs=10", f"train.class_weights={weights}")
        model = polyseme.train(
            "classification", elmo, train=tmp_path / "a.csv", dev=tmp_path / "b.csv", settings=settings
        )
        labels[weights] = model.predict("odd film").label
    assert labels == {"none": "usual", "balanced": "rare"}


def test_the_network_has_the_class_weights(files: Path, elmo: Elmo):
    settings = (*toys.EPOCH, "train.class_weights=balanced")
    model = polyseme.train(
        "relations", elmo, train=files / "train.txt", dev=files / "dev.txt", settings=settings
    )
    labels = [example.label for example in model.read(files / "train.txt")]  # type: ignore[attr-defined]
    expected = [len(labels) / (2 * labels.count(label)) for label in model.labels]
    assert model.network.weights.tolist() == pytest.approx(expected)  # type: ignore[attr-defined]


def test_batch_norm_works_with_a_batch_of_one_token():
    config = InputSettings(elmo="none", words=4, batch_norm=True)
    reader = TokenReader(config, ["a"], (), None)
    featurizer = Featurizer(reader, None).train()
    x, _ = featurizer(reader.read([("a",)], torch.device("cpu")))
    assert x.shape == (1, 1, 4)
    assert torch.isfinite(x).all()


def test_training_with_batch_norm_works_on_texts_of_one_token(tmp_path: Path, elmo: Elmo):
    rows = "".join(f"{n % 2},{'good' if n % 2 else 'bad'}\n" for n in range(9))
    (tmp_path / "a.csv").write_text("label,text\n" + rows, encoding="utf-8")
    config = "classification-joined"
    assert read_task_settings("classification", ClassificationSettings, config).input.batch_norm
    settings = ["train.epochs=1", "train.batch=8", "encoder.size=8"]
    polyseme.train(
        "classification",
        elmo,
        train=tmp_path / "a.csv",
        dev=tmp_path / "a.csv",
        config=config,
        settings=settings,
    )


OWN_PAGES = (
    "roles",
    "coref",
    "answers",
    "translate",
    "summarise",
)  # tasks whose data, encoder and head are documented on a page of their own


def documented_settings(pattern: str, page_name: str = "tasks") -> dict[str, str]:
    """Names and defaults in the tables of a page."""
    page = (Path(__file__).parents[2] / "docs" / f"{page_name}.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `({pattern})` \| `([^`]*)` \|", page, re.MULTILINE)
    return {name: default.replace("\\|", "|") for name, default in rows}


def all_settings(*sections: str, tasks: Iterable[str] = TASKS) -> dict[str, str]:
    """Names and defaults of these sections in these tasks."""
    return {
        f"{section}.{name}": json.dumps(field.default)
        for task in map(find_task, tasks)
        for section in sections
        for name, field in type(task.settings_type.model_fields[section].default).model_fields.items()
    }


def test_the_docs_list_every_training_setting_with_its_default():
    settings = all_settings("train", tasks=[task for task in TASKS if task not in OWN_PAGES])
    assert documented_settings(r"\w+") == {name.partition(".")[2]: value for name, value in settings.items()}


def test_the_docs_list_all_other_settings_with_their_defaults():
    documented = documented_settings(r"(?:data|input|encoder|head)\.\w+")
    tasks = [task for task in TASKS if task not in OWN_PAGES]
    assert documented == all_settings("data", "input", "encoder", "head", tasks=tasks)


@pytest.mark.parametrize("task", OWN_PAGES)
def test_the_page_of_a_task_lists_its_own_settings_with_their_defaults(task: str):
    shared = {f"data.{name}": json.dumps(f.default) for name, f in DataSettings.model_fields.items()}
    settings = all_settings("data", "encoder", "head", tasks=[task])
    expected = {name: default for name, default in settings.items() if shared.get(name) != default}
    assert documented_settings(r"(?:data|encoder|head)\.\w+", task) == expected
