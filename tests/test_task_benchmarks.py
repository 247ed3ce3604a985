"""The benchmarks of tasks: how datasets are split, baselines without a network, tables of cells."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from polyseme.tasks.coref.example import CorefDocument
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import TokenizedText
from polyseme.tasks.roles.example import Frame, RolesExample

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("labelled_sets", "simple_baselines", "tasks", "paper")


@pytest.fixture
def modules(monkeypatch) -> Any:
    """The modules of benchmarks/ by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield {name: __import__(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_no_article_is_in_two_parts(modules, tmp_path: Path):
    whole = tmp_path / "all.json"
    whole.write_text(json.dumps({"data": [{"title": str(n)} for n in range(12)]}), encoding="utf-8")
    parts = modules["labelled_sets"].by_article(whole, tmp_path, "squad", 5, 2)
    train, dev = ([row["title"] for row in json.loads(path.read_text())["data"]] for path in parts)
    assert dev == ["2", "7"]
    assert sorted(map(int, train + dev)) == list(range(12))


def test_no_chinese_sentence_is_in_two_parts(modules, tmp_path: Path):
    folder = tmp_path / "zh_en_tatoeba"
    folder.mkdir()
    lines = [f"Number {n}, version {v}.\t第{n}句。\tCC-BY" for n in range(200) for v in range(2)]
    (folder / "cmn.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    paths = modules["labelled_sets"].tatoeba(tmp_path, tmp_path)
    parts = [{line.split("\t")[0] for line in path.read_text("utf-8").splitlines()} for path in paths]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 200
    assert len(parts[0]) > 150


def test_rules_place_roles_around_the_predicate(modules):
    tokens = ("However", ",", "the", "man", "will", "not", "sell", "his", "boat", ".")
    spans = (Span("ARG0", 2, 4), Span("ARGM-MOD", 4, 5), Span("ARGM-NEG", 5, 6), Span("V", 6, 7))
    example = RolesExample("a:1", TokenizedText(tokens), (Frame(6, (*spans, Span("ARG1", 7, 9))),), (6,))
    scores = modules["simple_baselines"].label_by_rules([example], [example], None)
    assert scores.metrics["F1"] == 1.0


def test_phrases_with_the_same_head_are_one_cluster(modules):
    sentences = (("There", "sat", "Anna", "."), ("The", "old", "boat", "was", "gone"), ("His", "boat", "!"))
    texts = tuple(map(TokenizedText, sentences))
    document = CorefDocument("a:1", "a", texts, (((2, 3),), ((4, 7), (9, 11))))
    scores = modules["simple_baselines"].cluster_by_head([], [document], None)
    assert scores.metrics["MUC F1"] == 1.0


def cell(value: float, **more: Any) -> dict[str, Any]:
    values = {"main": "F1", "test": {"F1": value, "EM": value / 2}, "epochs": 9, "converged": True}
    values |= {"processor seconds": 600.0, "memory": 2e9, "shares": [[0.2, 0.5, 0.3]], "resampled": []}
    return values | more


def test_a_table_has_each_metric_beside_what_needs_no_network(modules):
    cells = {"squad.baseline.1": cell(0.5), "squad.baseline.2": cell(0.52), "squad.elmo.1": cell(0.6)}
    cells["squad.overlap.1"] = {"main": "F1", "test": {"F1": 0.16, "EM": 0.02}, "seconds": 1.0}
    lines = modules["tasks"].large_table(cells).splitlines()
    assert lines[2] == (
        "| squad | F1 | overlap 0.1600 |  | 0.5100 ± 0.0141 (2) | 0.6000 (1) "
        "| +20.0%; one seed, few examples | 9 | 10 | 2.0 |"
    )
    assert lines[3].startswith("| squad | EM | overlap 0.0200 |  | 0.2550")


def test_every_cell_of_the_ablations_has_a_column(modules):
    paper = modules["paper"]
    cells = {"conll2003.baseline.1": cell(0.8), "conll2003.elmo.1": cell(0.85)}
    cells['conll2003.elmo+input.layers="top".1'] = cell(0.83)
    cells["conll2003.elmo-10%.1"] = cell(0.7)
    gains, layers, *_, less = paper.make_tables(cells)
    assert "| conll2003 | NER | 90.15 | 92.22 | 0.8000 (1) | 0.8500 (1) |" in gains
    assert "| conll2003 | 0.8000 (1) | 0.8300 (1) |  | 0.8500 (1) |" in layers
    assert "| conll2003 |  |  |  | 0.7000 (1) |  |  |" in less


def test_the_ablations_are_no_cell_twice(modules):
    cells = list(modules["paper"].list_cells(["sick"]))
    assert len(cells) == len(set(cells)) == 14
