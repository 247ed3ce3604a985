"""The vocabulary: words, ids and files."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import DataError, UsageError
from polyseme.text.vocab import Vocab

SPECIALS = ["<S>", "</S>", "<UNK>"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vocab.txt"


def test_ids_are_line_numbers_and_zero_is_padding():
    vocab = Vocab([*SPECIALS, "the", "的"])
    assert len(vocab) == 5
    assert vocab.id("<S>") == 1
    assert vocab.ids(["the", "的", "nobody"]).tolist() == [4, 5, 3]
    assert vocab.word(4) == "the"
    assert "的" in vocab
    assert "nobody" not in vocab
    assert vocab.ids([]).shape == (0,)
    for number in (0, 6, -1):
        with pytest.raises(UsageError, match="from 1 to 5"):
            vocab.word(number)


def test_the_special_words_may_have_other_names_and_positions():
    vocab = Vocab(["a", "<oov>", "<bos>", "<eos>"], begin="<bos>", end="<eos>", unknown="<oov>")
    assert vocab.id("zebra") == 2


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
def test_a_vocabulary_survives_a_round_trip_through_a_file(tmp_path, name):
    words = (*SPECIALS, "the", "的", "\u3000", "a b")
    Vocab(words).write(tmp_path / name)
    assert Vocab.read(tmp_path / name).words == words
    assert [file.name for file in tmp_path.iterdir()] == [name]


@given(words=st.lists(st.text(alphabet=st.characters(), min_size=1), unique=True))
def test_any_word_survives_a_round_trip_or_is_refused(tmp_path_factory, words):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    try:
        vocab = Vocab([*SPECIALS, *words])
        vocab.write(path)
    except UsageError:
        return
    assert Vocab.read(path).words == vocab.words


def test_old_files_with_a_count_line_and_trailing_blank_lines_are_read(path):
    path.write_text("<S>\r\n</S>\r\n<UNK>\r\nthe\r\n!!!MAXTERMID\r\n\r\n\r\n", newline="")
    assert Vocab.read(path).words == (*SPECIALS, "the")


def test_a_gzip_file_is_read(path):
    path.write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\nthe\n"))
    assert Vocab.read(path).id("the") == 4


def test_a_blank_line_between_words_is_reported(path):
    path.write_text("<S>\n</S>\n<UNK>\n\n \nthe\n")
    with pytest.raises(DataError, match=r"vocab\.txt:4: blank line"):
        Vocab.read(path)


def test_a_repeated_word_is_reported_with_both_lines(path):
    path.write_text("<S>\n</S>\n<UNK>\nthe\nof\nthe\n")
    with pytest.raises(DataError, match=r"vocab\.txt:6: 'the' is on line 4"):
        Vocab.read(path)


def test_bytes_that_are_not_utf8_are_reported(path):
    path.write_bytes(b"<S>\n</S>\n\xff\n")
    with pytest.raises(DataError, match=r"vocab\.txt:3: not UTF-8"):
        Vocab.read(path)


def test_missing_special_words_are_reported_with_their_lines(path):
    path.write_text("<s>\n</S>\nthe\n")
    with pytest.raises(DataError, match=r"lacks <S> <UNK>.*first lines must be <S> </S> <UNK>.*has <s>"):
        Vocab.read(path)


@pytest.mark.parametrize("words", [["a\nb"], [""], ["the", "the"]])
def test_invalid_words_are_refused(words):
    with pytest.raises(UsageError, match=r"Words? "):
        Vocab([*SPECIALS, *words])


@pytest.mark.parametrize("word", [" a", "a\r", "!!!MAXTERMID", "\ud800"])
def test_a_word_that_cannot_be_stored_is_refused(path, word):
    with pytest.raises(UsageError, match="cannot be stored"):
        Vocab([*SPECIALS, word]).write(path)
    assert not path.exists()
