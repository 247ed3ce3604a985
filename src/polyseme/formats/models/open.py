"""Open a model of any format: look at the files and choose the reader.

    native, hdf5, manylangs, archive, nlpl, hub  ->  formats.models.open  ->  elmo

A Polyseme folder has a config.json with `polyseme_format`; ELMoForManyLangs has encoder.pkl; the others
(bilm-tf, AllenNLP, NLPL) have an .hdf5 file and its options. A zip contains the files of one such folder.
A name such as user/repository is fetched from the Hugging Face Hub, if there is no such path.
"""

from __future__ import annotations

import difflib
import logging
import os
from dataclasses import replace
from pathlib import Path
from zipfile import is_zipfile

import h5py

from polyseme.config import read_values
from polyseme.errors import FormatError, PolysemeError, UsageError
from polyseme.formats.models import hdf5, hub, manylangs, native
from polyseme.formats.models.archive import unpack_archive
from polyseme.formats.models.bundled import FOLDER, list_bundled, verify_bundled
from polyseme.formats.models.nlpl import find_nlpl
from polyseme.formats.models.precision import set_precision
from polyseme.formats.models.pretrained import OpenedFile, Pretrained
from polyseme.formats.safe_hdf5 import open_hdf5
from polyseme.io.atomic import complete_write
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.fast.weight_versions import WeightSnapshot
from polyseme.text.validate import check_path

HDF5_ENDINGS = (".hdf5", ".h5")
KNOWN_FILES = (
    "config.json and model.safetensors (Polyseme), *.hdf5 and options.json (bilm-tf, AllenNLP, NLPL), "
    "or config.json, encoder.pkl and token_embedder.pkl (ELMoForManyLangs)"
)
PART_ENDINGS = (".json", ".safetensors", ".pkl", ".dic", ".txt", ".gz")  # files of a model's folder
OTHER_FOLDERS = {  # what else Polyseme writes, by a file in it
    "task.json": "a task model, not an ELMo: `polyseme.load_task(path)`",
    "index.json": "an index, not an ELMo: `polyseme.open_index(path)`",
}
logger = logging.getLogger(__name__)


def open_pretrained(
    path: str | Path,
    options: str | Path | None = None,
    *,
    precision: str | None = "fp32",
    revision: str | None = None,
    cache: str | Path | None = None,
    offline: bool = False,
    progress: OnProgress = ignore_progress,
) -> Pretrained:
    """Open a model of any known format.

    Args:
        path: A folder, a .zip or .hdf5 file, the name of a bundled model, `nlpl:193` for a zip of NLPL, or
            user/repository of the Hub.
        options: The options.json of an .hdf5 file; None if it is beside it under its usual name.
        precision: "fp32", "bf16", "int8", "auto", or None for that of the file; see `set_precision`.
        revision: A branch, tag or commit of a repository.
        cache: The folder of the Hub's cache; None is that of huggingface_hub.
        offline: Take a repository from the cache only.
        progress: Receives progress events.

    Returns:
        The model.

    Raises:
        FormatError: If there is no model at `path`, or it is damaged.

    """
    source_path = Path(check_path(path, "the model", "a path or the name of a model")).expanduser()
    complete_write(source_path)  # a path of which a killed process left parts is no repository
    repository = hub.choose_revision(path, revision, cache)
    if repository is None:
        model, source = _open(path, options, progress), make_portable(path)
    else:
        if options is not None:
            raise UsageError(f"{path}: `options` is for .hdf5 files only. Leave it out.")
        folder = hub.fetch_repository(repository, cache=cache, offline=offline)
        model = hub.read(folder, repository, progress)
        # By its commit, so that another process opens the same model; in a cache of its own by its path.
        source = model.origin["repository"] if cache is None else str(folder.absolute())
    set_precision(model, precision)
    opened = OpenedFile(
        reopen_pretrained,
        source,
        None if options is None else str(Path(options).expanduser().absolute()),
        model.network.precision,
        WeightSnapshot(model.weights()),
    )
    return replace(model, opened=opened)


