"""Read files of unknown origin: what their libraries raise becomes one line, arrays are checked.

    formats, text.corpus.prepared, training, tasks, search  ->  io.checked  ->  errors.FormatError

A reader opens a file inside `refuse_damaged`, and checks every array with `check_array` before its numbers
are used: dtype, axes, shape, finite values.
"""

from __future__ import annotations

import pickle
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError, PolysemeError
from polyseme.json_text import parse_json

COPY = "Copy it again."
LONGEST = 200  # characters of a foreign message that are shown
# What the libraries raise for damaged files: h5py, safetensors, numpy, zipfile, pyarrow, torch, json.
DAMAGE: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    ValueError,  # also pyarrow's ArrowInvalid, JSONDecodeError, UnicodeDecodeError
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,  # also RecursionError and NotImplementedError
    ArithmeticError,
    MemoryError,
    SyntaxError,  # numpy parses the header of .npy files
    tokenize.TokenError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
)


@contextmanager
def refuse_damaged(path: Path, what: str, advice: str = COPY) -> Iterator[None]:
    """Turn what a library raises for a damaged file into a FormatError.

    Args:
        path: The file.
        what: What it should be, with its article: "a safetensors file".
        advice: What to do about it.

    Raises:
        FormatError: The block raised one of `DAMAGE`, or an error of safetensors.

    """
    try:
        yield
    except PolysemeError:
        raise
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file. {advice}") from None
    except Exception as problem:
        if not isinstance(problem, DAMAGE) and type(problem).__name__ != "SafetensorError":
            raise
        raise FormatError(f"{path}: not {what}, or damaged ({shorten(problem)}). {advice}") from None


def shorten(problem: BaseException | str) -> str:
    """The message of a foreign error in one short line."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def check_regular_file(path: Path, what: str) -> None:
    """Refuse a path that is missing, a folder, or something that may have no end.

    Raises:
        FormatError: Says what it is; `what` is what was expected, with its article.

    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file. Check the path.") from None
    except (OSError, ValueError) as problem:
        raise FormatError(f"{path}: cannot be read ({shorten(problem)}). Check the path.") from None
    if stat.S_ISDIR(mode):
        raise FormatError(f"{path}: is a folder, expected {what}. Name the file in it.")
    if not stat.S_ISREG(mode):
        raise FormatError(f"{path}: not a regular file, expected {what}.")


def read_json(path: Path, what: str = "JSON", advice: str = COPY) -> Any:
    """Read a JSON file.

    Raises:
        FormatError: It is missing, not UTF-8 or not JSON.

    """
    check_regular_file(path, what)
    with refuse_damaged(path, what, advice):
        return parse_json(path.read_bytes())


def read_json_lines(path: Path, what: str = "JSON lines", advice: str = COPY) -> list[Any]:
    """Read a file with a JSON value per line; an empty line has none.

    Raises:
        FormatError: It is missing, not UTF-8, or a line is not JSON.

    """
    check_regular_file(path, what)
    with refuse_damaged(path, what, advice):
        lines = path.read_bytes().decode("utf-8").split("\n")
        return [parse_json(line) for line in lines if line.strip()]


def read_npy(path: Path, *, map_file: bool = False, advice: str = COPY) -> NDArray[Any]:
    """Read an array from a .npy file, which cannot contain objects; `map_file`: without loading it."""
    with refuse_damaged(path, "a .npy file", advice):
        values = np.load(path, mmap_mode="r" if map_file else None, allow_pickle=False)
        if not isinstance(values, np.ndarray):
            raise TypeError("an archive of arrays")
        return values


def check_array(
    values: NDArray[Any] | None,
    source: str,
    kinds: Sequence[str],
    shape: Sequence[int | None],
    *,
    finite: bool = False,
    advice: str = COPY,
) -> NDArray[Any]:
    """Refuse an array whose dtype, axes or values are not those that the code behind it relies on.

    Args:
        values: An array of numpy; None if it is missing.
        source: The file and the name of the array, for the error.
        kinds: Allowed dtypes, as numpy writes them: "f4", "i8".
        shape: The expected size of each axis; None allows any.
        finite: Whether NaN and infinite values are refused.
        advice: What to do about it.

    Returns:
        The array.

    Raises:
        FormatError: Says what differs.

    """
    if values is None:
        raise FormatError(f"{source} is missing. {advice}")
    if values.dtype not in [np.dtype(kind) for kind in kinds]:
        expected = " or ".join(str(np.dtype(kind)) for kind in kinds)
        raise FormatError(f"{source} is {values.dtype}, expected {expected}. {advice}")
    fits = values.ndim == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, values.shape, strict=True)
    )
    if not fits:
        wanted_shape = str(tuple("any" if size is None else size for size in shape)).replace("'", "")
        raise FormatError(f"{source} is {values.shape}, expected {wanted_shape}. {advice}")
    if finite and not np.isfinite(values).all():
        raise FormatError(f"{source} contains NaN or infinite values. {advice}")
    return values
