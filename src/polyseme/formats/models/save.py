"""Save a model as a Polyseme folder, or as hdf5 for bilm-tf, AllenNLP and simple_elmo.

    formats.models.pretrained  ->  formats.models.save  ->  native, hdf5

Everything that can be checked is checked before the first byte is written.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import get_args

from polyseme.choices import ModelFormat
from polyseme.config import suggest
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models import hdf5, native
from polyseme.formats.models.open import find_weights_prefix
from polyseme.formats.models.precision import has_narrow_tables
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.atomic import check_output_file, new_folder, new_group
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.fast.quantisation import PRECISIONS
from polyseme.text.validate import check_path

logger = logging.getLogger(__name__)
FORMATS = get_args(ModelFormat)
WEIGHTS, OPTIONS, VOCAB = "model.hdf5", "options.json", "vocab.txt"


def save_pretrained(
    model: Pretrained,
    path: str | Path,
    to: str = "native",
    force: bool = False,
    *,
    precision: str | None = None,
    tables: bool = False,
    progress: OnProgress = ignore_progress,
) -> None:
    """Write `model` to `path`, completely or not at all.

    Args:
        model: The model.
        path: A new folder; or, for hdf5, a file X.hdf5 or X_weights.hdf5, with X_options.json and X_vocab.txt
            beside it.
        to: "native" for a Polyseme folder. "hdf5" for model.hdf5, options.json and vocab.txt, as bilm-tf,
            AllenNLP, simple_elmo and NLPL have them.
        force: Replace what exists.
        precision: "fp32", "bf16" or "int8" for the large weights of a Polyseme folder. None keeps the model's
            precision, so that the folder gives the same vectors. hdf5 holds fp32 only.
        tables: Also write the tables of words, characters and softmax in that precision: they take less
            space, and become fp32 when opened. With `precision=None`, they are if that loses nothing.
        progress: Receives progress events.

    Raises:
        UsageError: If the arguments do not fit, or something exists at `path`.
        FormatError: If the hdf5 layout cannot represent the model.

    """
    out = Path(check_path(path, "the output")).expanduser()
    if to not in FORMATS:
        raise UsageError(f"to is {to!r}, expected {' or '.join(FORMATS)}.{suggest(to, list(FORMATS))}")
    if to == "native" and out.suffix.lower() in (".hdf5", ".h5", ".zip"):
        raise UsageError(f'{out}: the native format is a folder. Leave out {out.suffix}, or use `to="hdf5"`.')
    if precision is None:
        precision = model.network.precision
        tables = tables or has_narrow_tables(model, precision)
        if to == "hdf5" and precision != "fp32":
            logger.warning(
                "%s: hdf5 holds fp32 weights only; its vectors differ slightly from those of this %s model.",
                out,
                precision,
            )
            precision, tables = "fp32", False
    if precision not in PRECISIONS:
        known = list(PRECISIONS)
        raise UsageError(
            f"precision is {precision!r}, expected {' or '.join(known)}.{suggest(precision, known)}"
        )
    if to != "native" and precision != "fp32":
        raise UsageError(f"hdf5 cannot hold {precision}. Use the native format, or leave out `precision`.")
    if tables and precision == "fp32":
        raise UsageError("`tables` needs a `precision` of bf16 or int8.")
    if to == "native":
        native.write(model, out, force=force, precision=precision, tables=tables, progress=progress)
        return
    hdf5.check_representable(model)
    _check_marks(model)
    if out.suffix.lower() == ".hdf5":
        _write_files(model, out, force=force, progress=progress)
    else:
        with new_folder(out, force=force, known_names=(WEIGHTS, OPTIONS, VOCAB)) as new:
            hdf5.write(model, new / WEIGHTS, new / OPTIONS, progress)
            if model.vocab is not None:
                model.vocab.write(new / VOCAB)


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
