"""Verbs about the biLM as a language model: evaluate, score, substitutes, generate.

api  ->  cli.language  ->  a person's terminal
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli.options import AsJson, BatchTokens, ModelPath, Options, Segment, Stateful, TextPath
from polyseme.cli.tasks import ElmoPath, StaticPath, print_scores
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.language import RankedHypothesis, SentenceScore

SENTENCE_COLUMNS = "\t".join(("sentence", "tokens", "forward", "backward", "mean", "text"))
TOKEN_COLUMNS = "\t".join(("sentence", "place", "token", "forward", "backward", "mean", "unknown"))


def evaluate(
    model: ModelPath,
    text: TextPath,
    segment: Segment = None,
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    options: Options = None,
    elmo_path: ElmoPath = None,
    static: StaticPath = None,
    as_json: AsJson = False,
) -> None:
    """Say how well a model predicts a text: perplexity, by file; of a task folder, the task's scores."""
    from polyseme import api, load
    from polyseme.tasks.task_folder import is_task

    if is_task(model):
        if segment or stateful or options:
            raise UsageError("--segment, --stateful and --options are for a language model. Leave them out.")
        print_scores(model, text, elmo_path, static, as_json=as_json)
        return
    if elmo_path or static:
        raise UsageError("--model and --static are for a task folder. Leave them out.")
    elmo = load(model, options, batch_tokens=batch_tokens)
    found = api.evaluate(elmo, text, segment=segment, stateful=stateful, progress=True)
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    rows = {"all": found.total} | (found.files if len(found.files) > 1 else {})
    print("forward\tbackward\tmean\tknown words\tsentences\twords\tunknown\ttext")
    for name, part in rows.items():
        numbers = (part.forward, part.backward, part.mean, part.known.perplexities["mean"])
        values = "\t".join(f"{number:.2f}" for number in numbers)
        print(f"{values}\t{part.sentences}\t{part.words}\t{part.unknown_rate:.2%}\t{name}")


def score(
    model: ModelPath,
    text: TextPath,
    tokens: Annotated[bool, typer.Option("--tokens", help="A line a token.")] = False,
    nbest: Annotated[
        bool,
        typer.Option("--nbest", help="TEXT is n-best lists: id<TAB>hypothesis[<TAB>score], or id ||| … ."),
    ] = False,
    weight: Annotated[
        float, typer.Option(help="With --nbest: (1 - weight) * own score + weight * log probability.")
    ] = 1.0,
    direction: Annotated[str, typer.Option(help="With --nbest: both, forward or backward.")] = "both",
    normalise: Annotated[
        str, typer.Option(help="With --nbest: none, or divide lm or total by the number of tokens.")
    ] = "none",
    unknown_penalty: Annotated[
        float | None, typer.Option(help="With --nbest: taken off for each unknown word; log V if left out.")
    ] = None,
    segment: Segment = None,
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    options: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of columns.")] = False,
) -> None:
    """Give the log probability of every sentence and token, or re-rank n-best lists."""
    from polyseme import api, load

    elmo = load(model, options, batch_tokens=batch_tokens)
    if not nbest:
        _print_scores(
            api.score(elmo, text, segment=segment, stateful=stateful), tokens=tokens, as_json=as_json
        )
        return
    ranked = api.rerank(
        elmo,
        text,
        weight=weight,
        direction=direction,  # type: ignore[arg-type]
        normalise=normalise,  # type: ignore[arg-type]
        unknown_penalty=unknown_penalty,
        segment=segment,
    )
    _print_ranked(ranked, as_json=as_json)