def reopen_pretrained(path: str, options: str | None, precision: str, fingerprint: str) -> Pretrained:
    """Open a model that was pickled as its path.

    Raises:
        FormatError: If the model at `path` is not the one that was pickled.

    """
    model = open_pretrained(path, options, precision=precision)
    if model.fingerprint() != fingerprint:
        raise FormatError(
            f"{path}: not the model that was pickled; it was replaced since. Load it again with "
            "polyseme.load, and pickle that."
        )
    return model


def _open(path: str | Path, options: str | Path | None, progress: OnProgress) -> Pretrained:
    """Open a model in the precision in which it is stored."""
    source = resolve_model_path(path)
    options_path = Path(options).expanduser() if options is not None else None
    if options_path is not None and not os.path.exists(options_path):
        raise FormatError(_describe_missing(options_path))
    ending = source.suffix.lower()
    if source.is_dir():
        return _open_folder(source, options_path, progress)
    if ending in HDF5_ENDINGS or h5py.is_hdf5(source):
        return _open_hdf5(source, options_path, progress)
    if ending == ".zip" or (ending not in PART_ENDINGS and is_zipfile(source)):
        return _open_zip(source, options_path, progress)
    if ending == ".onnx":
        raise FormatError(f"{source}: ONNX is written, not read. Load the model it was made from.")
    advice = (
        f"It looks like a part of a model: load its folder, {source.absolute().parent}."
        if ending in PART_ENDINGS
        else f"Expected a folder, a .zip or an .hdf5 file, with {KNOWN_FILES}."
    )
    raise FormatError(f"{source}: not a model in a known format. {advice}")


def resolve_model_path(path: str | Path) -> Path:
    """The path of a model: an existing file or folder, that of a bundled or fetched model, or a zip of NLPL.

    Raises:
        FormatError: If there is none.

    """
    source = Path(check_path(path, "the model", "a path or the name of a bundled model")).expanduser()
    if str(path) not in list_bundled():
        complete_write(source)
        if os.path.exists(source):  # False for a name that is too long, too
            return source
        if (archive := find_nlpl(str(path))) is not None:
            return archive
        if (repository := hub.find_repository(path)) is not None:
            return hub.fetch_repository(repository)
        raise FormatError(_describe_missing(source))
    if not os.path.exists(source):
        return verify_bundled(str(path))
    logger.warning(
        "%s: using the file or folder of that name, not the bundled model. "
        "To use the bundled model, run in another folder.",
        source,
    )
    return source


def locate_model(path: str | Path) -> Path:
    """The path of a model without any check; see `resolve_model_path`."""
    source = Path(path).expanduser()
    repository = hub.find_repository(path)
    if repository is not None:
        return hub.find_cached(repository) or source
    return FOLDER / path if not os.path.exists(source) and str(path) in list_bundled() else source


def make_portable(path: str | Path) -> str:
    """An absolute path, valid in any working folder; the name of a bundled model stays as it is."""
    source = Path(path).expanduser()
    return str(source.absolute()) if os.path.exists(source) else str(path)


def find_weights_prefix(weights: Path) -> str:
    """X of X_weights.hdf5 or X.hdf5, with which the names of its options and vocabulary begin."""
    return weights.stem.removesuffix("_weights")


def _open_zip(path: Path, options: Path | None, progress: OnProgress) -> Pretrained:
    """Open the model in a zip; its tensors are copied, since the unpacked files are removed."""
    with unpack_archive(path) as folder:
        try:
            model = _open_folder(folder, options, progress, copy=True)
        except PolysemeError as problem:  # name the zip, not the temporary folder
            raise type(problem)(str(problem).replace(str(folder), str(path))) from None
    return replace(model, origin={**model.origin, "archive": path.name})


