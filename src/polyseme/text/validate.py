"""Check and normalise the texts and paths that callers pass in, in every kind of container.

    formats, elmo, torch_layer, word_vectors, language, tasks, search, api  ->  text.validate

Texts may come as a list, a tuple, a generator, a numpy array, a pandas or polars Series, a pyarrow array or
any other iterable with an order. Invalid input fails with a one-line `UsageError` that names the position.
Needs neither pandas nor polars.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, MappingView, Set
from pathlib import Path
from typing import Any

from polyseme.errors import UsageError

Sentences = str | Iterable[str] | Iterable[Iterable[str]]
MAX_NAME = 255  # bytes of the name of a file: the limit of all common file systems


def check_text(text: object, name: str = "text") -> str:
    """Return `text` if it is a string, else raise `UsageError`."""
    if not isinstance(text, str):
        raise UsageError(f"{name} is of type {type(text).__name__}, expected a string.")
    return text


def list_sentences(sentences: object, name: str = "sentences") -> list[str | list[str]]:
    """Return `sentences`, an ordered iterable of strings and token lists, as a list of them.

    Args:
        sentences: A list, tuple, generator, numpy array, pandas or polars Series, or pyarrow array; token
            lists are checked by `check_tokens`.
        name: What error messages call the argument.

    Returns:
        Strings as they are, and token lists as lists of strings.

    Raises:
        UsageError: If `sentences` has no order, or an element is neither a string nor a list of tokens.

    """
    values = list_values(sentences, name)
    return [
        sentence if isinstance(sentence, str) else check_tokens(sentence, number)
        for number, sentence in enumerate(values)
    ]


def list_token_lists(sentences: object, name: str = "sentences") -> list[list[str]]:
    """Return `sentences`, an ordered iterable of token lists, as a list of lists; strings are refused."""
    if isinstance(sentences, str):
        raise UsageError(f"{name} is the string {sentences!r:.60}, expected a list of token lists.")
    return [check_tokens(sentence, number) for number, sentence in enumerate(list_values(sentences, name))]


def check_tokens(sentence: object, number: int) -> list[str]:
    """Return sentence `number` as a list of tokens, each a word without white space."""
    if isinstance(sentence, str):
        raise UsageError(
            f"sentence {number} is the string {sentence!r:.60}, expected a list of tokens. Split it, or use "
            "Elmo.embed, which takes strings."
        )
    if isinstance(sentence, bytes | Mapping) or has_no_order(sentence) or not isinstance(sentence, Iterable):
        raise _make_element_error(sentence, f"sentence {number}", "a string or a list of tokens")
    tokens = list_values(sentence, f"sentence {number}")
    for position, token in enumerate(tokens):
        if not isinstance(token, str):
            raise _make_element_error(token, f"token {position} of sentence {number}", "a string")
        if token.split() != [token]:
            problem = "is empty" if not token.strip() else f"holds white space ({token!r:.60})"
            raise UsageError(
                f"token {position} of sentence {number} {problem}. A token is one word: pass whole sentences "
                "as strings, and join the parts of a word with another character."
            )
    return tokens


def check_path(path: object, name: str, expected: str = "a path") -> str | Path:
    """Return `path` if it can be one.

    Args:
        path: What was passed as a path.
        name: What error messages call the argument.
        expected: What they say is expected.

    Raises:
        UsageError: If it is something else, such as a DataFrame, or a text, which no file can be named.

    """
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike):
        raise UsageError(f"{name} is of type {type(path).__name__}, expected {expected}.")
    text = os.fspath(path)
    if "\n" in text:
        raise UsageError(f"{name} is a text of several lines, expected {expected}.")
    if any(len(part.encode("utf-8", "replace")) > MAX_NAME for part in Path(text).parts):
        raise UsageError(f"{name} is a text of {len(text):,} characters, expected {expected}.")
    return path if isinstance(path, str | Path) else Path(text)


def list_paths(paths: object, name: str) -> list[str | Path]:
    """One path, or those of an ordered iterable, each checked by `check_path`."""
    if isinstance(paths, str | os.PathLike):
        return [check_path(paths, name)]
    return [check_path(path, f"{name}[{n}]") for n, path in enumerate(list_values(paths, name))]


def list_values(values: Any, name: str) -> list[Any]:
    """The elements of an ordered iterable, as Python objects; `UsageError` if it is not one."""
    return list(open_values(values, name))


def open_values(values: Any, name: str) -> Iterable[Any]:
    """As `list_values`, but an iterable that is read as it goes, such as a generator, is not read here."""
    if isinstance(values, list | tuple):
        return values
    kind = type(values).__name__
    if isinstance(values, bytes | bytearray):
        raise UsageError(f'{name} is {kind}, expected text: decode it first, `{name}.decode("utf-8")`.')
    if isinstance(values, Mapping):
        raise UsageError(f"{name} is a {kind}, expected a list: pass `list({name}.values())`.")
    if has_no_order(values):
        raise UsageError(f"{name} is a {kind}, which has no order: pass a list, such as `sorted({name})`.")
    if kind == "LazyFrame":  # before it is asked for columns, which may be expensive
        raise UsageError(f"{name} is a {kind}: collect it first, and pass one column of it.")
    if hasattr(values, "column_names") or (hasattr(values, "columns") and hasattr(values, "shape")):
        raise UsageError(f'{name} is a {kind}, expected one column of it, such as `{name}["text"]`.')
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow, then numpy and pandas, then polars
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is of type {kind}, expected strings in a list or another iterable.")
    return values


def has_no_order(values: object) -> bool:
    """Whether `values` is a set; the keys of a dict are in the order of the dict."""
    return isinstance(values, Set) and not isinstance(values, MappingView)


def _make_element_error(value: object, position: str, expected: str) -> UsageError:
    if is_missing(value):
        return UsageError(
            f"{position} is a missing value ({value!r:.20}), expected {expected}. Drop or fill missing "
            "values first, for example with pandas' `dropna()`."
        )
    return UsageError(f"{position} is {value!r:.60}, expected {expected}.")


def is_missing(value: object) -> bool:
    """Whether `value` is None, NaN, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value
