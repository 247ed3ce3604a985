"""Translation: files, units, the network, BLEU, training, saving, serving."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
import torch

import polyseme
from polyseme.elmo import Elmo
from polyseme.errors import ConfigError, DataError, UsageError
from polyseme.tasks.examples import TokenizedText
from polyseme.tasks.seq2seq.example import TextPair, WrittenText
from polyseme.tasks.seq2seq.network import DecoderSteps, Seq2SeqNetwork
from polyseme.tasks.seq2seq.units import START
from polyseme.tasks.task_model import TaskModel
from polyseme.tasks.translate.scores import choose_tokenizer, score_translations

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier"}
SETTINGS = (
    "train.epochs=25",
    "train.patience=25",
    "train.rate=0.01",
    "train.schedule=constant",
    "train.batch=16",
    "train.precision=fp32",
    "input.words=24",
    "input.chars=0",
    "input.dropout=0",
    "input.elmo_dropout=0",
    "encoder.size=24",
    "encoder.dropout=0",
    "head.size=24",
    "head.embedding=24",
    "head.dropout=0",
    "head.label_smoothing=0",
    "head.vocabulary=40",
)
SHORT = (*SETTINGS, "train.epochs=1")


def make_rows(count: int) -> list[tuple[str, str]]:
    """Sentences of two or three numbers; the translation is in reverse order."""
    rng = random.Random(count)
    rows = []
    for _ in range(count):
        words = rng.sample(sorted(WORDS), rng.randint(2, 3))
        rows.append((" ".join(words), " ".join(WORDS[word] for word in reversed(words))))
    return rows


@pytest.fixture(scope="module")
def folder(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("translate") / "task"
    polyseme.train("translate", elmo, train=make_rows(60), dev=make_rows(9), out=out, settings=SETTINGS)
    return out


@pytest.fixture(scope="module")
def model(folder: Path) -> TaskModel:
    return polyseme.load_task(folder)


def test_word_order_and_words_are_learned(model: TaskModel) -> None:
    prediction: WrittenText = model.predict("one two three")
    assert prediction.text == "drei zwei eins"
    assert prediction.text not in prediction.alternatives
    assert model.predict(["four two", "two four"])[0].text == "zwei vier"
    assert model.evaluate(make_rows(12)).metrics["chrF"] > 0.8


def test_the_report_and_the_command_line_have_the_signature(folder: Path, tmp_path: Path) -> None:
    assert "nrefs:1|case:mixed" in (folder / "report.md").read_text(encoding="utf-8")
    (tmp_path / "test.tsv").write_text("source\ttarget\none two\tzwei eins\n", encoding="utf-8")
    command = [sys.executable, "-m", "polyseme", "evaluate", str(folder), str(tmp_path / "test.tsv")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "BLEU\t" in printed
    assert "tok:13a|smooth:exp|version:" in printed


@pytest.mark.parametrize("pointer", ["true", "false"])
@pytest.mark.parametrize("attention", ["dot", "none"])
def test_steps_have_the_probabilities_that_training_computes(
    elmo: Elmo, pointer: str, attention: str
) -> None:
    if (pointer, attention) == ("true", "none"):
        with pytest.raises(ConfigError, match=r"head\.pointer needs"):
            polyseme.train(
                "translate", elmo, train=make_rows(9), settings=["head.pointer=true", "head.attention=none"]
            )
        return
    settings = [*SHORT, f"head.pointer={pointer}", f"head.attention={attention}"]
    trained = polyseme.train("translate", elmo, train=make_rows(20), dev=make_rows(5), settings=settings)
    network = cast(Seq2SeqNetwork, trained.network)
    for source, target in make_rows(3):
        pair = TextPair("here", TokenizedText(tuple(source.split())), target)
        ids = network._encode_target(target)
        total, before = 0.0, START
        with torch.no_grad():
            loss, _ = network.loss([pair])
            sources, state = network.encode([pair])
            steps = DecoderSteps(network.decoder, sources)
            for number in ids:
                values, _, state = steps.step(torch.tensor([before]), state)
                total, before = total + float(values[0, number]), number
        assert -float(loss) * len(ids) == pytest.approx(total, abs=1e-3)


def test_a_batch_has_the_loss_of_its_sentences(elmo: Elmo) -> None:
    trained = polyseme.train("translate", elmo, train=make_rows(20), dev=make_rows(5), settings=SHORT)
    network = cast(Seq2SeqNetwork, trained.network)
    pairs = [TextPair("here", TokenizedText(tuple(s.split())), t) for s, t in make_rows(6)]
    sizes = [len(network._encode_target(pair.target or "")) for pair in pairs]
    with torch.no_grad():
        alone = [float(network.loss([pair])[0]) * size for pair, size in zip(pairs, sizes, strict=True)]
        assert float(network.loss(pairs)[0]) == pytest.approx(sum(alone) / sum(sizes), abs=1e-4)
    texts = [source for source, _ in make_rows(6)]
    assert [p.text for p in trained.predict(texts)] == [trained.predict(text).text for text in texts]


def test_a_finished_training_is_resumed(elmo: Elmo, tmp_path: Path) -> None:
    arguments = {"train": make_rows(20), "dev": make_rows(5), "out": tmp_path / "task", "settings": SHORT}
    first = polyseme.train("translate", elmo, **arguments)  # type: ignore[arg-type]
    again = polyseme.train("translate", elmo, resume=True, **arguments)  # type: ignore[arg-type]
    assert again.results == first.results


@pytest.mark.parametrize("units", ["words", "characters"])
def test_other_units(elmo: Elmo, units: str) -> None:
    settings = [*SHORT, f"head.units={units}"]
    trained = polyseme.train("translate", elmo, train=make_rows(20), dev=make_rows(5), settings=settings)
    assert trained.task.learned["units"]["kind"] == units
    assert isinstance(trained.predict("one two").text, str)


# ---- files ----


def write_parallel(folder: Path, sources: list[str], targets: list[str]) -> Path:
    (folder / "train.en").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (folder / "train.de").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    return folder / "train.en"


def count(elmo: Elmo, path: Path, *settings: str) -> int:
    counts = polyseme.api.count_examples("translate", elmo, train=path, settings=settings)
    return sum(part.examples for part in counts.sets.values())


def test_the_files_of_translations(elmo: Elmo, tmp_path: Path) -> None:
    rows = make_rows(8)
    parallel = write_parallel(tmp_path, [a for a, _ in rows], [b for _, b in rows])
    assert count(elmo, parallel, "data.target_ending=de") == 8
    (tmp_path / "a.txt").write_text("".join(f"{b}\t{a}\tby me\n" for a, b in rows), encoding="utf-8")
    assert count(elmo, tmp_path / "a.txt", "data.source=1", "data.target=0") == 8
    lines = "".join(json.dumps({"en": a, "de": b}) + "\n" for a, b in rows)
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    assert count(elmo, tmp_path / "a.jsonl", "data.source=en", "data.target=de") == 8


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (["a", "b", "c"], ["x", "y"], r"train\.en: 3 lines, but .*train\.de has 2\."),
        (["a", "b"], ["x", " "], r"train\.de:2: the target is empty"),
    ],
)
def test_wrong_parallel_files_are_refused(
    elmo: Elmo, tmp_path: Path, sources: list[str], targets: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        count(elmo, write_parallel(tmp_path, sources, targets), "data.target_ending=de")


def test_wrong_files_are_refused(elmo: Elmo, tmp_path: Path) -> None:
    path = write_parallel(tmp_path, ["a", "b"], ["x", "y"])
    with pytest.raises(UsageError, match=r"there is no .*train\.fr"):
        count(elmo, path, "data.target_ending=fr")
    with pytest.raises(UsageError, match="this very file"):
        count(elmo, path, "data.target_ending=en")
    with pytest.raises(DataError, match=r"train\.en:1: 1 column, expected a source, a tab and a target"):
        count(elmo, path)
    for text, message in (
        ('{"source": "a", "target": ""}', r":1: the target is empty"),
        ('{"source": "a", "target": {"a": 1}}', r":1: target is .*expected text"),
        ("[" * 100_000, r":1: "),
        ('{"source": "a"}', r":1: no field 'target'"),
        ('{"source": "a", "target": 1' + "0" * 6000 + "}", r":1: "),
    ):
        (tmp_path / "a.jsonl").write_text(text + "\n", encoding="utf-8")
        with pytest.raises(DataError, match=message) as error:
            count(elmo, tmp_path / "a.jsonl")
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 400


def test_questions_need_no_targets(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n\ntwo one\n", encoding="utf-8")
    for plain_text in (True, False):
        lines = list(polyseme.predict(folder, tmp_path / "a.txt", plain_text=plain_text, format="text"))
        assert lines == ["zwei eins", "", "eins zwei"]
    (line, _, _) = polyseme.predict(folder, tmp_path / "a.txt", plain_text=True)
    assert set(json.loads(line)) == {"tokens", "text", "log_probability", "alternatives"}


# ---- scores ----


def test_bleu_is_that_of_sacrebleu() -> None:
    import sacrebleu

    targets, predicted = (
        ["the cat sat on the mat .", "a dog barks ."],
        ["the cat sat on a mat .", "dogs bark ."],
    )
    scores = score_translations(targets, predicted, "13a")
    assert 100 * scores.metrics["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(predicted, [targets]).score)
    assert 100 * scores.metrics["chrF"] == pytest.approx(sacrebleu.corpus_chrf(predicted, [targets]).score)
    assert "BLEU = " in scores.notes[0]


def test_chinese_is_scored_by_characters() -> None:
    targets = ["他们明天去北京看朋友。"]
    assert choose_tokenizer("auto", targets, "auto") == "zh"
    assert choose_tokenizer("auto", ["a man ."], "split") == "none"
    assert choose_tokenizer("auto", ["a man ."], "auto") == "13a"
    scores = score_translations(targets, ["他们今天去北京看朋友。"], "zh")
    assert scores.metrics["BLEU"] > 0.5
    assert "tok:zh" in scores.notes[0]
