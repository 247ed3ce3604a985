"""Any model on disk, whatever its format: look at the files and pick the reader.

    native, hdf5, manylangs, archive  ->  formats.models.open  ->  embedder

A folder of ours has a config.json with `polyseme_format`; ELMoForManyLangs has encoder.pkl; all others
(bilm-tf, AllenNLP, NLPL) have an .hdf5 and its options. A zip holds the files of one such folder.
"""

from __future__ import annotations

import difflib
import logging
from dataclasses import replace
from pathlib import Path
from zipfile import is_zipfile

import h5py

from polyseme.config import read_values
from polyseme.errors import FormatError, PolysemeError, UsageError
from polyseme.formats.models import hdf5, manylangs, native
from polyseme.formats.models.archive import unpack_archive
from polyseme.formats.models.bundled import FOLDER, bundled_names, verify_bundled
from polyseme.formats.models.precision import set_precision
from polyseme.formats.models.pretrained import OpenedFile, Pretrained
from polyseme.formats.safe_hdf5 import open_hdf5
from polyseme.model.fast.weight_versions import WeightSnapshot

HDF5 = (".hdf5", ".h5")
LOOKED_FOR = (
    "config.json and model.safetensors (Polyseme), *.hdf5 and options.json (bilm-tf, AllenNLP, NLPL), "
    "or config.json, encoder.pkl and token_embedder.pkl (ELMoForManyLangs)"
)
logger = logging.getLogger(__name__)
PARTS = (".json", ".safetensors", ".pkl", ".dic", ".txt", ".gz")  # files that lie beside a model's weights


