"""Verbs about models: info, cache, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from polyseme.api.embedding import loaded
from polyseme.elmo import BATCH_TOKENS, Elmo
from polyseme.errors import UsageError
from polyseme.formats.models.card import describe
from polyseme.formats.models.open import locate_model, open_pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.vectors.word_file import WORDS_FILE as WORDS
from polyseme.io.atomic import check_output_file, check_output_path
from polyseme.text.vocab import Vocab


def info(path: str | Path, options: str | Path | None = None) -> dict[str, Any]:
    """What a model is: its facts for people, and its whole config."""
    model = open_pretrained(path, options)
    return {
        "path": str(path),
        "facts": describe(model),
        "config": model.config.model_dump(mode="json"),
        "layers": model.config.layers,
        "size": model.config.size,
        "parameters": sum(tensor.numel() for tensor in model.network.state_dict().values()),
        "vocabulary": len(model.vocab) if model.vocab else None,
        "softmax": model.softmax is not None,
        "origin": dict(model.origin),
    }


def runtime() -> dict[str, str]:
    """What runs the time loop on this machine, and why."""
    import torch

    from polyseme.model.fast.kernels import native

    why = native.unavailable_reason()
    path = (
        f"C ({native.active_instruction_set()})"
        if why is None
        else f"torch, since the native part is not used: {why}"
    )
    return {
        "time loop": path,
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "devices": "CUDA" if torch.cuda.is_available() else "CPU",
    }


def cache(model: Elmo | str | Path, vocab: str | Path, out: str | Path, *, force: bool = False) -> int:
    """Write the vector, before any context, of every word of `vocab` (one a line); how many there are.

    The file is bilm-tf's: `Elmo.cache.read` and bilm-tf take it, with the same vocabulary.
    """
    place = Path(out).expanduser()
    check_output_file(place, force=force)
    words = Vocab.read(vocab)
    loaded(model, BATCH_TOKENS).cache.write(place, words, force=force)
    return len(words)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: Literal["native", "hdf5"] = "native",
    precision: str | None = None,
    tables: bool = False,
    options: str | Path | None = None,
    force: bool = False,
) -> None:
    """Read the model at `source`, whatever its format, and write it to `target`; see `Elmo.save`.

    The vectors of words that lie beside a model go along into a folder of ours.
    """
    if to not in ("native", "hdf5"):
        raise UsageError(f"There is no format {to!r}. Convert to native or to hdf5.")
    place = Path(target).expanduser()
    check_output_path(place, force=force)
    model = open_pretrained(source, options, precision=None)
    words = locate_model(source) / WORDS
    kept = words.read_bytes() if to == "native" and words.exists() else None  # source may be the target
    save_pretrained(model, place, to=to, precision=precision, tables=tables, force=force)
    if kept is not None:
        (place / WORDS).write_bytes(kept)