def _print_scores(found: Iterable[SentenceScore], *, tokens: bool, as_json: bool) -> None:
    """A line a sentence, or a line a token, as columns or JSON; sentences are numbered as `embed` does."""
    if not as_json:
        print(TOKEN_COLUMNS if tokens else SENTENCE_COLUMNS)
    for number, one in enumerate(found):
        if as_json:
            print(json.dumps(_score_values(number, one), ensure_ascii=False))
        elif tokens:
            unknown = [*one.unknown.tolist(), False]
            for place, token in enumerate([*one.tokens, "</S> <S>"]):
                numbers = (one.forward[place], one.backward[place], one.mean[place])
                columns = "\t".join(f"{value:.4f}" for value in numbers)
                print(f"{number}\t{place}\t{token}\t{columns}\t{int(unknown[place])}")
        else:
            columns = "\t".join(f"{value:.4f}" for value in one.totals)
            print(f"{number}\t{len(one.tokens)}\t{columns}\t{' '.join(one.tokens)}")


def _score_values(number: int, one: SentenceScore) -> dict[str, Any]:
    forward, backward, mean = one.totals
    return {
        "sentence": number,
        "forward": forward,
        "backward": backward,
        "mean": mean,
        "tokens": one.tokens,
        "unknown": one.unknown.tolist(),
        "token_forward": one.forward.tolist(),
        "token_backward": one.backward.tolist(),
    }


def _print_ranked(ranked: Iterable[RankedHypothesis], *, as_json: bool) -> None:
    """A line a hypothesis, best first: list, hypothesis, total, log probability, own score."""
    for one in ranked:
        if as_json:
            print(json.dumps(dataclasses.asdict(one), ensure_ascii=False))
        else:
            score = "" if one.score is None else f"{one.score:g}"
            print(f"{one.list_id}\t{one.text}\t{one.total:.4f}\t{one.lm:.4f}\t{score}")


def substitutes(
    model: ModelPath,
    sentence: Annotated[str, typer.Argument(help="With one word in brackets: He sat on the \\[bank] .")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many words.")] = 10,
    context: Annotated[
        list[str] | None, typer.Option(help="A sentence before it; may be given several times.")
    ] = None,
    following: Annotated[
        list[str] | None, typer.Option(help="A sentence after it; may be given several times.")
    ] = None,
    segment: Segment = None,
    options: Options = None,
    as_json: AsJson = False,
) -> None:
    """Rank the words that fit a marked place: from the left, from the right, from both."""
    from polyseme import api, load

    found = api.substitutes(
        load(model, options), sentence, k, context=context or (), following=following or (), segment=segment
    )
    if as_json:
        print(json.dumps(dataclasses.asdict(found), ensure_ascii=False, indent=2))
        return
    rankings = {"forward": found.forward, "backward": found.backward, "both": found.joint}
    print("\t".join(rankings))
    for row in zip(*(ranking.best for ranking in rankings.values()), strict=True):
        print("\t".join(f"{one.word} {one.log_prob:.2f}" for one in row))
    ranks = [f"{name} {ranking.rank}" for name, ranking in rankings.items() if ranking.rank is not None]
    if ranks:
        print(f"{found.word} has rank: {', '.join(ranks)}")
    elif found.word:
        print(f"{found.word} is outside the vocabulary and has no rank.")


def generate(
    model: ModelPath,
    prompt: Annotated[str, typer.Option(help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="At most so many new words.")] = 50,
    temperature: Annotated[
        float, typer.Option(min=0, help="Below 1: likelier words; 0: always the likeliest.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Choose among the k likeliest words.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another text.")] = 0,
    go_on: Annotated[
        bool, typer.Option("--go-on", help="Begin a new sentence where the model ends one.")
    ] = False,
    segment: Segment = None,
    options: Options = None,
    as_json: AsJson = False,
) -> None:
    """Write new text, word by word."""
    from polyseme import api, load

    found = api.generate(
        load(model, options),
        prompt,
        tokens=tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
        stop_at_end=not go_on,
        segment=segment,
    )
    if as_json:
        print(json.dumps(dataclasses.asdict(found) | {"text": found.text}, ensure_ascii=False, indent=2))
        return
    print(found.text)