def _open_folder(
    folder: Path, options: Path | None, progress: OnProgress, *, copy: bool = False
) -> Pretrained:
    files = sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    is_native = native.is_native(folder) or (folder / native.WEIGHTS).is_file()
    if options is not None and (is_native or manylangs.is_manylangs(folder)):
        raise UsageError(f"{folder}: `options` is for .hdf5 files only. Leave it out.")
    if is_native:
        return native.read(folder, copy=copy, progress=progress)
    if manylangs.is_manylangs(folder):
        return manylangs.read(folder)
    weights = [file for file in files if file.suffix.lower() in HDF5_ENDINGS]
    if weights:
        return _open_hdf5(_choose_weights(weights, folder), options, progress)
    for name, description in OTHER_FOLDERS.items():
        if (folder / name).is_file():
            raise FormatError(f"{folder}: {description}.")
    entries = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    more = f" and {len(entries) - 8} more" if len(entries) > 8 else ""
    raise FormatError(
        f"{folder}: not a model in a known format. Looked for {KNOWN_FILES}; "
        f"found {', '.join(entries[:8]) or 'nothing'}{more}."
    )


def _open_hdf5(weights: Path, options: Path | None, progress: OnProgress) -> Pretrained:
    return hdf5.read(weights, options or _find_options(weights), _find_vocabulary(weights), progress)


def _choose_weights(weights: list[Path], folder: Path) -> Path:
    """The hdf5 file that is a model: others may contain token vectors or a softmax."""
    if len(weights) == 1:
        return weights[0]
    models = [file for file in weights if _holds_stacks(file)]
    usual = [file for file in models if file.name == "model.hdf5"]
    if len(models) == 1 or usual:
        return (usual or models)[0]
    if not models:
        raise FormatError(
            f"{folder}: none of {_join_names(weights)} is a model (with a group RNN_0). Check the path."
        )
    raise FormatError(
        f"{folder}: several models, {_join_names(models)}. Load one of them by its path, with its "
        "options.json as `options`."
    )


def _holds_stacks(file: Path) -> bool:
    try:
        with open_hdf5(file) as opened:
            return "RNN_0" in opened
    except FormatError:
        return False


def _find_options(weights: Path) -> Path:
    """The options of `weights` in the same folder: by name, else the only JSON with an lstm section."""
    folder = weights.parent
    usual = [f"{find_weights_prefix(weights)}_options.json", f"{weights.stem}_options.json", "options.json"]
    for name in usual:
        if (folder / name).is_file():
            return folder / name
    candidates = [file for file in sorted(folder.glob("*.json")) if _has_lstm_section(file)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise FormatError(
            f"{weights}: which of {_join_names(candidates)} describes it? Name it with `options`."
        )
    raise FormatError(
        f"{weights}: its options are missing. Looked in the same folder for {usual[0]}, options.json, or "
        "another *.json with an lstm section. Copy them there, or name them with `options`."
    )


def _has_lstm_section(file: Path) -> bool:
    try:
        return isinstance(read_values(file).get("lstm"), dict)
    except PolysemeError:
        return False


def _find_vocabulary(weights: Path) -> Path | None:
    """The vocabulary of `weights` in the same folder: by name, else the only one, else None."""
    folder = weights.parent
    for stem in (f"{find_weights_prefix(weights)}_vocab", f"{weights.stem}_vocab", "vocab"):
        for ending in (".txt", ".txt.gz"):
            if (folder / f"{stem}{ending}").is_file():
                return folder / f"{stem}{ending}"
    candidates = [*folder.glob("*vocab*.txt"), *folder.glob("*vocab*.txt.gz")]
    return candidates[0] if len(candidates) == 1 and candidates[0].is_file() else None


def _describe_missing(path: Path) -> str:
    """The error message for a missing path, with similar names in its folder."""
    folder, names = path.absolute().parent, list_bundled()
    if not folder.is_dir():
        return f"{path}: no such file or folder; {folder} does not exist either. Check the path."
    if path.name != str(path) or path.suffix:  # only a bare word may be the name of a model
        names = []
    near = difflib.get_close_matches(path.name, [*names, *(entry.name for entry in folder.iterdir())], n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else "" if names else " Check the path."
    bundled = f", and no bundled model of that name (there are {', '.join(names)})" if names else ""
    return f"{path}: no such file or folder{bundled}.{hint}{hub.describe_unasked(str(path))}"


def _join_names(files: list[Path]) -> str:
    return ", ".join(file.name for file in files)
