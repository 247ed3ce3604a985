"""Commands about the biLM as a language model: evaluate, score, substitutes, generate.

api  ->  cli.language  ->  the terminal
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.choices import Direction, Normalise
from polyseme.cli.options import (
    AsJson,
    BatchTokens,
    Device,
    Encoding,
    ModelPath,
    Options,
    Segment,
    Stateful,
    TextPath,
)
from polyseme.cli.tasks import ElmoPath, StaticPath, print_scores

if TYPE_CHECKING:
    from polyseme.language import Evaluation, RankedHypothesis, SentenceScore

SENTENCE_COLUMNS = "\t".join(("sentence", "tokens", "forward", "backward", "mean", "text"))
TOKEN_COLUMNS = "\t".join(("sentence", "position", "token", "forward", "backward", "mean", "unknown"))


def evaluate(
    model: ModelPath,
    text: TextPath,
    segment: Segment = None,
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    options: Options = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda, cuda:N, mps or auto; by default cpu, or auto for a task folder."),
    ] = None,
    elmo: ElmoPath = None,
    static: StaticPath = None,
    encoding: Encoding = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the perplexity of a model on a text; for a task folder, the scores of the task."""
    from polyseme import api
    from polyseme.tasks.metrics import Scores

    result = api.evaluate(
        model,
        text,
        segment=segment,
        stateful=stateful,
        batch_tokens=batch_tokens,
        options=options,
        device=device,
        elmo=elmo,
        static=static,
        encoding=encoding,
        progress=True,
    )
    if as_json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    elif isinstance(result, Scores):
        print_scores(result)
    else:
        _print_perplexity(result)


def _print_perplexity(result: Evaluation) -> None:
    """Print a row for the whole text and, of several files, for each."""
    rows = {"all": result.total} | (result.files if len(result.files) > 1 else {})
    print("forward\tbackward\tmean\tknown words\tsentences\twords\tunknown\ttext")
    for name, part in rows.items():
        numbers = (part.forward, part.backward, part.mean, part.known.perplexities["mean"])
        values = "\t".join(f"{number:.2f}" for number in numbers)
        print(f"{values}\t{part.sentences}\t{part.words}\t{part.unknown_rate:.2%}\t{name}")


