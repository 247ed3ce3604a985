"""Names of several words in English text: what is found, and how the segmentation joins them."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import polyseme
from polyseme.text.segment import WordList, split_sentences, token_texts, tokenize
from polyseme.text.segment.discovery import OTHER, PERSON, PLACE
from polyseme.text.segment.english_names import discover_names
from polyseme.text.segment.word_list import ListedWord

PERSONS = ["Mr. Ashgrove", "Mrs. Ashgrove", "Lady Honoria de Vere", "Peregrine Ashgrove"]
PLACES = ["New York", "Harrow Street"]
TEMPLATES = [
    "The new street was dark, and {a} said nothing to {b}.",
    "“It is late,” said {a}. Nobody in {p} had seen {b} that day.",
    "{a} looked at {b} and walked to {p}.",
    "In the evening {a} came from {p} with a letter for {b}.",
    "Peregrine asked why the lady had left {p}. Honoria laughed.",
    "Mr. Brown was a brown horse, they said, and nobody believed {a}.",
]
NAMES = WordList.parse(
    ["Elizabeth Bennet 8 nr", "New York", "Lady_Catherine 9", "Lady Catherine de Bourgh 3 nr"]
)


def write_novel(seed: int = 1, sentences: int = 400) -> str:
    draw = random.Random(seed)
    lines = []
    for _ in range(sentences):
        first, second = draw.sample(PERSONS, 2)
        lines.append(draw.choice(TEMPLATES).format(a=first, b=second, p=draw.choice(PLACES)))
    return "\n\n".join(" ".join(lines[start : start + 4]) for start in range(0, len(lines), 4))


def test_persons_and_places_are_found_with_counts():
    text = write_novel()
    names = {new.word.replace("_", " "): new for new in discover_names([text])}
    assert set(PERSONS) | set(PLACES) <= set(names)
    assert {names[name].tag for name in PERSONS} == {PERSON}
    assert {names[name].tag for name in PLACES} == {PLACE}
    assert all(names[name].count == text.count(name) for name in PERSONS + PLACES)
    assert not {new.word for new in names.values() if new.tag == OTHER}


def test_words_that_open_a_sentence_or_never_cohere_are_no_names():
    names = {new.word for new in discover_names([write_novel()])}
    assert not any(name.startswith(("In_", "The_", "Nobody_")) for name in names)
    assert discover_names(["Then Anna left. Now Bert came. But Carl stayed.\n" * 30]) == []
    assert discover_names(["天色已晚，山路上没有行人。\n" * 30]) == []
    assert discover_names([]) == []


def test_a_part_of_a_longer_name_is_no_name():
    names = {new.word for new in discover_names([write_novel()])}
    assert "Lady_Honoria" not in names
    assert "Honoria_de_Vere" not in names


def test_names_are_joined_and_keep_the_offsets_of_the_text():
    text = "Lady\n Catherine de Bourgh met Elizabeth  Bennet's aunt in New York. Lady Catherine left."
    tokens = tokenize(text, "en", NAMES)
    assert [token.text for token in tokens if "_" in token.text] == [
        "Lady_Catherine_de_Bourgh",
        "Elizabeth_Bennet",
        "New_York",
        "Lady_Catherine",
    ]
    assert [text[token.start : token.end] for token in tokens][:3] == [
        "Lady\n Catherine de Bourgh",
        "met",
        "Elizabeth  Bennet",
    ]
    assert tokenize("他在 New York 见 Elizabeth Bennet。", "zh", NAMES) == tokenize(
        "他在 New York 见 Elizabeth Bennet。", "zh"
    )


@given(
    st.lists(
        st.sampled_from(
            ["Elizabeth", "Bennet", "New", "York", "_", "New_York", "Lady", "Catherine", "de", "."]
        )
    )
)
def test_every_token_is_a_substring_of_the_text_but_for_white_space(words: list[str]):
    text = "  ".join(words)
    tokens = [token for sentence in split_sentences(text, "en", NAMES) for token in sentence]
    assert tokens == tokenize(text, "en", NAMES)
    ends = [0, *(token.end for token in tokens)]
    for end, token in zip(ends, tokens, strict=False):
        assert text[end : token.start].strip() == ""
        assert "_".join(text[token.start : token.end].split()) == token.text


def test_a_model_keeps_the_names_it_was_trained_with(tmp_path: Path):
    (tmp_path / "novel.txt").write_text(write_novel(), encoding="utf-8")
    settings = ["train.tokens=300", "model.segment=en"]
    plain = polyseme.pretrain(
        tmp_path / "novel.txt", tmp_path / "plain", "tiny", settings=settings, progress=False
    )
    joined = polyseme.pretrain(
        tmp_path / "novel.txt", tmp_path / "joined", "tiny", settings=settings, names=True, progress=False
    )
    text = "Lady Honoria de Vere went to New York."
    assert polyseme.load(plain.folder).word_list is None
    elmo = polyseme.load(joined.folder)
    assert elmo.token_texts(text) == ["Lady_Honoria_de_Vere", "went", "to", "New_York", "."]
    assert "New_York" in elmo.model.vocab.words
    assert "<th lang=en>Places<td>" in (joined.folder / "report.html").read_text("utf-8")
    usages = polyseme.index(elmo, tmp_path / "novel.txt", tmp_path / "index", progress=False)
    usage = usages.usage(int(usages.usage_numbers("Lady_Honoria_de_Vere")[0]))
    assert "[Lady Honoria de Vere]" in usage.marked()


def test_a_name_without_a_count_has_no_tag_and_can_be_taken_back():
    assert NAMES.entries[1] == ListedWord("New_York")
    assert token_texts("In New York.", "en", WordList.parse(["New York 0"])) == ["In", "New", "York", "."]
