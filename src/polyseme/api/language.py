"""Verbs about the biLM as a language model: evaluate, score, rerank, substitutes, generate.

language, tasks  ->  api.language  ->  api
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar, overload

from polyseme import language
from polyseme.api.embedding import read_sentences
from polyseme.api.tasks import evaluate_task
from polyseme.choices import Direction, Normalise
from polyseme.elmo import BATCH_TOKENS, Elmo, ensure_loaded
from polyseme.errors import UsageError
from polyseme.io.progress import OnProgress, ProgressEvent, ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.language.scoring import require_predictor
from polyseme.tasks.data.sources import Data
from polyseme.tasks.metrics import Scores
from polyseme.tasks.task_folder import is_task
from polyseme.tasks.task_model import TaskModel, load_task
from polyseme.text.reading import Line, ReadingProgress, check_input, read_lines
from polyseme.text.validate import list_values

Item = TypeVar("Item")


@overload
def evaluate(
    model: Elmo,
    text: str | Path | Iterable[str],
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    options: str | Path | None = ...,
    device: str | None = ...,
    elmo: Elmo | str | Path | None = ...,
    static: str | Path | None = ...,
    encoding: str = ...,
    progress: ProgressOption = ...,
) -> language.Evaluation: ...


@overload
def evaluate(
    model: TaskModel, text: Data, *, encoding: str = ..., progress: ProgressOption = ...
) -> Scores: ...


@overload
def evaluate(
    model: str | Path,
    text: Data,
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    options: str | Path | None = ...,
    device: str | None = ...,
    elmo: Elmo | str | Path | None = ...,
    static: str | Path | None = ...,
    encoding: str = ...,
    progress: ProgressOption = ...,
) -> Any: ...


def evaluate(
    model: Elmo | TaskModel | str | Path,
    text: Data,
    *,
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    options: str | Path | None = None,
    device: str | None = None,
    elmo: Elmo | str | Path | None = None,
    static: str | Path | None = None,
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> language.Evaluation | Scores:
    """Measure how well a model predicts: perplexity of a language model, scores of a task model.

    Args:
        model: An ELMo with a softmax or a task model, loaded or as a path.
        text: A file, a folder, "-" for standard input, or a list of texts; for a task model, labelled
            examples as `train` takes them.
        segment: Language model: how to split the text; as the model was trained if None.
        stateful: Language model: carry the state from sentence to sentence of a file.
        batch_tokens: Language model: size of a batch in tokens, if it is loaded here.
        options: Language model: the options.json of an .hdf5 file, if it is in another folder.
        device: Where a model given as a path computes; None is the default of `load` and `load_task`.
        elmo: Task folder: its ELMo, if it has moved.
        static: Task folder: its static vectors, if they have moved.
        encoding: The encoding of the text; "auto" detects it.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        An `Evaluation` of the text and of each file, or the `Scores` of the task.

    Raises:
        UsageError: If an option is for the other kind of model, or the model has no softmax.
        DataError: If the text cannot be read, or holds no words.

    Example:
        >>> polyseme.evaluate("en", "held-out.txt").total.mean

    """
    if isinstance(model, TaskModel) or (not isinstance(model, Elmo) and is_task(model)):
        _refuse({"segment": segment, "stateful": stateful, "options": options}, "a language model")
        task = (
            model
            if isinstance(model, TaskModel)
            else load_task(model, elmo, static=static, device=device or "auto")
        )
        return evaluate_task(task, text, encoding=encoding, progress=progress)
    _refuse({"elmo": elmo, "static": static}, "a task folder")
    loaded = ensure_loaded(model, batch_tokens, options, device=device or "cpu")
    with open_progress(progress) as on_progress:
        if not isinstance(text, str | Path):
            lines = _number_texts(text, on_progress)
            return language.evaluate(loaded, lines, segment=segment, stateful=stateful)
        reading = ReadingProgress(on_progress, text, stage="evaluating")
        return language.evaluate(
            loaded,
            read_lines(text, encoding, prose=True),
            segment=segment,
            stateful=stateful,
            reading=reading,
        )


def _number_texts(texts: Iterable[str], on_progress: OnProgress) -> Iterator[Line]:
    """The lines of texts in memory; progress is reported before each."""
    values = list_values(texts, "text")
    for number, text in enumerate(values, start=1):
        if not isinstance(text, str):
            raise UsageError(f"text:{number} is of type {type(text).__name__}, expected a string.")
        on_progress(ProgressEvent("evaluating", number - 1, len(values)))
        yield from (Line("text", number, line) for line in text.splitlines())


def _refuse(arguments: Mapping[str, object], kind: str) -> None:
    """Refuse arguments that are for another kind of model."""
    for name, value in arguments.items():
        if value:
            raise UsageError(f"`{name}` is for {kind}. Leave it out.")


@overload
def score(  # type: ignore[overload-overlap]  # a string is an iterable of strings too
    model: Elmo | str | Path,
    text: str | Path,
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    options: str | Path | None = ...,
    device: str = ...,
    encoding: str = ...,
    progress: ProgressOption = ...,
) -> Iterator[language.SentenceScore]: ...


@overload
def score(
    model: Elmo | str | Path,
    text: Iterable[str] | Iterable[Iterable[str]],
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    options: str | Path | None = ...,
    device: str = ...,
    encoding: str = ...,
    progress: ProgressOption = ...,
) -> ResultList[language.SentenceScore]: ...


def score(
    model: Elmo | str | Path,
    text: str | Path | Iterable[str] | Iterable[Iterable[str]],
    *,
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    options: str | Path | None = None,
    device: str = "cpu",
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> Iterator[language.SentenceScore] | ResultList[language.SentenceScore]:
    """Compute the log probability of every sentence of a text, and of its tokens.

    Args:
        model: An ELMo with a softmax, loaded or as a path.
        text: A file, a folder, or "-" for standard input; or a list of sentences, as strings or token lists.
        segment: How to split the text; as the model was trained if None. With "split" a line is a sentence,
            and a blank line is scored as <S> </S>.
        stateful: Carry the state from sentence to sentence.
        batch_tokens: Size of a batch in tokens, if the model is loaded here.
        options: The options.json of an .hdf5 model, if it is in another folder.
        device: Where to compute, if the model is loaded here; see `load`.
        encoding: The encoding of a file; "auto" detects it.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The scores in the order of the text: of a file an iterator, in constant memory; of sentences a list,
        which notebooks show as a table.

    Raises:
        UsageError: If the model has no softmax.
        DataError: If the text cannot be read.

    Example:
        >>> polyseme.score("en", ["The bank failed .", "Bank the . failed"])[0].totals
        >>> for sentence in polyseme.score("en", "text.txt"):
        ...     print(sentence.totals, sentence.tokens)

    """
    elmo = ensure_loaded(model, batch_tokens, options, device=device)
    if not isinstance(text, str | Path):
        with open_progress(progress) as on_progress:
            return language.score(elmo, text, stateful=stateful, segment=segment, on_progress=on_progress)
    require_predictor(elmo)  # at once, not at the first sentence
    check_input(text)
    return _score_text(elmo, text, segment, encoding, stateful, progress)


def _score_text(
    elmo: Elmo,
    text: str | Path,
    segment: str | None,
    encoding: str,
    stateful: bool,
    progress: ProgressOption,
) -> Iterator[language.SentenceScore]:
    with open_progress(progress) as on_progress:
        reading = ReadingProgress(on_progress, text, stage="scoring")
        sentences = read_sentences(elmo, [text], segment, encoding, reading)
        yield from language.score_stream(elmo, sentences, stateful=stateful, on_batch=reading.add_sentences)


def rerank(
    model: Elmo | str | Path,
    text: str | Path,
    *,
    weight: float = 1.0,
    direction: Direction = "both",
    normalise: Normalise = "none",
    unknown_penalty: float | None = None,
    segment: str | None = None,
    batch_tokens: int = BATCH_TOKENS,
    options: str | Path | None = None,
    device: str = "cpu",
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> Iterator[language.RankedHypothesis]:
    """Sort n-best lists by log probability, mixed with the scores that the lists have.

    Args:
        model: An ELMo with a softmax, loaded or as a path.
        text: Lines of id<TAB>hypothesis[<TAB>score], or id ||| hypothesis ||| score.
        weight: Weight w of the log probability; the score of the list weighs 1 - w.
        direction: Language model to use: "both", "forward" or "backward".
        normalise: What to divide by the number of tokens: "none", the log probability ("lm"), or the total
            ("total").
        unknown_penalty: Subtracted for every unknown word; None is the logarithm of the vocabulary size.
        segment: How to split hypotheses; as the model was trained if None.
        batch_tokens: Size of a batch in tokens, if the model is loaded here.
        options: The options.json of an .hdf5 model, if it is in another folder.
        device: Where to compute, if the model is loaded here; see `load`.
        encoding: The encoding of the file; "auto" detects it.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        An iterator over the hypotheses, list by list, best first.

    Raises:
        DataError: If a line is not in one of these forms.

    Example:
        >>> best = next(polyseme.rerank("en", "nbest.txt", weight=0.5))

    """
    elmo = ensure_loaded(model, batch_tokens, options, device=device)
    with ExitStack() as stack:
        on_progress = stack.enter_context(open_progress(progress))
        reading = ReadingProgress(on_progress, text, stage="scoring")
        ranked = language.rerank(
            elmo,
            language.read_nbest(reading.count_lines(read_lines(text, encoding))),
            weight=weight,
            direction=direction,
            normalise=normalise,
            unknown_penalty=unknown_penalty,
            segment=segment,
            on_batch=reading.add_sentences,
        )
        return _iterate_until_closed(ranked, stack.pop_all())


def _iterate_until_closed(items: Iterator[Item], stack: ExitStack) -> Iterator[Item]:
    """Yield items, and close the stack after the last one."""
    with stack:
        yield from items


def substitutes(
    model: Elmo | str | Path,
    sentence: str | Sequence[str],
    k: int = 10,
    *,
    position: int | None = None,
    context: Sequence[str] | Sequence[Sequence[str]] = (),
    following: Sequence[str] | Sequence[Sequence[str]] = (),
    counts: Mapping[str, int] | None = None,
    segment: str | None = None,
    options: str | Path | None = None,
    device: str = "cpu",
) -> language.Substitutes:
    """Rank the words that fit in place of a word in a sentence.

    Args:
        model: An ELMo with a softmax, loaded or as a path.
        sentence: A sentence with one word in [brackets]; or its tokens.
        k: How many words.
        position: With tokens: the position of the word, from 0.
        context: The sentences before it, as strings or token lists.
        following: The sentences after it.
        counts: How often words occur, to discount frequent words; None takes the order of the vocabulary.
        segment: How to split the text; as the model was trained if None.
        options: The options.json of an .hdf5 model, if it is in another folder.
        device: Where to compute, if the model is loaded here; see `load`.

    Returns:
        The words by the forward language model, by the backward one, and by both.

    Raises:
        UsageError: If the model has no softmax, or no word is in brackets.

    Example:
        >>> polyseme.substitutes("en", "He sat on the [bank] .", 5)

    """
    elmo = ensure_loaded(model, options=options, device=device)
    if isinstance(sentence, str):
        if position is not None:
            raise UsageError("`position` needs tokens: pass the sentence as a list of them.")
        return language.find_substitutes(
            elmo, sentence, k, context=context, following=following, counts=counts, segment=segment
        )
    if position is None:
        raise UsageError("Tokens need `position`, that of the word to replace.")
    return language.find_substitutes_at(
        elmo,
        sentence,
        position,
        k,
        context=elmo.token_lists(context, segment),
        following=elmo.token_lists(following, segment),
        counts=counts,
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
    options: str | Path | None = None,
    device: str = "cpu",
    progress: ProgressOption = None,
) -> language.GeneratedText:
    """Write new text, word by word, with the forward language model.

    Args:
        model: An ELMo with a softmax, loaded or as a path.
        prompt: How the text begins.
        tokens: The largest number of new tokens.
        temperature: Below 1 likely words become likelier; 0 always takes the likeliest.
        top_k: Choose among the k likeliest words; None chooses among all.
        seed: Another seed gives another text.
        stop_at_end: Stop when the model ends the sentence; False begins another sentence.
        segment: How to split the prompt; as the model was trained if None.
        options: The options.json of an .hdf5 model, if it is in another folder.
        device: Where to compute, if the model is loaded here; see `load`.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The tokens and the text.

    Raises:
        UsageError: If the model has no softmax.

    Example:
        >>> polyseme.generate("en", "The river", tokens=20, seed=3).text

    """
    elmo = ensure_loaded(model, options=options, device=device)
    with open_progress(progress) as on_progress:
        return language.generate(
            elmo,
            prompt,
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
            stop_at_end=stop_at_end,
            segment=segment,
            on_progress=on_progress,
        )