def open_pretrained(
    path: str | Path, options: str | Path | None = None, *, precision: str | None = "fp32"
) -> Pretrained:
    """Open the model at `path`: a folder, a .zip or an .hdf5 file, or the name of one that comes with us.

    options: the options.json of an .hdf5 file, where it does not lie beside it under its usual name.
    precision: fp32, bf16, int8 or auto, or None for that of the file: see `set_precision`.
    """
    model = _open(path, options)
    set_precision(model, precision)
    opened = OpenedFile(
        reopen_pretrained,
        make_portable(path),
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


def _open(path: str | Path, options: str | Path | None) -> Pretrained:
    """The model at `path`, as it is stored."""
    place = resolve_model_path(path)
    described = Path(options).expanduser() if options is not None else None
    if described is not None and not described.exists():
        raise FormatError(_describe_missing(described))
    if place.is_dir():
        return _open_folder(place, described)
    if place.suffix.lower() in HDF5 or h5py.is_hdf5(place):
        return _open_hdf5(place, described)
    if place.suffix.lower() == ".zip" or (place.suffix.lower() not in PARTS and is_zipfile(place)):
        return _open_zip(place, described)
    advice = (
        f"It looks like a part of a model: load its folder, {place.absolute().parent}."
        if place.suffix.lower() in PARTS
        else f"Expected a folder, a .zip or an .hdf5 file, with {LOOKED_FOR}."
    )
    raise FormatError(f"{place}: not a model in a format that Polyseme knows. {advice}")


def resolve_model_path(path: str | Path) -> Path:
    """The path itself, or the folder of the model of that name that comes with us; what lies there wins."""
    place = Path(path).expanduser()
    if str(path) not in bundled_names():
        if not place.exists():
            raise FormatError(_describe_missing(place))
        return place
    if not place.exists():
        return verify_bundled(str(path))
    logger.warning(
        "%s: the one in this folder is opened, not the model of that name that comes with Polyseme. "
        "For that one, work in another folder.",
        place,
    )
    return place


def locate_model(path: str | Path) -> Path:
    """Where a model lies, by its path or its name, without a look at it; see `named`."""
    place = Path(path).expanduser()
    return FOLDER / path if not place.exists() and str(path) in bundled_names() else place


def make_portable(path: str | Path) -> str:
    """A path that stays right in another folder, or the name of a model that comes with us; see `named`."""
    place = Path(path).expanduser()
    return str(place.absolute()) if place.exists() else str(path)


def weights_prefix(weights: Path) -> str:
    """X of X_weights.hdf5 and X.hdf5: what the names of its options and its vocabulary begin with."""
    return weights.stem.removesuffix("_weights")


def _open_zip(path: Path, options: Path | None) -> Pretrained:
    """Open the model in a zip; its tensors are copies, since the unpacked files go away."""
    with unpack_archive(path) as folder:
        try:
            model = _open_folder(folder, options, copy=True)
        except PolysemeError as problem:  # the user knows the zip, not the temporary folder
            raise type(problem)(str(problem).replace(str(folder), str(path))) from None
    return replace(model, origin={**model.origin, "archive": path.name})


def _open_folder(folder: Path, options: Path | None, *, copy: bool = False) -> Pretrained:
    files = sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    ours = native.is_native(folder) or (folder / native.WEIGHTS).is_file()
    if options is not None and (ours or manylangs.is_manylangs(folder)):
        raise UsageError(f"{folder}: options go with .hdf5 files; this model has its own. Leave them out.")
    if ours:
        return native.read(folder, copy=copy)
    if manylangs.is_manylangs(folder):
        return manylangs.read(folder)
    weights = [file for file in files if file.suffix.lower() in HDF5]
    if weights:
        return _open_hdf5(_choose_weights(weights, folder), options)
    entries = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    more = f" and {len(entries) - 8} more" if len(entries) > 8 else ""
    raise FormatError(
        f"{folder}: not a model in a format that Polyseme knows. Looked for {LOOKED_FOR}; "
        f"found {', '.join(entries[:8]) or 'nothing'}{more}."
    )


def _open_hdf5(weights: Path, options: Path | None) -> Pretrained:
    return hdf5.read(weights, options or _options_of(weights), _vocabulary_of(weights))


def _choose_weights(weights: list[Path], folder: Path) -> Path:
    """The one of the hdf5 files that is a model: others may hold token vectors or a softmax."""
    if len(weights) == 1:
        return weights[0]
    models = [file for file in weights if _holds_stacks(file)]
    usual = [file for file in models if file.name == "model.hdf5"]
    if len(models) == 1 or usual:
        return (usual or models)[0]
    if not models:
        raise FormatError(
            f"{folder}: none of {_names(weights)} is a whole model (a group RNN_0 and what belongs to it)."
        )
    raise FormatError(
        f"{folder}: several models, {_names(models)}. Say which one: load(weights, options=…) with the "
        "path of one of them and of its options.json."
    )


def _holds_stacks(file: Path) -> bool:
    try:
        with open_hdf5(file) as opened:
            return "RNN_0" in opened
    except FormatError:
        return False


def _options_of(weights: Path) -> Path:
    """The options of `weights` in the same folder: by name, else the only JSON with an lstm section."""
    folder = weights.parent
    usual = [f"{weights_prefix(weights)}_options.json", f"{weights.stem}_options.json", "options.json"]
    for name in usual:
        if (folder / name).is_file():
            return folder / name
    candidates = [file for file in sorted(folder.glob("*.json")) if _has_lstm_section(file)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise FormatError(
            f"{weights}: which of {_names(candidates)} describes it? Say load(weights, options=…)."
        )
    raise FormatError(
        f"{weights}: its options are missing. Looked beside it for {usual[0]}, options.json, or another "
        "*.json with an lstm section. Put them there, or say load(weights, options=…)."
    )


def _has_lstm_section(file: Path) -> bool:
    try:
        return isinstance(read_values(file).get("lstm"), dict)
    except PolysemeError:
        return False


def _vocabulary_of(weights: Path) -> Path | None:
    """The vocabulary of `weights` in the same folder: by name, else the only one, else None."""
    folder = weights.parent
    for stem in (f"{weights_prefix(weights)}_vocab", f"{weights.stem}_vocab", "vocab"):
        for ending in (".txt", ".txt.gz"):
            if (folder / f"{stem}{ending}").is_file():
                return folder / f"{stem}{ending}"
    candidates = [*folder.glob("*vocab*.txt"), *folder.glob("*vocab*.txt.gz")]
    return candidates[0] if len(candidates) == 1 and candidates[0].is_file() else None


def _describe_missing(path: Path) -> str:
    """Say that `path` is not there, with the names in its folder that look most like it."""
    folder, names = path.absolute().parent, bundled_names()
    if not folder.is_dir():
        return f"{path}: there is no such file or folder; {folder} is missing too. Check the path."
    if path.name != str(path) or path.suffix:  # only a bare word may be meant as a name
        names = []
    near = difflib.get_close_matches(path.name, [*names, *(entry.name for entry in folder.iterdir())], n=3)
    guess = f" Did you mean {' or '.join(near)}?" if near else "" if names else " Check the path."
    no_model = f", and no such model: there are {', '.join(names)}" if names else ""
    return f"{path}: there is no such file or folder{no_model}.{guess}"


def _names(files: list[Path]) -> str:
    return ", ".join(file.name for file in files)
