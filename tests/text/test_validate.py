"""What is passed as a path or as texts: accepted, or refused with one line that says what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.text.validate import check_path, list_paths

FRAME = pd.DataFrame({"text": ["the bank failed"], "label": ["a"]})
LONG = "the bank failed . " * 300

VERBS: dict[str, Callable[[Elmo, Any], object]] = {
    "load": lambda elmo, path: polyseme.load(path),
    "ElmoLayer": lambda elmo, path: polyseme.ElmoLayer(path),
    "load_task": lambda elmo, path: polyseme.load_task(path),
    "open_index": lambda elmo, path: polyseme.open_index(path),
    "open_words": lambda elmo, path: polyseme.open_words(path),
    "open_vectors": lambda elmo, path: polyseme.open_vectors(path),
    "read_vectors": lambda elmo, path: polyseme.read_vectors(path),
    "info": lambda elmo, path: polyseme.info(path),
    "nearest": lambda elmo, path: polyseme.nearest(path, "bank"),
    "index": lambda elmo, path: polyseme.index(elmo, path, "out"),
    "embed": lambda elmo, path: polyseme.embed(elmo, path, "out.npz"),
    "pretrain": lambda elmo, path: polyseme.pretrain(path, "out"),
    "book": lambda elmo, path: polyseme.book(path, "out"),
}


@pytest.mark.parametrize("path", [FRAME, LONG, 7, b"model"], ids=lambda path: type(path).__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_path_is_refused_in_one_line(verb, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        VERBS[verb](Elmo(random_model(small_config())), path)
    assert "expected" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("texts", [FRAME, {"the bank": 1}, {"the bank"}, b"the bank"], ids=str)
def test_word_vectors_refuse_what_is_no_list_of_sentences(texts):
    with pytest.raises(UsageError, match=r"^sentences is "):
        polyseme.mean_vectors(Elmo(random_model(small_config())), texts)


def test_a_text_to_summarise_is_a_string_or_a_path():
    with pytest.raises(UsageError, match="text is of type DataFrame, expected a string"):
        polyseme.summarise(Elmo(random_model(small_config())), FRAME)


def test_paths_come_alone_or_in_any_ordered_container():
    assert list_paths("a.txt", "texts") == ["a.txt"]
    assert list_paths(Path("a.txt"), "texts") == [Path("a.txt")]
    assert list_paths(pd.Series(["a.txt", "b.txt"]), "texts") == ["a.txt", "b.txt"]
    assert list_paths((Path(name) for name in "ab"), "texts") == [Path("a"), Path("b")]
    with pytest.raises(UsageError, match=r"texts\[1\] is a text of 5,400 characters, expected a path"):
        list_paths(["a.txt", LONG], "texts")
    assert check_path("银" * 85, "texts") == "银" * 85  # 255 bytes
    with pytest.raises(UsageError, match="texts is a text of 86 characters"):
        check_path("银" * 86, "texts")
