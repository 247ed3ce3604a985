"""Groups of usages that are grammatical positions are told apart from meanings."""

from __future__ import annotations

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.grammar import list_adjacent_words, measure_grammar
from polyseme.search.index import Index
from polyseme.search.senses import MIN_GRAMMAR, Evidence


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Anna is the subject of half of the sentences, and the last word of the other half."""
    folder = tmp_path_factory.mktemp("grammar")
    lines = [f"Anna saw the {noun}\nthe {noun} met Anna" for noun in ("king", "queen", "ship", "house")] * 10
    (folder / "text.txt").write_text("\n".join(lines))
    return api.index(
        Elmo(random_model(small_config())), folder / "text.txt", folder / "index", progress=False
    )


def test_position_tells_subjects_from_objects_and_not_groups_at_random(index: Index):
    reader, numbers = index.context_reader, index.usage_numbers("Anna")
    contexts = reader.read(numbers)
    is_subject = (contexts.before == 0).astype(np.int64)
    assert measure_grammar(reader, contexts, is_subject) == pytest.approx(1)
    random = np.random.default_rng(0).integers(0, 2, len(numbers))
    assert measure_grammar(reader, contexts, random) < 0.35


def test_the_words_beside_a_group_are_named(index: Index):
    reader = index.context_reader
    contexts = reader.read(index.usage_numbers("Anna"))
    groups = (contexts.before == 0).astype(np.int64)
    assert list_adjacent_words(reader, contexts, groups, 1)[1] == ["saw"]
    assert list_adjacent_words(reader, contexts, groups, -1)[0] == ["met"]
    alone = np.zeros(len(groups), np.int64)
    assert set(list_adjacent_words(reader, contexts, alone, -1)[0]) == {"met"}


def test_senses_say_how_much_is_grammar_and_what_is_beside_them(index: Index):
    values = api.senses(index, "Anna", groups=True, progress=False).as_dict()
    assert 0 <= values["evidence"]["grammar"] <= 1
    assert values["evidence"]["is_grammatical"] is (values["evidence"]["grammar"] >= MIN_GRAMMAR)
    one_group = api.senses(index, "Anna", max_senses=1, progress=False).senses[0]
    assert (one_group.before[0], one_group.after[0]) == ("met", "saw")


def test_weak_agreement_is_not_called_grammatical():
    assert not Evidence(0.5, 0.01, 0.1, 0.2, 0.3).is_grammatical
    assert Evidence(0.5, 0.01, 0.1, 0.2, 0.6).is_grammatical