def score(
    model: ModelPath,
    text: TextPath,
    tokens: Annotated[bool, typer.Option("--tokens", help="Print a line per token.")] = False,
    nbest: Annotated[
        bool,
        typer.Option(
            "--nbest", help="Re-rank n-best lists; lines are id<TAB>hypothesis[<TAB>score], or id ||| … ."
        ),
    ] = False,
    weight: Annotated[
        float, typer.Option(help="With --nbest: (1 - weight) * original score + weight * log probability.")
    ] = 1.0,
    direction: Annotated[
        Direction, typer.Option(help="With --nbest: direction of the language model.")
    ] = "both",
    normalise: Annotated[
        Normalise,
        typer.Option(help="With --nbest: what to divide by the number of predictions."),
    ] = "none",
    unknown_penalty: Annotated[
        float | None, typer.Option(help="With --nbest: subtracted per unknown word.", show_default="log V")
    ] = None,
    segment: Segment = None,
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    options: Options = None,
    device: Device = "cpu",
    encoding: Encoding = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Compute the log probability of every sentence and token, or re-rank n-best lists."""
    from polyseme import api

    if nbest:
        ranked = api.rerank(
            model,
            text,
            weight=weight,
            direction=direction,
            normalise=normalise,
            unknown_penalty=unknown_penalty,
            segment=segment,
            batch_tokens=batch_tokens,
            options=options,
            device=device,
            encoding=encoding,
            progress=True,
        )
        _print_ranked(ranked, as_json=as_json)
        return
    scores = api.score(
        model,
        text,
        segment=segment,
        stateful=stateful,
        batch_tokens=batch_tokens,
        options=options,
        device=device,
        encoding=encoding,
        progress=True,
    )
    _print_scores(scores, tokens=tokens, as_json=as_json)


def _print_scores(scores: Iterable[SentenceScore], *, tokens: bool, as_json: bool) -> None:
    """Print a line per sentence or per token; sentences are numbered as `embed` numbers them."""
    if not as_json:
        print(TOKEN_COLUMNS if tokens else SENTENCE_COLUMNS)
    for number, sentence in enumerate(scores):
        if as_json:
            print(json.dumps(_score_values(number, sentence), ensure_ascii=False))
        elif tokens:
            unknown = [*sentence.unknown.tolist(), False]
            for position, token in enumerate([*sentence.tokens, "</S> <S>"]):
                log_probs = (sentence.forward[position], sentence.backward[position], sentence.mean[position])
                columns = "\t".join(f"{value:.4f}" for value in log_probs)
                print(f"{number}\t{position}\t{token}\t{columns}\t{int(unknown[position])}")
        else:
            columns = "\t".join(f"{value:.4f}" for value in sentence.totals)
            print(f"{number}\t{len(sentence.tokens)}\t{columns}\t{' '.join(sentence.tokens)}")


def _score_values(number: int, sentence: SentenceScore) -> dict[str, Any]:
    forward, backward, mean = sentence.totals
    return {
        "sentence": number,
        "forward": forward,
        "backward": backward,
        "mean": mean,
        "tokens": sentence.tokens,
        "unknown": sentence.unknown.tolist(),
        "token_forward": sentence.forward.tolist(),
        "token_backward": sentence.backward.tolist(),
    }


def _print_ranked(ranked: Iterable[RankedHypothesis], *, as_json: bool) -> None:
    """Print a line per hypothesis, best first: list, hypothesis, total, log probability, given score."""
    for hypothesis in ranked:
        if as_json:
            print(json.dumps(dataclasses.asdict(hypothesis), ensure_ascii=False))
        else:
            given_score = "" if hypothesis.score is None else f"{hypothesis.score:g}"
            columns = (hypothesis.list_id, hypothesis.text, f"{hypothesis.total:.4f}", f"{hypothesis.lm:.4f}")
            print("\t".join((*columns, given_score)))


def substitutes(
    model: ModelPath,
    sentence: Annotated[
        str,
        typer.Argument(
            metavar="SENTENCE", help="A sentence with one word in brackets: He sat on the \\[bank] ."
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many words.")] = 10,
    context: Annotated[list[str] | None, typer.Option(help="A sentence before it; can be repeated.")] = None,
    following: Annotated[list[str] | None, typer.Option(help="A sentence after it; can be repeated.")] = None,
    segment: Segment = None,
    options: Options = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Rank the words that fit in place of a word in a sentence."""
    from polyseme import api

    result = api.substitutes(
        model,
        sentence,
        k,
        context=context or (),
        following=following or (),
        segment=segment,
        options=options,
        device=device,
    )
    if as_json:
        print(json.dumps(dataclasses.asdict(result), ensure_ascii=False, indent=2))
        return
    rankings = {"forward": result.forward, "backward": result.backward, "both": result.joint}
    print("\t".join(rankings))
    for row in zip(*(ranking.best for ranking in rankings.values()), strict=True):
        print("\t".join(f"{candidate.word} {candidate.log_prob:.2f}" for candidate in row))
    ranks = [f"{name} {ranking.rank}" for name, ranking in rankings.items() if ranking.rank is not None]
    if ranks:
        print(f"{result.word} has rank: {', '.join(ranks)}")
    elif result.word:
        print(f"{result.word} is outside the vocabulary and has no rank.")


def generate(
    model: ModelPath,
    prompt: Annotated[str, typer.Option(help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="Maximum number of new tokens.")] = 50,
    temperature: Annotated[
        float, typer.Option(min=0, help="Below 1 favours likely words; 0 always takes the most likely one.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Sample from the k most likely words.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    stop_at_end: Annotated[
        bool,
        typer.Option(
            "--stop-at-end/--no-stop-at-end", help="Stop when the model ends a sentence, or begin another."
        ),
    ] = True,
    segment: Segment = None,
    options: Options = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Write new text, word by word."""
    from polyseme import api

    result = api.generate(
        model,
        prompt,
        tokens=tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
        stop_at_end=stop_at_end,
        segment=segment,
        options=options,
        device=device,
        progress=True,
    )
    if as_json:
        print(json.dumps(dataclasses.asdict(result) | {"text": result.text}, ensure_ascii=False, indent=2))
        return
    print(result.text)
