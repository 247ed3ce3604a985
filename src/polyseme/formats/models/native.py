"""Polyseme's model folder: config.json, model.safetensors, vocab.txt, words.txt, chars.json, README.md.

    formats.models.pretrained  <->  formats.models.native  <->  a folder

Optional are words.safetensors, the mean vectors of words (formats.vectors.word_file), and
sentence.safetensors, how sentences are pooled (formats.models.sentence_file).

config.json has a format version. Older versions stay readable: a change of the layout raises FORMAT and adds
a step that upgrades the older one. A folder states the lowest version that can represent it: 1 for fp32
weights, 2 for bf16 and int8, 3 if the tables have that precision, too, 4 with a word list (words.txt), which
the segmentation needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.config import ModelSettings, parse_settings, read_values
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.card import NO_METADATA, CardMetadata, render_card
from polyseme.formats.models.precision import attach_quantised, pop_quantised, quantise_tensors
from polyseme.formats.models.pretrained import Pretrained, assemble, check_weights
from polyseme.formats.models.sentence_file import (
    SENTENCE_FILE,
    read_sentence_pooling,
    write_sentence_pooling,
)
from polyseme.formats.tensors import read_tensors, write_tensors
from polyseme.formats.vectors.word_file import WORDS_FILE as WORDS
from polyseme.io.atomic import new_folder, new_group
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.json_text import parse_json
from polyseme.model.fast.quantisation import PRECISIONS
from polyseme.text.chars import Alphabet, ByteAlphabet, CodepointAlphabet
from polyseme.text.segment import WordList
from polyseme.text.vocab import Vocab

FORMAT = 4
CONFIG, WEIGHTS, VOCAB, WORD_LIST, CHARS, CARD = (
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "words.txt",
    "chars.json",
    "README.md",
)
FILES = (CONFIG, WEIGHTS, VOCAB, WORD_LIST, CHARS, CARD, WORDS, SENTENCE_FILE)


def is_native(folder: Path) -> bool:
    """Whether `folder` is a Polyseme model."""
    try:
        return "polyseme_format" in read_values(folder / CONFIG)
    except Exception:  # config.json of another program, or damaged
        return False


def read(folder: Path, *, copy: bool = False, progress: OnProgress = ignore_progress) -> Pretrained:
    """Read a model folder; without `copy` the weights are memory-mapped."""
    path = folder / CONFIG
    values = read_values(path)
    version_number = values.get("polyseme_format")
    if version_number is None:
        raise FormatError(f"{path}: polyseme_format is missing. Is it a model of another program?")
    if type(version_number) is not int or not 1 <= version_number <= FORMAT:
        raise FormatError(
            f"{path}: format {version_number!r}, this Polyseme reads 1 to {FORMAT}. "
            f"It was written by polyseme {values.get('polyseme_version', '?')}: upgrade to that version."
        )
    config = parse_settings(ModelSettings, values.get("model"), f"{path}: model")
    weights = folder / WEIGHTS
    tensors = read_tensors(weights, "the model's weights")
    _check_counts(config, tensors, weights)
    if copy:
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    precision = _read_precision(values, path)
    quantised = {} if precision == "fp32" else pop_quantised(tensors, precision, str(weights))
    shapes = {name: tensor for name, tensor in tensors.items() if tensor.is_meta}
    exact = {name: tensors[name] for name in tensors.keys() - shapes.keys()}
    model = assemble(
        config,
        check_weights(exact, str(weights), progress) | shapes,
        alphabet=_read_alphabet(config, folder),
        vocab=_read_vocab(values.get("vocab_marks", {}), folder, simplify=_reads_chinese(config)),
        origin=_parse_texts(values.get("origin", {}), "origin", path),
        source=str(weights),
        word_list=_read_word_list(folder / WORD_LIST) if version_number >= 4 else None,
    )
    if precision != "fp32":
        attach_quantised(model, quantised, precision)
    model.network.memory_mapped = not copy
    if model.vocab is not None and (folder / SENTENCE_FILE).exists():
        pooling = read_sentence_pooling(folder / SENTENCE_FILE, len(model.vocab), config.layers, config.size)
        return replace(model, pooling=pooling)
    return model


def write(
    model: Pretrained,
    folder: Path,
    *,
    force: bool = False,
    precision: str = "fp32",
    tables: bool = False,
    card: CardMetadata = NO_METADATA,
    words: bytes | None = None,
    progress: OnProgress = ignore_progress,
) -> None:
    """Write `model` as a folder, completely or not at all.

    Args:
        model: The model.
        folder: The new folder.
        force: Replace an existing model.
        precision: Precision of the large weights.
        tables: Also write the tables of words, characters and softmax in that precision.
        card: What its card says that the model does not know.
        words: The content of its file of word vectors, if it has one.
        progress: Receives an event for each tensor that is rounded.

    """
    with new_folder(folder, force=force, known_names=FILES) as new:
        if words is not None:
            (new / WORDS).write_bytes(words)
        _write_files(model, new, folder.name, precision, tables=tables, card=card, progress=progress)


def write_into(model: Pretrained, folder: Path) -> None:
    """Write `model` into a folder with other files; what an earlier model left there is replaced as one."""
    with new_group(folder, "model", known_names=FILES) as new:
        _write_files(model, new, folder.name)


def _write_files(
    model: Pretrained,
    new: Path,
    name: str,
    precision: str = "fp32",
    *,
    tables: bool = False,
    card: CardMetadata = NO_METADATA,
    progress: OnProgress = ignore_progress,
) -> None:
    """Write all files of `model` into the folder `new`."""
    values: dict[str, Any] = {
        "polyseme_format": 4 if model.word_list else 1 if precision == "fp32" else 3 if tables else 2,
        "polyseme_version": version("polyseme"),
        "model": model.config.model_dump(mode="json"),
        "origin": dict(model.origin),
    }
    if precision != "fp32":
        values["precision"] = precision
    if model.vocab is not None:
        marks = {"begin": model.vocab.begin, "end": model.vocab.end, "unknown": model.vocab.unknown}
        values["vocab_marks"] = marks
    _write_json(new / CONFIG, values)
    tensors = {
        key: value.detach().cpu().contiguous()
        for key, value in quantise_tensors(model, precision, tables=tables, progress=progress).items()
    }
    size = sum(value.nbytes for value in tensors.values())
    progress(ProgressEvent("writing", detail=f"{size / 1e6:,.0f} MB"))
    write_tensors(new / WEIGHTS, tensors, metadata={"format": "pt"})
    if model.vocab is not None:
        model.vocab.write(new / VOCAB)
    if model.pooling is not None:
        write_sentence_pooling(new / SENTENCE_FILE, model.pooling)
    if model.word_list is not None:
        model.word_list.write(new / WORD_LIST)
    if isinstance(model.alphabet, CodepointAlphabet):
        _write_json(new / CHARS, list(model.alphabet.characters))
    text = render_card(model, name, precision, tables=tables, metadata=card)
    (new / CARD).write_text(text, encoding="utf-8")


def _read_precision(values: Mapping[str, object], path: Path) -> str:
    """The precision in a config of format 2 or higher; format 1 has fp32 only."""
    precision = values.get("precision", "fp32") if values["polyseme_format"] != 1 else "fp32"
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise FormatError(f"{path}: precision is {precision!r:.60}, expected one of {', '.join(PRECISIONS)}.")
    return precision


def _check_counts(config: ModelSettings, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse a config with more layers or highways than there are weights, before they are built."""
    counts = {"forward_stack.cells": config.recurrent.layers, "backward_stack.cells": config.recurrent.layers}
    counts["tokens.chars.highways"] = config.chars.highways if config.chars else 0
    for module, count in counts.items():
        if count and not any(name.startswith(f"{module}.{count - 1}.") for name in tensors):
            raise FormatError(
                f"{path}: {module}.{count - 1} is missing, but {CONFIG} requires {count} of them. "
                "Are config and weights of the same model?"
            )


