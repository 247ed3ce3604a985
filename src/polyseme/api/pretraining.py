"""The verb pretrain.

training  ->  api.pretraining  ->  api
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from polyseme.formats.models.open import open_pretrained
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.text.segment import WordList
from polyseme.text.validate import check_path, list_paths
from polyseme.training import pretrain as training
from polyseme.training.checkpoint import Position
from polyseme.training.loop import Metrics, OnMetrics
from polyseme.training.pretrain import PretrainResult
from polyseme.training.report import write_report
from polyseme.training.settings import adapt_settings, read_pretrain_settings
from polyseme.training.tensorboard_log import TensorBoardLog


def pretrain(
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    config: str = "novel",
    *,
    settings: Sequence[str] = (),
    valid: Sequence[str | Path] = (),
    base: str | Path | None = None,
    words: str | Path | None = None,
    names: bool | None = None,
    options: str | Path | None = None,
    new_vocabulary: bool = False,
    documents: str | None = None,
    encoding: str | None = None,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    tensorboard: bool = False,
    progress: ProgressOption = None,
    on_metrics: OnMetrics | None = None,
) -> PretrainResult:
    """Pretrain a biLM on text, or fine-tune one, and write it to a folder.

    Args:
        texts: Files, folders or globs; .gz, .zst, .jsonl, .conllu, .html and .epub are read, too.
        out: The folder of the model.
        config: A preset (tiny, novel, small, …) or a .toml file.
        settings: Overrides such as "train.seed=7".
        valid: Held-out text; a part of `texts` is held out if empty.
        base: A model to fine-tune; it decides the settings of the model.
        words: Words that the segmentation must know: a dictionary in jieba's format (word, count, tag).
        names: Find names of several words in English text and make each a single token
            (Elizabeth_Bennet); None follows the setting corpus.names.
        options: The options.json of `base`, if it is an .hdf5 file and they are in another folder.
        new_vocabulary: With `base`: take the vocabulary of the new text.
        documents: What is a document, the setting corpus.documents: "file", "line", "block", "chapters-zh",
            "chapters-en", "auto", or a regular expression for headings.
        encoding: The encoding of the files; None follows the setting corpus.encoding, which detects it.
        resume: Continue from the last checkpoint in `out`.
        force: Replace what `out` holds; with `resume`, continue although settings or text differ.
        workers: Processes that segment the text; None decides by its size.
        tensorboard: Also log to out/tensorboard.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.
        on_metrics: Receives position and numbers after every step and every validation.

    Returns:
        The folder, what was counted in the text, and the held-out perplexity.

    Raises:
        UsageError: If `out` exists, or there is no run to resume.
        ConfigError: If a setting is wrong.
        DataError: If a text cannot be read, or is too short.

    Example:
        >>> result = polyseme.pretrain(["novel.txt"], "my-elmo", "novel", settings=["train.epochs=5"])
        >>> result.metrics["mean"]  # held-out perplexity

    """
    folder = Path(check_path(out, "out")).expanduser()
    named = {"corpus.documents": documents, "corpus.encoding": encoding, "corpus.names": names}
    arguments = [f"{name} = {json.dumps(value)}" for name, value in named.items() if value is not None]
    run_settings = read_pretrain_settings(config, [*settings, *arguments])
    word_list = WordList.read(words) if words is not None else None
    base_model = open_pretrained(base, options) if base is not None else None
    if base_model is not None:
        run_settings = adapt_settings(run_settings, base_model.config, settings)
    with (
        TensorBoardLog(folder) if tensorboard else nullcontext() as board,
        open_progress(progress) as on_progress,
    ):
        return training.pretrain(
            list_paths(texts, "texts"),
            folder,
            run_settings,
            valid=valid,
            base=base_model,
            words=word_list,
            new_vocabulary=new_vocabulary,
            resume=resume,
            force=force,
            workers=workers,
            on_progress=on_progress,
            on_metrics=_call_all(on_metrics, board.log if board else None),
            on_trained=write_report,
        )


def _call_all(*callbacks: OnMetrics | None) -> OnMetrics:
    """Make one callback that calls all that are not None."""

    def call(position: Position, metrics: Metrics) -> None:
        for callback in callbacks:
            if callback is not None:
                callback(position, metrics)

    return call
