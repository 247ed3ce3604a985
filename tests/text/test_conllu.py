"""CoNLL-U is read as the format defines it."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.errors import DataError
from polyseme.text.conllu import COLUMNS, ConlluSentence, read_conllu
from polyseme.text.reading import read_lines


def row(number: str, form: str) -> str:
    return "\t".join([number, form, *COLUMNS[2:]]) + "\n"


def read(folder: Path, text: str) -> list[ConlluSentence]:
    file = folder / "a.conllu"
    file.write_text(text, encoding="utf-8")
    return list(read_conllu(read_lines(file)))


def test_words_have_their_location_and_all_columns(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, "# text = a b\n" + row("1", "a") + row("2", "b"))
    assert [word.form for word in sentence.words] == ["a", "b"]
    assert sentence.words[1].location.endswith("a.conllu:3")
    assert sentence.words[1].columns == ["2", "b", *COLUMNS[2:]]


def test_ranges_and_empty_nodes_are_skipped_and_spaces_become_underscores(tmp_path: Path) -> None:
    text = row("1-2", "vámonos") + row("1", "vamos") + row("2", "nos") + row("2.1", "x") + row("3", "20 000")
    (sentence,) = read(tmp_path, text)
    assert [word.form for word in sentence.words] == ["vamos", "nos", "20_000"]


def test_blank_lines_end_sentences_and_newdoc_starts_documents(tmp_path: Path) -> None:
    text = f"# newdoc id = x\n{row('1', 'a')}\n\n{row('1', 'b')}# newdoc\n{row('1', 'c')}"
    sentences = read(tmp_path, text)
    assert [s.words[0].form for s in sentences] == ["a", "b", "c"]
    assert [s.opens_document for s in sentences] == [True, False, True]
    assert sum(s.size for s in sentences) == len(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 word\n", "a.conllu:1: 1 columns, expected 10"),
        ("\n" + row("x", "word"), "a.conllu:2: the ID is 'x'"),
        (row("0", "word"), "a.conllu:1: the ID is '0'"),
        (row("1", " "), "a.conllu:1: the FORM of word 1 is empty"),
    ],
)
def test_invalid_lines_are_refused_with_their_location(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as problem:
        read(tmp_path, text)
    assert message in str(problem.value)