def _reads_chinese(config: ModelSettings) -> bool:
    """Whether the model segments Chinese: then traditional characters that it lacks are simplified."""
    return config.segment in ("zh", "zh-char", "auto")


def _read_vocab(marks: object, folder: Path, *, simplify: bool) -> Vocab | None:
    """The words of vocab.txt, if there is one; `marks` are its begin, end and unknown marks."""
    if not (folder / VOCAB).exists():
        return None
    names = _parse_texts(marks, "vocab_marks", folder / CONFIG)
    if names.keys() - {"begin", "end", "unknown"}:
        raise FormatError(
            f"{folder / CONFIG}: vocab_marks must be begin, end and unknown; found {sorted(names)}."
        )
    return Vocab.read(folder / VOCAB, **names, simplify=simplify)


def _read_word_list(path: Path) -> WordList:
    """The words of words.txt, which a model of format 4 needs."""
    if not path.is_file():
        raise FormatError(f"{path}: missing, but the model segments text with it. Copy the whole folder.")
    return WordList.read(path)


def _parse_texts(values: object, name: str, path: Path) -> dict[str, str]:
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise FormatError(f"{path}: {name} is {values!r:.60}, expected strings by name.")
    return values


def _read_alphabet(config: ModelSettings, folder: Path) -> Alphabet | None:
    """The alphabet of the config; that of code points is in chars.json."""
    if config.chars is None:
        return None
    if config.chars.encoding == "bytes":
        return ByteAlphabet(config.chars.max_chars)
    path = folder / CHARS
    try:
        characters = parse_json(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise FormatError(f"{path}: cannot be read ({problem}); the model needs its characters.") from None
    if not isinstance(characters, list) or not all(isinstance(entry, str) for entry in characters):
        raise FormatError(f"{path}: expected a JSON list of characters.")
    try:
        return CodepointAlphabet(characters, config.chars.max_chars, simplify=_reads_chinese(config))
    except UsageError as problem:
        raise FormatError(f"{path}: {problem}") from None


def _write_json(path: Path, values: object) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
