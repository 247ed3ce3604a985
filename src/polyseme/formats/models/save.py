"""Save a model as a Polyseme folder, as hdf5 for bilm-tf, AllenNLP and simple_elmo, or as ONNX.

    formats.models.pretrained  ->  formats.models.save  ->  native, hdf5, onnx

Everything that can be checked is checked before the first byte is written.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import get_args

from polyseme.choices import ModelFormat
from polyseme.config import suggest
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models import hdf5, native, onnx
from polyseme.formats.models.open import find_weights_prefix
from polyseme.formats.models.precision import has_narrow_tables
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.atomic import check_output_file, new_file, new_folder, new_group
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.fast.quantisation import PRECISIONS
from polyseme.text.validate import check_path

logger = logging.getLogger(__name__)
FORMATS: dict[str, ModelFormat] = {name: name for name in get_args(ModelFormat)}
ENDINGS: dict[str, ModelFormat] = {
    ".hdf5": "hdf5",
    ".h5": "hdf5",
    ".onnx": "onnx",
}  # of files; other names are folders
WEIGHTS, OPTIONS, VOCAB = "model.hdf5", "options.json", "vocab.txt"


def find_model_format(path: Path, to: str | None) -> ModelFormat:
    """The format of an output: the one named, or the one with its ending.

    Raises:
        UsageError: If there is no such format, or the ending is that of another one.

    """
    ending = path.suffix.lower()
    expected = ENDINGS.get(ending, "native")
    chosen = expected if to is None else FORMATS.get(to)
    if chosen is None:
        raise UsageError(f"to is {to!r}, expected {', '.join(FORMATS)}.{suggest(str(to), list(FORMATS))}")
    if chosen == "native" and (ending == ".zip" or expected != "native"):
        advice = "" if ending == ".zip" else f', or use `to="{expected}"`'
        raise UsageError(f"{path}: the native format is a folder. Leave out {path.suffix}{advice}.")
    if (chosen == "onnx") != (expected == "onnx"):
        raise UsageError(f'{path}: an ONNX file ends in .onnx, and `to` is "{chosen}". Choose another name.')
    return chosen


def save_pretrained(
    model: Pretrained,
    path: str | Path,
    to: str | None = None,
    force: bool = False,
    *,
    precision: str | None = None,
    tables: bool = False,
    words: bytes | None = None,
    progress: OnProgress = ignore_progress,
) -> None:
    """Write `model` to `path`, completely or not at all.

    Args:
        model: The model.
        path: A new folder; or, for hdf5, a file X.hdf5 or X_weights.hdf5, with X_options.json and X_vocab.txt
            beside it; or a file X.onnx.
        to: "native" for a Polyseme folder. "hdf5" for model.hdf5, options.json and vocab.txt, as bilm-tf,
            AllenNLP, simple_elmo and NLPL have them. "onnx" for one file for onnxruntime. None: by the ending
            of `path`.
        force: Replace what exists.
        precision: "fp32", "bf16" or "int8" for the large weights of a Polyseme folder. None keeps the model's
            precision, so that the folder gives the same vectors. hdf5 and onnx hold fp32 only.
        tables: Also write the tables of words, characters and softmax in that precision: they take less
            space, and become fp32 when opened. With `precision=None`, they are if that loses nothing.
        words: The content of words.safetensors, which a Polyseme folder gets, too.
        progress: Receives progress events.

    Raises:
        UsageError: If the arguments do not fit, or something exists at `path`.
        FormatError: If the format cannot represent the model.
        MissingExtraError: If onnx is not installed.

    """
    out = Path(check_path(path, "the output")).expanduser()
    to = find_model_format(out, to)
    if precision is None:
        precision, tables = choose_precision(model, tables=tables)
        if to != "native" and precision != "fp32":
            logger.warning(
                "%s: %s holds fp32 weights only; its vectors differ slightly from those of this %s model.",
                out,
                to,
                precision,
            )
            precision, tables = "fp32", False
    check_precision(precision)
    if to != "native" and precision != "fp32":
        advice = (
            "leave out `precision` and quantise the file with onnxruntime.quantization.quantize_dynamic"
            if to == "onnx"
            else "leave out `precision`"
        )
        raise UsageError(f"{to} cannot hold {precision}. Use the native format, or {advice}.")
    if tables and precision == "fp32":
        raise UsageError("`tables` needs a `precision` of bf16 or int8.")
    if to == "native":
        native.write(
            model, out, force=force, precision=precision, tables=tables, words=words, progress=progress
        )
        return
    if to == "onnx":
        with new_file(out, force=force) as new:
            onnx.write(model, new, progress)
        return
    hdf5.check_representable(model)
    _check_marks(model)
    if out.suffix.lower() in ENDINGS:
        _write_files(model, out, force=force, progress=progress)
    else:
        with new_folder(out, force=force, known_names=(WEIGHTS, OPTIONS, VOCAB)) as new:
            hdf5.write(model, new / WEIGHTS, new / OPTIONS, progress)
            if model.vocab is not None:
                model.vocab.write(new / VOCAB)


def choose_precision(model: Pretrained, *, tables: bool = False) -> tuple[str, bool]:
    """The precision of a model, and whether its tables can be stored in it without losing anything."""
    return model.network.precision, tables or has_narrow_tables(model, model.network.precision)


def check_precision(precision: str) -> str:
    """Return `precision` if weights can be saved in it, else raise `UsageError`."""
    if precision not in PRECISIONS:
        known = list(PRECISIONS)
        raise UsageError(
            f"precision is {precision!r}, expected {' or '.join(known)}.{suggest(precision, known)}"
        )
    return precision


def _check_marks(model: Pretrained) -> None:
    """Refuse other begin, end and unknown marks than those that programs for hdf5 expect."""
    vocab = model.vocab
    if vocab is not None and (vocab.begin, vocab.end, vocab.unknown) != ("<S>", "</S>", "<UNK>"):
        raise FormatError(
            "The bilm-tf hdf5 layout cannot represent a vocabulary with "
            f"{vocab.begin} {vocab.end} {vocab.unknown}, only with <S> </S> <UNK>. "
            'Use the native format: `to="native"`.'
        )


def _write_files(model: Pretrained, weights: Path, *, force: bool, progress: OnProgress) -> None:
    """Write the three files as one: an old vocabulary would be taken for this model's."""
    names = [weights.name, *(f"{find_weights_prefix(weights)}_{rest}" for rest in (OPTIONS, VOCAB))]
    for name in names:
        check_output_file(weights.with_name(name), force=force)
    with new_group(weights.parent, weights.name, known_names=names) as new:
        hdf5.write(model, new / names[0], new / names[1], progress)
        if model.vocab is not None:
            model.vocab.write(new / names[2])
