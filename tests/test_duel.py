"""The equal-time duel: its clock, labels, probes, tables, and what it keeps."""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def duel(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path])
    return load_script(BENCHMARKS / "duel.py")


@pytest.fixture
def rival(duel: ModuleType) -> ModuleType:
    return load_script(BENCHMARKS / "duel" / "rival.py")


@pytest.fixture
def probes(duel: ModuleType) -> ModuleType:
    return load_script(BENCHMARKS / "duel" / "probes.py")


@pytest.fixture
def probe_sets(duel: ModuleType) -> ModuleType:
    return sys.modules["probe_sets"]


def cell(**scores: float) -> dict:
    return {"cpu_seconds": 200.0, "scores": {name: {"dev": 0.0, "test": s} for name, s in scores.items()}}


def test_a_table_marks_the_best_and_gives_the_mean_of_the_seeds(duel: ModuleType) -> None:
    results = {
        "wikitext2 / polyseme / 200 / 1": cell(POS=0.8, NER=0.5),
        "wikitext2 / polyseme / 200 / 2": cell(POS=0.9, NER=0.5),
        "wikitext2 / fasttext / 200 / 1": cell(POS=0.7, NER=0.6),
    }
    lines = list(duel.make_tables(results))
    assert "| 200 s | Polyseme `novel` | 2 | **0.850** ±0.050 | 0.500 ±0.000 | **0.675** |" in lines
    assert "| 200 s | fastText (static) | 1 | 0.700 | **0.600** | 0.650 |" in lines


def test_a_program_without_rivals_is_not_marked_as_the_best(duel: ModuleType) -> None:
    lines = list(duel.make_tables({"wikitext2 / polyseme / 200 / 1": cell(POS=0.8)}))
    assert "| 200 s | Polyseme `novel` | 1 | 0.800 | 0.800 |" in lines


def test_trials_with_other_settings_stay_out_of_the_tables(duel: ModuleType) -> None:
    assert list(duel.make_tables({"wikitext2 / flair / 200 / 1 / hidden=512": cell(POS=0.8)})) == []


def test_cells_that_are_done_are_not_run_again(
    duel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duel, "CACHE", tmp_path / "cache")
    path = tmp_path / "duel.json"
    duel.add_result(path, "wikitext2 / polyseme / 200 / 1", cell(POS=0.8))
    duel.add_result(path, "wikitext2 / bert-2x128 / 200 / 1", cell(POS=0.7))
    assert len(json.loads(path.read_text())) == 2
    arguments = argparse.Namespace(
        data=tmp_path / "missing",
        texts=["wikitext2"],
        rivals=["polyseme", "bert-2x128"],
        seconds=[200],
        seeds=[1],
        set=[],
        results=path,
    )
    duel.run_cells(arguments)  # would fail: there are no data


def test_the_page_gets_the_tables_between_its_marks(duel: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- duel -->\nold\n<!-- end -->\nafter\n")
    duel.write_page(page, ["| new |", ""])
    assert page.read_text() == "before\n<!-- duel -->\n| new |\n<!-- end -->\nafter\n"


def test_a_picture_is_drawn_from_any_cells(duel: ModuleType, tmp_path: Path) -> None:
    results = {
        "wikitext2 / polyseme / 200 / 1": cell(POS=0.8, NER=0.5),
        "wikitext2 / polyseme / 900 / 1": cell(POS=0.9, NER=0.6),
        "zh_modern / flair / 200 / 1": cell(POS=0.7),
    }
    duel.draw(results, tmp_path / "duel.png")
    assert (tmp_path / "duel.png").read_bytes().startswith(b"\x89PNG")


def test_the_rate_rises_then_falls_to_zero_with_the_cpu_time(rival: ModuleType) -> None:
    def rate_at(share: float) -> float:
        return rival.Budget(100, time.process_time() - 100 * share).rate(1.0, warmup=0.1)

    assert rate_at(0.05) == pytest.approx(0.5, abs=0.01)
    assert rate_at(0.1) == pytest.approx(1.0, abs=0.01)
    assert rate_at(0.55) == pytest.approx(0.5, abs=0.01)
    assert rate_at(1.2) == pytest.approx(0.0, abs=1e-6)


def test_a_word_has_the_mean_of_its_pieces(rival: ModuleType) -> None:
    pieces = np.array([[1.0], [3.0], [5.0]])
    assert rival.pool_pieces(pieces, [2, 1]).tolist() == [[2.0], [5.0]]


def test_characters_get_the_vector_of_their_word_and_their_place_in_it(rival: ModuleType) -> None:
    lengths = rival.spread_words(lambda sentences: [np.array([[len(w)] for w in s]) for s in sentences])
    (rows,) = lengths([list("我们是")])
    assert rows[:, 0].tolist() == [2, 2, 1]
    assert rows[:, 1:].argmax(1).tolist() == [0, 2, 3]  # begin, end, single


def test_spans_of_iob1_begin_with_b(probe_sets: ModuleType) -> None:
    tags = ["I-ORG", "I-ORG", "B-ORG", "O", "I-PER", "I-LOC"]
    ((_, begun),) = probe_sets.begin_spans([(list("abcdef"), tags)])
    assert begun == ["B-ORG", "I-ORG", "B-ORG", "O", "B-PER", "B-LOC"]


def test_columns_skip_comments_contractions_and_document_marks(
    probe_sets: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("# text = don't\n1-2\tdon't\t_\t_\n1\tdo\tdo\tAUX\n2\tn't\tnot\tPART\n\n1\t#\t#\tSYM\n")
    sentences = list(probe_sets.read_columns(path, "\t", 1, 3))
    assert sentences == [(["do", "n't"], ["AUX", "PART"]), (["#"], ["SYM"])]
    path.write_text("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n")
    assert list(probe_sets.read_columns(path, " ", 0, 3)) == [(["EU"], ["I-ORG"])]


@pytest.mark.parametrize("kind", ["accuracy", "spans", "sentences", "senses"])
def test_a_probe_finds_what_is_linear_in_the_vectors_and_not_what_is_not_there(
    kind: str, probes: ModuleType, probe_sets: ModuleType, tmp_path: Path
) -> None:
    chance = random.Random(0)
    parts = probe_sets.PARTS
    tokens = {part: [[chance.choice("abc") for _ in range(4)] for _ in range(60)] for part in parts}
    whole = kind in ("sentences", "senses")  # one label per sentence, that of its first token
    names = {"a": "O", "b": "B-X", "c": "B-Y"}
    labels = {
        part: [s[0] if whole else [names[token] for token in s] for s in sentences]
        for part, sentences in tokens.items()
    }
    extra = {"positions": {p: [0] * 60 for p in parts}, "words": {p: ["w"] * 60 for p in parts}}
    dataset = probe_sets.ProbeSet("set", kind, "set", tokens, labels, **(extra if kind == "senses" else {}))
    flat = [token for part in parts for sentence in tokens[part] for token in sentence]
    noise = np.random.default_rng(0).normal(size=(len(flat), 3))
    telling = np.eye(3)[["abc".index(token) for token in flat]]
    if kind == "sentences":
        telling[np.arange(len(flat)) % 4 > 0] = 0  # the mean has the first token only
    scores = {}
    for name, vectors in (("telling", telling), ("noise", noise)):
        np.save(tmp_path / f"{name}.npy", vectors.astype(np.float16))
        scores[name] = probes.probe(dataset, tmp_path / f"{name}.npy", seed=1)["test"]
    assert scores["telling"] > 0.99
    assert scores["noise"] < 0.6
