"""One function a verb: what the command line and scripts call.

    everything above  ->  api  ->  cli, scripts

Paths in, files or plain values out. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, overload

from polyseme import language
from polyseme.api.embedding import Embedded, embed, loaded, sentences_of
from polyseme.api.search import change, disambiguate, index, map_of, nearest, senses, similarity
from polyseme.api.serving import serve
from polyseme.api.tasks import predict, probe, train
from polyseme.embedder import BATCH_TOKENS, Elmo
from polyseme.errors import UsageError
from polyseme.formats.card import describe
from polyseme.formats.opening import folder_of, open_pretrained
from polyseme.formats.saving import save_pretrained
from polyseme.formats.word_file import NAME as WORDS
from polyseme.model.choice import Direction
from polyseme.tasks.model import TaskModel, is_task, load_task
from polyseme.tasks.scores import Scores
from polyseme.text.corpus import Corpus, Watch
from polyseme.text.reading import Line, read_lines, watched
from polyseme.text.vocab import Vocab
from polyseme.training import pretrain as training
from polyseme.training.board import Board
from polyseme.training.checkpoint import Position
from polyseme.training.loop import Metrics
from polyseme.training.pretrain import Pretraining
from polyseme.training.report import write_report
from polyseme.training.settings import config_for_base, read_pretrain_config
from polyseme.writing import check_file, check_target

__all__ = [
    "Embedded",
    "cache",
    "change",
    "convert",
    "disambiguate",
    "embed",
    "evaluate",
    "generate",
    "index",
    "info",
    "map_of",
    "nearest",
    "predict",
    "pretrain",
    "probe",
    "rerank",
    "runtime",
    "score",
    "senses",
    "serve",
    "similarity",
    "substitutes",
    "train",
]


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

    from polyseme.model.kernels import native

    why = native.why_not()
    path = (
        f"C ({native.instruction_set()})"
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
    check_file(place, force=force)
    words = Vocab.read(vocab)
    loaded(model, BATCH_TOKENS).cache.write(place, words, force=force)
    return len(words)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: Literal["native", "hdf5"] = "native",
    precision: str = "fp32",
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
    check_target(place, force=force)
    model = open_pretrained(source, options)
    words = folder_of(source) / WORDS
    kept = words.read_bytes() if to == "native" and words.exists() else None  # source may be the target
    save_pretrained(model, place, to=to, precision=precision, tables=tables, force=force)
    if kept is not None:
        (place / WORDS).write_bytes(kept)


@overload
def evaluate(
    model: Elmo,
    text: str | Path,
    *,
    segment: str | None = ...,
    stateful: bool = ...,
    batch_tokens: int = ...,
    watch: Callable[[Line], None] | None = ...,
    count: Callable[[int], None] | None = ...,
) -> language.Evaluation: ...


@overload
def evaluate(model: TaskModel, text: str | Path) -> Scores: ...


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
    text: str | Path,
    *,
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    watch: Callable[[Line], None] | None = None,
    count: Callable[[int], None] | None = None,
) -> language.Evaluation | Scores:
    """The perplexity of a language model on `text` (a file, a folder, .gz, .zst or -), all and by file.

    `stateful` carries the state from sentence to sentence of a file. Of a task model, or its folder, it gives
    the task's scores on a file of examples instead.
    """
    if isinstance(model, TaskModel):
        return model.evaluate(text)
    if not isinstance(model, Elmo) and is_task(model):
        return load_task(model).evaluate(text)
    elmo = loaded(model, batch_tokens)
    lines = watched(read_lines(text), watch)
    return language.evaluate(elmo, lines, segment=segment, stateful=stateful, count=count)


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
) -> Iterator[language.Ranked]:
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
    """The words that fit the bracketed place of `sentence`; see `language.substitutes`."""
    return language.substitutes(
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
) -> language.Generated:
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


def pretrain(
    texts: Sequence[str | Path],
    out: str | Path,
    config: str = "novel",
    *,
    settings: Sequence[str] = (),
    valid: Sequence[str | Path] = (),
    base: str | Path | None = None,
    options: str | Path | None = None,
    new_vocabulary: bool = False,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    tensorboard: bool = False,
    reading: Watch | None = None,
    prepared: Callable[[Corpus, int], None] | None = None,
    watch: Callable[[Position, Metrics], None] | None = None,
) -> Pretraining:
    """Train a model on `texts` and write it to the folder `out`.

    config: a preset's name or a .toml file; settings: overrides such as "train.seed=7"; base: a model to
    fine-tune, which then decides the model's own settings; tensorboard: note the course of the run in
    out/tensorboard, too. See `training.pretrain.pretrain`.
    """
    place = Path(out).expanduser()
    chosen = read_pretrain_config(config, settings)
    old = open_pretrained(base, options) if base is not None else None
    if old is not None:
        chosen = config_for_base(chosen, old.config, settings)
    with Board(place) if tensorboard else nullcontext() as board:
        result = training.pretrain(
            texts,
            place,
            chosen,
            valid=valid,
            base=old,
            new_vocabulary=new_vocabulary,
            resume=resume,
            force=force,
            workers=workers,
            reading=reading,
            prepared=prepared,
            watch=_all_of(watch, board.watch if board else None),
        )
    if result.first:
        write_report(result.folder)
    return result


def _all_of(*watchers: Callable[[Position, Metrics], None] | None) -> Callable[[Position, Metrics], None]:
    """One that calls all those that there are."""

    def watch(position: Position, figures: Metrics) -> None:
        for watcher in watchers:
            if watcher is not None:
                watcher(position, figures)

    return watch
