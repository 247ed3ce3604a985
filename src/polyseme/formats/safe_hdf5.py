"""Open hdf5 files safely: only datasets of numbers are read.

    formats.models.hdf5, formats.vectors.token_file, formats.vectors.hdf5  ->  formats.safe_hdf5  ->  h5py

An hdf5 file can point to other files (soft, external and virtual links read whatever the user can read),
declare terabytes in a few bytes, and name filters that load code. All of that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress

KNOWN_FILTERS = {1, 2, 3, 32000}  # gzip, shuffle, checksum, lzf: those of h5py itself
MAX_EXPANSION = 1100  # gzip reaches 1032 to 1


class SafeFile:
    """An open hdf5 file: `name in file`, `names()`, `shape(name)`, `read(name)`."""

    def __init__(self, file: Any, path: Path, progress: OnProgress = ignore_progress) -> None:
        self._file = file
        self.path = path
        self._progress = ByteProgress(progress, "reading", path.stat().st_size)

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def names(self) -> list[str]:
        """The names at the top level."""
        return list(self._file.keys())

    def shape(self, name: str) -> tuple[int, ...]:
        """The declared shape of the dataset `name`."""
        shape = self._call_guarded(name, getattr, self._get_dataset(name), "shape")
        if shape is None:
            raise FormatError(f"{self.path}: {name} has no data.")
        return tuple(shape)

    def read(self, name: str) -> NDArray[np.float32]:
        """The dataset `name` as float32; an error if a value is not finite."""
        dataset = self._get_dataset(name)
        self._call_guarded(name, self._check_storage, dataset, name)
        if dataset.dtype.kind != "f":
            raise FormatError(f"{self.path}: {name} is {dataset.dtype}, expected floating-point numbers.")
        values: NDArray[np.float32] = self._call_guarded(name, np.asarray, dataset, dtype=np.float32)
        if not np.isfinite(values).all():
            raise FormatError(f"{self.path}: {name} contains NaN or infinite weights. The model is broken.")
        self._progress.add(values.nbytes)
        return values

    def _get_dataset(self, name: str) -> Any:
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
            link = self._call_guarded(name, entry.get, part, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise FormatError(
                    f"{self.path}: {name} is a link to {link.path!r}, not data. "
                    "Links can point to other files: refused. Write the model again without links."
                )
            entry = self._call_guarded(name, entry.__getitem__, part)
        return entry

    def _call_guarded(
        self, name: str, call: Callable[..., Any], *arguments: object, **settings: object
    ) -> Any:
        """Call h5py, which raises many kinds of errors for damaged files."""
        try:
            return call(*arguments, **settings)
        except (KeyError, OSError, RuntimeError, ValueError, TypeError, MemoryError) as problem:
            raise FormatError(f"{self.path}: {name} cannot be read ({problem}). Copy it again.") from None

    def _check_storage(self, dataset: Any, name: str) -> None:
        """Refuse data in other files, unknown filters, and sizes that the file cannot contain."""
        if dataset.is_virtual or dataset.external:
            raise FormatError(f"{self.path}: the data of {name} is in another file: refused.")
        properties = dataset.id.get_create_plist()
        used = {properties.get_filter(number)[0] for number in range(properties.get_nfilters())}
        if used - KNOWN_FILTERS:
            raise FormatError(f"{self.path}: {name} uses unknown filters {sorted(used - KNOWN_FILTERS)}.")
        stored = min(dataset.id.get_storage_size(), self.path.stat().st_size)  # the first number may be wrong
        if dataset.nbytes > stored * MAX_EXPANSION:
            raise FormatError(
                f"{self.path}: {name} declares {dataset.nbytes:,} bytes but has {stored:,}. "
                "The file is truncated or hostile."
            )


@contextmanager
def open_hdf5(path: Path, progress: OnProgress = ignore_progress) -> Iterator[SafeFile]:
    """Open `path` for reading; `progress` receives an event for each dataset."""
    if path.is_dir():
        raise FormatError(f"{path}: is a folder, expected an hdf5 file. Name the file in it.")
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file. Check the path.") from None
    except OSError as problem:
        raise FormatError(f"{path}: not an hdf5 file, or damaged ({problem}). Copy it again.") from None
    with file:
        yield SafeFile(file, path, progress)
