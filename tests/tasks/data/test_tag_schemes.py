"""Tag schemes: tags to spans and back, legal sequences, guessing the scheme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.tasks.data.tag_schemes import (
    Span,
    find_fault,
    guess_scheme,
    may_follow,
    mend_tags,
    read_spans,
    split_tag,
    write_spans,
)

TAGS = {
    "iob1": ["I-PER", "I-PER", "B-PER", "O", "I-LOC"],
    "iob2": ["B-PER", "I-PER", "B-PER", "O", "B-LOC"],
    "bioes": ["B-PER", "E-PER", "S-PER", "O", "S-LOC"],
    "bilou": ["B-PER", "L-PER", "U-PER", "O", "U-LOC"],
    "bmes": ["B-PER", "E-PER", "S-PER", "O", "S-LOC"],
}
SPANS = [Span("PER", 0, 2), Span("PER", 2, 3), Span("LOC", 4, 5)]


@pytest.mark.parametrize("scheme", TAGS)
def test_every_scheme_can_encode_the_same_spans(scheme: str):
    assert read_spans(TAGS[scheme]) == SPANS
    assert write_spans(SPANS, 5, scheme) == TAGS[scheme]
    assert find_fault(TAGS[scheme], scheme) is None


@pytest.mark.parametrize(
    ("scheme", "tags", "mended"),
    [
        ("bmes", ["B-A", "M-A", "O"], ["B-A", "E-A", "O"]),
        ("bmes", ["O", "M-A", "E-A"], ["O", "B-A", "E-A"]),
        ("bmes", ["B-A", "M-B", "E-B"], ["S-A", "B-B", "E-B"]),
        ("bmes", ["B-A", "x", "S-A"], ["S-A", "O", "S-A"]),
        ("bioes", ["B-A", "I-A", "B-A"], ["B-A", "E-A", "S-A"]),
        ("bilou", ["L-A", "O", "I-A"], ["U-A", "O", "U-A"]),
        ("iob2", ["I-A", "I-A", "I"], ["B-A", "I-A", "O"]),
    ],
)
def test_illegal_tags_are_mended_to_the_nearest_spans(scheme: str, tags: list[str], mended: list[str]):
    assert mend_tags(tags, scheme) == mended
    assert find_fault(mended, scheme) is None


@given(st.lists(st.sampled_from(["", "A", "B"]), max_size=8), st.sampled_from(sorted(TAGS)))
def test_spans_survive_a_round_trip_through_any_scheme(kinds: list[str], scheme: str):
    spans, start = [], 0
    for number, kind in enumerate(kinds):
        stop = start + 1 + number % 3
        if kind:
            spans.append(Span(kind, start, stop))
        start = stop
    tags = write_spans(spans, start, scheme)
    assert find_fault(tags, scheme) is None
    assert read_spans(tags) == spans


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "I-PER"], "iob1"),
        (["O", "B-PER", "I-PER"], "iob2"),
        (["B-PER", "E-PER", "S-LOC"], "bioes"),
        (["B_PER", "M_PER", "E_PER"], "bmes"),
        (["NN", "VB", "O"], "none"),
        (["B-PER", "I-PER", "L-PER", "U-LOC"], "bilou"),
        (["O", "O"], "none"),
        (["B", "I", "O"], "none"),
    ],
)
def test_the_scheme_is_guessed_from_the_tags(tags: list[str], scheme: str):
    assert guess_scheme([tags]) == scheme


@pytest.mark.parametrize(
    ("tags", "scheme", "position"),
    [
        (["O", "I-PER"], "iob2", 1),
        (["B-PER", "I-LOC"], "iob2", 1),
        (["B-PER", "O"], "bioes", 1),
        (["B-PER"], "bioes", 1),
        (["O", "E-PER"], "bmes", 1),
        (["X-PER"], "iob2", 0),
    ],
)
def test_an_invalid_tag_is_reported_with_its_position(tags: list[str], scheme: str, position: int):
    fault = find_fault(tags, scheme)
    assert fault is not None
    assert fault[0] == position


VALID = [["B-PER", "I-PER", "O", "B-LOC", "O"]] * 20


@pytest.mark.parametrize(
    "mistake", [["O", "I-PER"], ["PER", "O"], ["X-PER"], ["B", "O"], ["B-PER", "I-LOC"], ["E-PER"]]
)
def test_one_mistake_does_not_change_the_guessed_scheme(mistake: list[str]):
    assert guess_scheme([*VALID, mistake]) == "iob2"
    assert find_fault(mistake, "iob2") is not None


def test_iob1_with_unnecessary_b_tags_is_still_iob1():
    sentences = [["I-PER", "I-PER", "O"]] * 50
    sentences += [["O", "B-MISC", "I-MISC"], ["I-LOC", "B-LOC"], ["B-ORG", "O"]]
    assert guess_scheme(sentences) == "iob1"
    assert not any(find_fault(tags, "iob1") for tags in sentences)


def test_one_mistake_does_not_change_the_guess_of_a_scheme_with_end_tags():
    tags = [["B-PER", "E-PER", "O"], ["S-LOC", "B-ORG", "I-ORG", "E-ORG"]] * 10
    assert guess_scheme([*tags, ["B-PER", "I-PER"]]) == "bioes"
    assert guess_scheme([*tags, ["I-PER", "I-PER"]]) == "bioes"


def test_part_of_speech_tags_have_no_scheme():
    assert guess_scheme([["NN", "VB", "O", "B-NP"]] * 5) == "none"


def test_bilou_tags_give_the_same_spans_as_bioes():
    assert read_spans(["B-X", "I-X", "L-X", "U-Y"]) == [Span("X", 0, 3), Span("Y", 3, 4)]


def test_bioes_allows_only_legal_transitions():
    assert may_follow("B", "X", "E", "X")
    assert not may_follow("B", "X", "E", "Y")
    assert not may_follow("B", "X", "O", "")
    assert may_follow("E", "X", "B", "X")
    assert not may_follow("O", "", "I", "X")
    assert split_tag("O") == ("O", "")
