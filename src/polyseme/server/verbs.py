"""One route a verb: what is asked, checked; what is found, as JSON or raw numbers.

    server.http.requests  ->  server.verbs  ->  server.jobs.batching, server.catalog, language, search, tasks

Messages are the server's own: those of the library may repeat a part of the text.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from fastapi import FastAPI, Request, Response

from polyseme.errors import PolysemeError
from polyseme.language import SentenceScore, Substitutes, find_substitutes_at, score, substitutes
from polyseme.language.substitutes import RankedSubstitutes
from polyseme.model.output import OutputSpec, resolve_output
from polyseme.search.change import MIN_USAGES
from polyseme.search.index import Index, Usage
from polyseme.search.maps import project
from polyseme.search.senses import find_senses
from polyseme.search.space import uncorrected_space
from polyseme.server.http import requests
from polyseme.server.http.limits import missing, wrong
from polyseme.server.http.openapi import answers_of
from polyseme.server.http.rendering import answer, answer_parts, listed, numbers, raw, wanted
from polyseme.server.http.rows import near_row, token_rows, usage_row
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.state import ServerState
from polyseme.server.word_change import ChangeStudy, names_alone
from polyseme.text.length_batches import chunk_sentences
from polyseme.word_vectors import WordVectors

DRAWN = 400  # usages of a word on its map
STUDY = 1 / 3  # of the time of a request, for comparing words
PART = 2048  # tokens that are scored or labelled before a look whether anybody still waits
TOO_FEW = "The word has too few usages to tell senses apart."
UNLIKE = "These indexes cannot be compared: their models differ."
NO_QUESTION = "These are not questions of that task."
CODES = {TOO_FEW: "too_few_for_senses", UNLIKE: "models_differ"}  # of what the library refuses
One = TypeVar("One")


class Verbs:
    """The handlers of all verbs, over one state."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add_to(self, app: FastAPI) -> None:
        """All routes; an application finds its own sooner than those of a router that it includes."""
        for handler in (
            self.embed,
            self.embed_all,
            self.tokenize,
            self.score,
            self.substitutes,
            self.nearest,
            self.senses,
            self.change,
            self.similarity,
            self.predict,
        ):
            route = f"/{handler.__name__}"
            told = answers_of(route)
            app.add_api_route(route, handler, methods=["POST"], response_class=Response, responses=told)

    async def tokenize(self, asked: requests.TokenizeRequest) -> Response:
        """Cut texts into tokens, with their places and the number of the sentence that each stands in."""
        elmo = self._state.served.elmo
        segment = None if asked.index is None else self._state.served.index(asked.index).head["segment"]
        self._state.check_count(asked.texts)

        def cut() -> Response:
            found = [elmo.split_sentences(text, segment) for text in asked.texts]
            for sentence in (sentence for sentences in found for sentence in sentences):
                self._state.check_length(sentence)
            self._state.check_total(sum(len(some) for sentences in found for some in sentences))
            return answer({"tokens": [token_rows(sentences) for sentences in found]})

        return await self._state.quickly(cut, sum(map(len, asked.texts)))

    async def embed(self, asked: requests.EmbedRequest, request: Request) -> Response:
        """One vector a text: its words' vectors, pooled."""
        size = self._state.served.elmo.config.size
        spec = self._output_spec(asked.layer, asked.pool)
        count = len(asked.texts) * size
        self._state.check_values(count)
        sentences = await self._state.cut(asked.texts)
        vectors = await self._state.batcher.vectors(sentences, spec)
        kind = wanted(request)
        if kind is not None:
            return await self._state.quickly(lambda: raw([np.stack(vectors)], kind), count)
        return await self._state.quickly(lambda: answer_parts(vectors=listed(vectors), size=size), count)

    async def embed_all(self, asked: requests.EmbedAllRequest, request: Request) -> Response:
        """One vector a token."""
        config = self._state.served.elmo.config
        spec = self._output_spec(asked.layer, None)
        sentences = await self._state.cut(asked.texts)
        layers = config.layers if spec.weights is None else 1
        count = sum(map(len, sentences)) * layers * config.size
        self._state.check_values(count)
        vectors = await self._state.batcher.vectors(sentences, spec)
        kind = wanted(request)
        if kind is not None:
            return await self._state.quickly(lambda: raw(vectors, kind), count)
        return await self._state.quickly(
            lambda: answer_parts(tokens=sentences, vectors=listed(vectors)), count
        )

    async def score(self, asked: requests.ScoreRequest) -> Response:
        """How likely the model finds texts: natural logarithms of probabilities."""
        self._needs_softmax()
        sentences = await self._state.cut(asked.texts)
        elmo, left = self._state.served.elmo, threading.Event()

        def find() -> Response:
            parts = _while_wanted(sentences, sentences, left)
            return answer({"scores": [_scored(one) for some in parts for one in score(elmo, some)]})

        return await self._run(find, left=left, tokens=sum(map(len, sentences)))

    async def substitutes(self, asked: requests.SubstitutesRequest) -> Response:
        """The words that fit a place of a sentence: from the left, the right and both."""
        self._needs_softmax()
        elmo, text, tokens = self._state.served.elmo, asked.text or "", asked.tokens
        if tokens is not None:
            self._state.check_length(tokens)
        else:
            await self._state.cut([text])  # refuses one that is too long

        def find() -> Response:
            if tokens is not None:
                found = find_substitutes_at(elmo, tokens, asked.place or 0, asked.k)
            else:
                found = substitutes(elmo, text, asked.k)
            self._state.metrics.read(len(found.tokens))
            return answer(_fitting(found))

        return await self._run(find, "Put one word of the text in [brackets].")

    async def nearest(self, asked: requests.NearestRequest) -> Response:
        """The words nearest to a word; or, with its sentence, the usages in the same sense."""
        if asked.text is None and asked.tokens is None:
            return await self._nearest_words(asked)
        index = self._state.served.index(asked.index)
        tokens, place = await self._place(asked, index)
        self._state.metrics.read(len(tokens))
        if asked.same_word:
            await self._known(asked.word, index.words)
        if asked.approximate and (index.head.get("graph") or {}).get("usages") != len(index):
            raise wrong("The index has no graph for approximate search.", "no_graph")

        def find() -> Response:
            only = asked.word if asked.same_word else None
            query = index.vector_at(tokens, place)
            usages = index.nearest(query, asked.k, word=only, approximate=asked.approximate)
            if not asked.layers:
                return answer({"usages": [near_row(usage) for usage in usages]})
            layers, others = self._state.layers(index), list[Usage]()
            if only is None:
                known = {usage.number for usage in usages}
                others = layers.without_context(tokens[place], query, asked.k)
                others = [usage for usage in others if usage.number not in known]
            products = layers.products(tokens, place, [*usages, *others])
            rows = [
                near_row(usage) | more
                for usage, more in zip([*usages, *others], products["usages"], strict=True)
            ]
            found = {"usages": rows[: len(usages)], "others": rows[len(usages) :]}
            return answer(found | {"query": products["query"]})

        return await self._run(find)

    async def _nearest_words(self, asked: requests.NearestRequest) -> Response:
        """The words nearest to a word, whatever its sense."""
        words = self._words(asked.index)
        known = await self._known(asked.word, words)

        def find() -> Response:
            near = words.nearest(known, asked.k, min_count=asked.min_count, min_chars=asked.min_chars)
            rows = [{"word": other, "cosine": cosine, "count": words.count(other)} for other, cosine in near]
            return answer({"words": rows})

        return await self._run(find)

    async def senses(self, asked: requests.SensesRequest) -> Response:
        """The senses of a word: groups of its usages, and a map of them."""
        index = self._state.served.index(asked.index)
        word = await self._known(asked.word, index.words)

        def find() -> Response:
            found = find_senses(index, word, max_senses=asked.most)
            kept = np.sort(np.random.default_rng(0).permutation(len(found.numbers))[:DRAWN])
            points = project(index.vectors(found.numbers[kept]))
            usages = [
                usage_row(index.usage(int(found.numbers[row])))
                | {"x": float(x), "y": float(y), "sense": int(found.labels[row])}
                for row, (x, y) in zip(kept, points, strict=True)
            ]
            values = found.as_dict()
            for sense in (values, *values["senses"]):
                sense["documents"] = names_alone(sense["documents"])
            return answer(values | {"usages": usages})

        return await self._run(find, TOO_FEW, self._state.studying)

    async def change(self, asked: requests.ChangeRequest) -> Response:
        """How words moved between two indexes: those asked for, or the frequent ones that moved most."""
        one, other = (self._state.served.index(name) for name in (asked.one, asked.other))
        await self._check_changed(asked.words or (), one, other)
        pair = self._state.pairs.of(one, other)
        study = ChangeStudy(pair, self._state.limits.timeout * STUDY)

        def find() -> Response:
            found = study.named(asked.words) if asked.words else study.frequent(asked.k)
            changes = [c.as_dict() | {"neighbours": pair.neighbours(c)} for c in found[: asked.k]]
            return answer({"changes": changes, "complete": study.complete})

        return await self._run(find, UNLIKE, self._state.studying, study.left)

    async def _check_changed(self, words: Sequence[str], *indexes: Index) -> None:
        """Refuse words with too few usages; which of them, and where, is told by numbers."""
        for number, word in enumerate(words, start=1):
            for name, index in zip(("first", "second"), indexes, strict=True):
                count = index.words.count(await self._known(word, index.words, number=number))
                if count < MIN_USAGES:
                    raise wrong(
                        f"Word {number} of {len(words)} has {count} usages in the {name} index: "
                        f"{MIN_USAGES} are needed.",
                        "too_few_usages",
                        number=number,
                        count=count,
                        least=MIN_USAGES,
                    )

    async def similarity(self, asked: requests.SimilarityRequest) -> Response:
        """Cosines of two texts, pooled, and of each word of one with each of the other."""
        spec = self._output_spec(asked.layer, None)
        sentences = await self._state.cut(asked.texts)
        self._state.check_values(len(sentences[0]) * len(sentences[1]))
        one, other = await self._state.batcher.vectors(sentences, spec)

        def compare() -> Response:
            to_directions = uncorrected_space(one.shape[1]).to_directions
            matrix = to_directions(one) @ to_directions(other).T
            cosine = None  # of a text without words
            if len(one) and len(other):
                cosine = float(to_directions(one.mean(axis=0)) @ to_directions(other.mean(axis=0)))
            return answer_parts(cosine=cosine, tokens=sentences, matrix=numbers(matrix))

        return await self._state.quick.run(compare)

    async def predict(self, asked: requests.PredictRequest) -> Response:
        """Predict with a task model; a question is a text, or a list of texts if the task takes several."""
        model = self._state.served.task(asked.task)
        self._state.check_count(asked.texts)
        count = model.task.texts_per_question
        questions = [text if isinstance(text, str) else tuple(text) for text in asked.texts]
        if any((1 if isinstance(question, str) else len(question)) != count for question in questions):
            raise wrong(f"A question of this task has {count} text{'s' if count > 1 else ''}.")
        characters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in asked.texts)
        try:
            examples = await self._state.quickly(
                lambda: [model.parse(question, "the question") for question in questions], characters
            )
        except PolysemeError:
            raise wrong(NO_QUESTION) from None
        for tokens in (tokens for example in examples for tokens in example.sentences):
            self._state.check_length(list(tokens))
        texts = [[token for tokens in example.sentences for token in tokens] for example in examples]
        left = threading.Event()

        def find() -> Response:
            parts = _while_wanted(examples, texts, left)
            found = [prediction for part in parts for prediction in model.predict_examples(part)]
            return answer({"predictions": [prediction.as_dict() for prediction in found]})

        return await self._run(find, NO_QUESTION, left=left, tokens=sum(map(len, texts)))

    async def _run(
        self,
        work: Callable[[], Response],
        refused: str = "This cannot be done.",
        threads: WorkerPool | None = None,
        left: threading.Event | None = None,
        tokens: int = 0,
    ) -> Response:
        """`work` that reads `tokens`, in a thread; what the library refuses is told without the text."""

        def counted() -> Response:
            self._state.metrics.read(tokens)
            return work()

        try:
            return await (threads or self._state.asking).run(counted, left)
        except PolysemeError:
            raise wrong(refused, CODES.get(refused)) from None

    async def _known(self, word: str, words: WordVectors, **told: int) -> str:
        """The word if it has usages; near spellings are looked for in a thread, as that takes a while.

        told: what a refusal tells besides these.
        """
        if word in words:
            return word
        near = await self._state.asking.run(lambda: words.suggest_spellings(word))
        guess = f" Near spellings: {', '.join(near)}." if near else ""
        raise missing(f"The word is not in the index.{guess}", "word_missing", near=near, **told)

    def _words(self, name: str | None) -> WordVectors:
        served = self._state.served
        if name is None and not served.indexes:
            if served.words is None:
                raise wrong("The model has no vectors of words, and no index is served.", "no_words")
            return served.words
        return served.index(name).words

    async def _place(self, asked: requests.NearestRequest, index: Index) -> tuple[list[str], int]:
        """The tokens of the sentence, and where among them the word stands."""
        if asked.tokens is not None:
            self._state.check_length(asked.tokens)
            return asked.tokens, asked.place or 0
        (tokens,) = await self._state.cut([asked.text or ""], index.head["segment"])
        places = [place for place, token in enumerate(tokens) if token == asked.word]
        if not places:
            raise wrong("The word is not a token of the text; /tokenize tells how it is cut.", "no_token")
        if len(places) > 1 and asked.which is None:
            raise wrong(
                f"The word stands {len(places)} times in the text: say which, from 1.",
                "several",
                count=len(places),
            )
        if asked.which is not None and asked.which > len(places):
            raise wrong(
                f"which is too large: the word stands {len(places)} times in the text.",
                "which_too_large",
                count=len(places),
            )
        return tokens, places[(asked.which or 1) - 1]

    def _output_spec(self, layer: Any, pool: str | None) -> OutputSpec:
        layers = self._state.served.elmo.config.layers
        try:
            return resolve_output(layer, pool, "both", layers)
        except PolysemeError:
            raise wrong(f"layer is wrong: a number below {layers}, or {layers} weights.") from None

    def _needs_softmax(self) -> None:
        if self._state.served.elmo.model.softmax is None:
            raise wrong("The model has no softmax, so it cannot predict words.", "no_softmax")


def _while_wanted(
    questions: Sequence[One], sentences: Sequence[list[str]], left: threading.Event
) -> Iterator[Sequence[One]]:
    """Questions in parts, by the tokens of their sentences, as long as somebody waits for the answers."""
    start = 0
    for part in chunk_sentences(sentences, PART):
        if left.is_set():
            return
        yield questions[start : start + len(part)]
        start += len(part)


def _scored(one: SentenceScore) -> dict[str, Any]:
    forward, backward, mean = one.totals
    return {
        "tokens": one.tokens,
        "forward": forward,
        "backward": backward,
        "mean": mean,
        "token_scores": one.mean[: len(one.tokens)].tolist(),
        "unknown": one.unknown.tolist(),
    }


def _fitting(found: Substitutes) -> dict[str, Any]:
    def ranking(one: RankedSubstitutes) -> dict[str, Any]:
        best = [{"word": each.word, "probability": math.exp(each.log_prob)} for each in one.best]
        return {"best": best, "rank": one.rank}

    rankings = {name: ranking(getattr(found, name)) for name in ("forward", "backward", "joint")}
    return {"tokens": found.tokens, "place": found.place, **rankings}
