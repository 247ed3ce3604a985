"""A model of a pipeline: loaded when it is first needed, saved inside the pipeline.

    integrations.spacy.vectors, integrations.spacy.tok2vec, integrations.spacy.task_component  ->  here

spaCy builds the components of a saved pipeline from its config before it reads their data. The path in the
config may be gone by then, so nothing is loaded before it is used. A bundled ELMo is saved by its name, with
a fingerprint; others are copied, without the layer that predicts words, which vectors do not need.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Generic, TypeVar

import srsly

from polyseme.integrations.spacy.documents import raise_value_errors

if TYPE_CHECKING:
    from polyseme.elmo import Elmo
    from polyseme.tasks.task_model import TaskModel

AnyModel = TypeVar("AnyModel")
BUNDLED = "bundled.json"


class StoredModel(Generic[AnyModel]):
    """A model by its path, until it is loaded.

    Args:
        path: What to load at first use.
        load: Loads a path, or a folder that `save` wrote; the flag says whether the folder will be removed.
        save: Writes the model into a new folder.

    """

    def __init__(
        self, path: str, load: Callable[[str, bool], AnyModel], save: Callable[[AnyModel, Path], None]
    ) -> None:
        self.path = path
        self._load, self._save = load, save
        self._model: AnyModel | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    @property
    def model(self) -> AnyModel:
        """The model.

        Raises:
            ValueError: If there is none at the path.

        """
        if self._model is None:
            with raise_value_errors():
                self._model = self._load(self.path, False)
        return self._model

    def to_disk(self, folder: Path) -> None:
        """Write the model into a folder, which must not exist."""
        with raise_value_errors():
            self._save(self.model, folder)

    def from_disk(self, folder: Path, *, temporary: bool = False) -> None:
        """Load what `to_disk` wrote.

        Args:
            folder: The folder.
            temporary: Whether it will be removed.

        Raises:
            ValueError: If it is not there, or is damaged.

        """
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder. Is the pipeline complete?")
        with raise_value_errors():
            self._model = self._load(str(folder), temporary)

    def to_bytes(self) -> bytes:
        """The files of `to_disk` as bytes."""
        with TemporaryDirectory() as folder:
            root = Path(folder) / "model"
            self.to_disk(root)
            files = {
                path.relative_to(root).as_posix(): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file()
            }
        data: bytes = srsly.msgpack_dumps(files)
        return data

    def from_bytes(self, data: bytes) -> None:
        """Load what `to_bytes` returned.

        Raises:
            ValueError: If it is something else.

        """
        files = srsly.msgpack_loads(data)
        if not isinstance(files, dict):
            raise ValueError("The bytes hold no model of Polyseme. Are they of another component?")
        with TemporaryDirectory() as folder:
            root = (Path(folder) / "model").resolve()
            for name, content in files.items():
                path = (root / name).resolve()
                if not path.is_relative_to(root):
                    raise ValueError(f"The bytes hold a file {name!r:.60}, which is outside of its folder.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.from_disk(root, temporary=True)


def store_elmo(path: str, precision: str | None = None, device: str = "cpu") -> StoredModel[Elmo]:
    """An ELMo by its path or bundled name."""
    return StoredModel(path, ElmoLoader(precision, device), save_elmo)


def store_task(path: str, device: str = "cpu") -> StoredModel[TaskModel]:
    """A task model by the path of its folder."""
    return StoredModel(path, TaskLoader(device), save_task)


class ElmoLoader:
    """Loads an ELMo in a precision to a device."""

    def __init__(self, precision: str | None, device: str) -> None:
        self.precision, self.device = precision, device

    def __call__(self, path: str, temporary: bool) -> Elmo:
        """Load a path, or a folder of `save_elmo`; from a `temporary` one all tensors are copied."""
        from polyseme.elmo import Elmo, load

        marker = Path(path) / BUNDLED
        if marker.is_file():
            values = json.loads(marker.read_text(encoding="utf-8"))
            elmo = load(values["name"], precision=self.precision, device=self.device)
            if elmo.model.fingerprint() != values["fingerprint"]:
                raise ValueError(
                    f"{path}: the bundled model {values['name']!r} is another one than the pipeline was "
                    "saved with. Install the version of Polyseme that it was made with."
                )
            return elmo
        if not temporary:
            return load(path, precision=self.precision, device=self.device)
        from polyseme.formats.models import native
        from polyseme.formats.models.precision import set_precision

        model = native.read(Path(path), copy=True)
        set_precision(model, self.precision)
        return Elmo(model).to(self.device)


def save_elmo(elmo: Elmo, folder: Path) -> None:
    """Write an ELMo, or only the name of a bundled one."""
    from polyseme.formats.models.bundled import list_bundled
    from polyseme.formats.models.save import save_pretrained
    from polyseme.io.atomic import new_folder

    if elmo.path not in list_bundled():
        save_pretrained(replace(elmo.model, softmax=None), folder, force=True)
        return
    with new_folder(folder, force=True, known_names=(BUNDLED,)) as new:
        values = {"name": elmo.path, "fingerprint": elmo.model.fingerprint()}
        (new / BUNDLED).write_text(json.dumps(values) + "\n", encoding="utf-8")


class TaskLoader:
    """Loads a task model to a device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, path: str, temporary: bool) -> TaskModel:
        """Load a task folder; from a `temporary` one the tensors of its ELMo are copied."""
        from polyseme.tasks.task_folder import ELMO
        from polyseme.tasks.task_model import load_task

        elmo = Path(path) / ELMO
        copied = ElmoLoader(None, self.device)(str(elmo), True) if temporary and elmo.is_dir() else None
        return load_task(path, copied, device=self.device)


def save_task(model: TaskModel, folder: Path) -> None:
    """Write a task folder with its ELMo."""
    model.save(folder, force=True)
