"""Verbs about the biLM as a language model: evaluate, score, rerank, substitutes, generate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from polyseme import language
from polyseme.api.embedding import loaded, sentences_of
from polyseme.api.tasks import evaluate_task
from polyseme.elmo import BATCH_TOKENS, Elmo
from polyseme.errors import UsageError
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.model.output import Direction
from polyseme.tasks.data.sources import Data
from polyseme.tasks.metrics import Scores
from polyseme.tasks.task_folder import is_task
from polyseme.tasks.task_model import TaskModel
from polyseme.text.reading import ReadingProgress, read_lines


@overload
def evaluate(
    model: Elmo,
    text: str | Path,
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    progress: ProgressOption = ...,
) -> language.Evaluation: ...


@overload
def evaluate(model: TaskModel, text: Data, *, progress: ProgressOption = ...) -> Scores: ...


@overload
def evaluate(
    model: str | Path,
    text: str | Path,
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
) -> Any: ...


def evaluate(
    model: Elmo | TaskModel | str | Path,
    text: Data,
    *,
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    progress: ProgressOption = None,
) -> language.Evaluation | Scores:
    """The perplexity of a language model on `text` (a file, a folder, .gz, .zst or -), all and by file.

    `stateful` carries the state from sentence to sentence of a file. Of a task model, or its folder, it gives
    the task's scores on a file of examples instead.
    """
    if isinstance(model, TaskModel) or (not isinstance(model, Elmo) and is_task(model)):
        return evaluate_task(model, text, progress=progress)
    if not isinstance(text, str | Path):
        raise UsageError(f"text is of type {type(text).__name__}, expected the path of a text.")
    elmo = loaded(model, batch_tokens)
    with open_progress(progress) as on_progress:
        reading = ReadingProgress(on_progress, text, stage="evaluating")
        return language.evaluate(elmo, read_lines(text), segment=segment, stateful=stateful, reading=reading)


def score(
    model: Elmo | str | Path,
    text: str | Path,
    *,
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
) -> Iterator[language.SentenceScore]:
    """Log probabilities of every sentence of `text` and of its tokens, one sentence after the other.

    With `split`, a line is a sentence, and a blank one is scored as <S> </S>.
    """
    elmo = loaded(model, batch_tokens)
    return language.score_stream(elmo, sentences_of(elmo, [text], segment), stateful=stateful)


def rerank(
    model: Elmo | str | Path,
    text: str | Path,
    *,
    weight: float = 1.0,
    direction: Direction = "both",
    normalise: Literal["none", "lm", "total"] = "none",
    unknown_penalty: float | None = None,
    segment: str | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Iterator[language.RankedHypothesis]:
    """The n-best lists of `text`, each sorted by the model's log probability mixed with their own scores."""
    return language.rerank(
        loaded(model, batch_tokens),
        language.read_nbest(read_lines(text)),
        weight=weight,
        direction=direction,
        normalise=normalise,
        unknown_penalty=unknown_penalty,
        segment=segment,
    )


def substitutes(
    model: Elmo | str | Path,
    sentence: str,
    k: int = 10,
    *,
    context: Sequence[str] = (),
    following: Sequence[str] = (),
    counts: Mapping[str, int] | None = None,
    segment: str | None = None,
) -> language.Substitutes:
    """The words that fit the bracketed place of `sentence`; see `language.find_substitutes`."""
    return language.find_substitutes(
        loaded(model), sentence, k, context=context, following=following, counts=counts, segment=segment
    )


def generate(
    model: Elmo | str | Path,
    prompt: str = "",
    *,
    tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    stop_at_end: bool = True,
    segment: str | None = None,
) -> language.GeneratedText:
    """How the model goes on after `prompt`; see `language.generate`."""
    return language.generate(
        loaded(model),
        prompt,
        tokens=tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
        stop_at_end=stop_at_end,
        segment=segment,
    )
