"""Write hdf5 files so that a full disk is an error, and not a crash.

    formats.models.hdf5, formats.vectors.token_file, formats.vectors.hdf5  ->  formats.hdf5_writing  ->  h5py

A failed write inside the hdf5 library ends the process when its objects are released. Here the library writes
to a file object that accepts everything and keeps the first error, which is raised once the library is done.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py


class Hdf5File:
    """A new hdf5 file: `with Hdf5File(path) as file: file.create_dataset(…)`."""

    def __init__(self, path: Path) -> None:
        self._output = _ErrorKeepingFile(path)
        self._file = h5py.File(self._output, "w")

    def create_dataset(self, name: str, *arguments: Any, **settings: Any) -> Any:
        """Create a dataset, as `h5py.Group.create_dataset` does.

        Raises:
            OSError: Earlier data could not be written.

        """
        self.check()
        return self._file.create_dataset(name, *arguments, **settings)

    def check(self) -> None:
        """Raise the first error of writing, if there was one."""
        if self._output.problem is not None:
            raise self._output.problem

    def close(self) -> None:
        """Finish the file.

        Raises:
            OSError: Some data could not be written.

        """
        try:
            self._file.close()
        finally:
            self._output.close()
        self.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        try:
            self._file.close()
        finally:
            self._output.close()


class _ErrorKeepingFile:
    """A file that takes all writes; after the first error the rest is dropped."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=0)
        self.problem: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self.problem is None and done < len(view):
                done += self._file.write(view[done:]) or 0
        except OSError as problem:
            self.problem = problem
        return len(view)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size) or b""

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = self._file.readinto(view) or 0
        view[count:] = bytes(len(view) - count)  # what was dropped
        return len(view)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int) -> int:
        try:
            self._file.truncate(size)
        except OSError as problem:
            self.problem = self.problem or problem
        return size

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        self._file.close()
