"""The process that reads hdf5 files of strangers: a damaged one can make the library loop for ever, or crash.

    formats.safe_hdf5  <->  a pipe  <->  formats.hdf5_process  ->  h5py

An hdf5 file can point to other files (soft, external and virtual links read whatever the user can read),
declare terabytes in a few bytes, and name filters that load code. All of that is refused. Imports neither
torch nor other readers, so that the process starts quickly.

A request is a line of JSON: [numbers of closed files, number of a file, method, arguments…]. The response is
a line of JSON: {"error": …}, or {"value": …}, or {"dtype": …, "shape": …} followed by the bytes of an array.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError
from polyseme.io.checked import DAMAGE, shorten

KNOWN_FILTERS = {1, 2, 3, 32000}  # gzip, shuffle, checksum, lzf: those of h5py itself
MAX_EXPANSION = 1100  # gzip reaches 1032 to 1
FLOATS = (2, 4, 8)  # bytes of the floating-point numbers that are read
CPU_SECONDS, BYTES_PER_SECOND = 2.0, 20e6  # that a request may take: so long, and longer for large files
LINK_BYTES = 8  # that a link takes at least: a file with more links than fit into it is a loop


class StrangeFile:
    """An open hdf5 file of unknown origin."""

    def __init__(self, path: Path) -> None:
        self.path, self._bytes = path, path.stat().st_size
        try:
            self._file = h5py.File(path, "r")
        except DAMAGE as problem:
            raise FormatError(
                f"{path}: not an hdf5 file, or damaged ({shorten(problem)}). Copy it again."
            ) from None

    def close(self) -> None:
        """Close the file."""
        with suppress(*DAMAGE):
            self._file.close()

    def names(self) -> list[str]:
        """The names at the top level."""
        names: list[str] = []
        try:
            for name in self._file:
                names.append(name)
                if len(names) * LINK_BYTES > self._bytes:
                    raise ValueError("more names than fit into it")
        except DAMAGE as problem:
            raise FormatError(f"{self.path}: damaged ({shorten(problem)}). Copy it again.") from None
        return names

    def has(self, name: str) -> bool:
        """Whether there is a dataset or a group `name`."""
        return self._find(name) is not None

    def shape(self, name: str) -> list[int]:
        """The declared shape of the dataset `name`."""
        shape = self._guarded(name, getattr, self._dataset(name), "shape")
        if shape is None:
            raise FormatError(f"{self.path}: {name} has no data.")
        return list(shape)

    def read(self, name: str) -> NDArray[np.floating[Any]]:
        """The dataset `name`, floating-point numbers as they are stored."""
        dataset = self._dataset(name)
        self.shape(name)
        self._guarded(name, self._check_storage, dataset, name)
        kind = self._guarded(name, getattr, dataset, "dtype")
        if kind.kind != "f" or kind.itemsize not in FLOATS:
            raise FormatError(f"{self.path}: {name} is {kind}, expected floating-point numbers.")
        values: NDArray[np.floating[Any]] = self._guarded(
            name, np.asarray, dataset, dtype=kind.newbyteorder("<")
        )
        return values

    def text(self, name: str, attribute: str) -> str | None:
        """The text in an attribute of a dataset; None if it has none of that name."""
        value = self._guarded(name, self._dataset(name).attrs.get, attribute)
        if value is None or isinstance(value, str):
            return value
        raise FormatError(f"{self.path}: {attribute} of {name} is not a text.")

    def _dataset(self, name: str) -> Any:
        entry = self._find(name)
        if not isinstance(entry, h5py.Dataset):
            raise FormatError(
                f"{self.path}: the dataset {name} is missing. Is it the weights file of an ELMo?"
            )
        return entry

    def _find(self, name: str) -> Any:
        """Follow `name` through hard links only; None if it does not exist."""
        entry: Any = self._file
        for part in name.split("/"):
            if not isinstance(entry, h5py.Group):
                return None
            link = self._guarded(name, entry.get, part, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise FormatError(
                    f"{self.path}: {name} is a link to {link.path!r}, not data. "
                    "Links can point to other files: refused. Write the model again without links."
                )
            entry = self._guarded(name, entry.__getitem__, part)
        return entry

    def _guarded(self, name: str, call: Callable[..., Any], *arguments: object, **settings: object) -> Any:
        """Call h5py, which raises many kinds of errors for damaged files."""
        try:
            return call(*arguments, **settings)
        except FormatError:
            raise
        except DAMAGE as problem:
            raise FormatError(
                f"{self.path}: {name} cannot be read ({shorten(problem)}). Copy it again."
            ) from None

    def _check_storage(self, dataset: Any, name: str) -> None:
        """Refuse data in other files, unknown filters, and sizes that the file cannot contain."""
        if dataset.is_virtual or dataset.external:
            raise FormatError(f"{self.path}: the data of {name} is in another file: refused.")
        properties = dataset.id.get_create_plist()
        used = {properties.get_filter(number)[0] for number in range(properties.get_nfilters())}
        if used - KNOWN_FILTERS:
            raise FormatError(f"{self.path}: {name} uses unknown filters {sorted(used - KNOWN_FILTERS)}.")
        stored = min(dataset.id.get_storage_size(), self._bytes)  # the first number may be wrong
        if dataset.nbytes > stored * MAX_EXPANSION:
            raise FormatError(
                f"{self.path}: {name} declares {dataset.nbytes:,} bytes but has {stored:,}. "
                "The file is truncated or hostile."
            )


def main() -> None:
    """Answer the requests on standard input until it ends."""
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    files: dict[int, StrangeFile] = {}
    for line in requests:
        closed, number, method, *arguments = json.loads(line)
        for unused in closed:
            if unused in files:
                files.pop(unused).close()
        if method == "close":
            _send(None, responses)
            responses.flush()
            continue
        try:
            path = Path(arguments[0]) if method == "open" else files[number].path
            _limit_time(CPU_SECONDS + path.stat().st_size / BYTES_PER_SECOND)
            if method == "open":
                files[number] = StrangeFile(path)
                _send(None, responses)
            else:
                _send(getattr(files[number], method)(*arguments), responses)
        except FormatError as problem:
            _send_line({"error": str(problem)}, responses)
        responses.flush()
        _limit_time(0)


def _limit_time(seconds: float) -> None:
    """Let the system end this process after so many seconds of computing; 0 is no limit."""
    if hasattr(signal, "setitimer"):  # not on Windows, where the other process watches the clock
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _send(value: Any, responses: IO[bytes]) -> None:
    if isinstance(value, np.ndarray):
        _send_line({"dtype": value.dtype.str, "shape": value.shape}, responses)
        responses.write(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    else:
        _send_line({"value": value}, responses)


def _send_line(values: dict[str, Any], responses: IO[bytes]) -> None:
    responses.write(json.dumps(values).encode() + b"\n")
