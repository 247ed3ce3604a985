"""One route per verb: check the request, run the verb, render the result.

    server.http.requests  ->  server.verbs  ->  api, server.jobs.batching, server.catalog

Verbs call the functions of `api`. Where requests are batched (embed, similarity), time-limited (change) or
have tokens instead of text, they call the functions that `api` calls. Error messages are written here, since
those of the library may repeat a part of the text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from fastapi import FastAPI, Request, Response

from polyseme import api
from polyseme.errors import PolysemeError
from polyseme.language import find_substitutes_at, score
from polyseme.model.output import OutputSpec, resolve_output
from polyseme.search.change import MIN_USAGES
from polyseme.search.index import Index, Usage
from polyseme.search.maps import project
from polyseme.search.senses import represent_usages
from polyseme.search.similarity import UsageEncoder
from polyseme.search.space import uncorrected_space
from polyseme.server.http import requests
from polyseme.server.http.json_values import (
    key_by_file_name,
    score_to_json,
    substitutes_to_json,
    tokens_to_json,
    usage_to_json,
)
from polyseme.server.http.limits import invalid, not_found
from polyseme.server.http.openapi import response_docs
from polyseme.server.http.rendering import (
    accepted_raw_type,
    array_to_json,
    arrays_to_json,
    json_response,
    json_response_from_parts,
    raw_response,
)
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.state import ServerState
from polyseme.server.word_change import ChangeSearch
from polyseme.text.brackets import parse_brackets
from polyseme.text.length_batches import chunk_sentences
from polyseme.word_vectors import WordVectors

MAP_USAGES = 400  # of a word, on its map
CHANGE_TIME = 1 / 3  # of the timeout of a request, for comparing words
CHUNK_TOKENS = 2048  # scored or predicted before checking whether the request is gone
TOO_FEW_USAGES = "The word has too few usages to find senses."
MODELS_DIFFER = "These indexes cannot be compared: their models differ."
ONE_WORD_IN_BRACKETS = "Put one word of each text in [brackets], or none."
INVALID_QUESTION = "These are not questions of this task."
CODES = {TOO_FEW_USAGES: "too_few_for_senses", MODELS_DIFFER: "models_differ"}
Item = TypeVar("Item")


class VerbRoutes:
    """The routes of all verbs.

    Args:
        state: The state of the server.
        chunk_tokens: Tokens to score or predict before checking whether the request is gone.

    """

    def __init__(self, state: ServerState, *, chunk_tokens: int = CHUNK_TOKENS) -> None:
        self._state, self._chunk_tokens = state, chunk_tokens

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application: its own routes are found faster than those of a router."""
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
            docs = response_docs(route)
            app.add_api_route(route, handler, methods=["POST"], response_class=Response, responses=docs)

    async def tokenize(self, body: requests.TokenizeRequest) -> Response:
        """Segment texts into sentences and tokens, with offsets."""
        elmo = self._state.catalog.elmo
        segment = None if body.index is None else self._state.catalog.index(body.index).head["segment"]
        self._state.check_count(body.texts)

        def run() -> Response:
            texts = [elmo.split_sentences(text, segment) for text in body.texts]
            sentences = [sentence for text in texts for sentence in text]
            for sentence in sentences:
                self._state.check_length(sentence)
            self._state.check_total(sum(map(len, sentences)))
            return json_response({"tokens": [tokens_to_json(text) for text in texts]})

        return await self._state.run_light(run, sum(map(len, body.texts)))

    async def embed(self, body: requests.EmbedRequest, request: Request) -> Response:
        """Embed texts, one vector each: the vectors of its tokens, pooled."""
        config = self._state.catalog.elmo.config
        spec = self._resolve_output(body.layer, body.pool)
        size = spec.count_layers(config.layers) * config.size
        count = len(body.texts) * size
        self._state.check_values(count)
        sentences = await self._state.segment(body.texts)
        vectors = await self._state.batcher.embed(sentences, spec)

        def render() -> Response:
            media_type = accepted_raw_type(request)
            if media_type is not None:
                return raw_response([np.stack(vectors)], media_type)
            return json_response_from_parts(vectors=arrays_to_json(vectors), size=size)

        return await self._state.run_light(render, count)

    async def embed_all(self, body: requests.EmbedAllRequest, request: Request) -> Response:
        """Embed texts, one vector per token."""
        config = self._state.catalog.elmo.config
        spec = self._resolve_output(body.layer, None)
        sentences = await self._state.segment(body.texts)
        layers = spec.count_layers(config.layers)
        count = sum(map(len, sentences)) * layers * config.size
        self._state.check_values(count)
        vectors = await self._state.batcher.embed(sentences, spec)

        def render() -> Response:
            media_type = accepted_raw_type(request)
            if media_type is not None:
                return raw_response(vectors, media_type)
            return json_response_from_parts(tokens=sentences, vectors=arrays_to_json(vectors))

        return await self._state.run_light(render, count)

    async def score(self, body: requests.ScoreRequest) -> Response:
        """Score texts: natural log probabilities by the language model."""
        self._check_softmax()
        sentences = await self._state.segment(body.texts)
        elmo, abandoned = self._state.catalog.elmo, threading.Event()

        def run() -> Response:
            chunks = _chunks_until(abandoned, sentences, sentences, self._chunk_tokens)
            return json_response(
                {"scores": [score_to_json(result) for chunk in chunks for result in score(elmo, chunk)]}
            )

        return await self._run(run, abandoned=abandoned, tokens=sum(map(len, sentences)))

    async def substitutes(self, body: requests.SubstitutesRequest) -> Response:
        """Find the words that fit a position of a sentence: given the left side, the right side, and both."""
        self._check_softmax()
        elmo, tokens = self._state.catalog.elmo, body.tokens
        neighbours = await self._state.segment([*body.context, *body.following])
        before, after = neighbours[: len(body.context)], neighbours[len(body.context) :]
        if tokens is not None:
            self._state.check_length(tokens)
        else:
            await self._state.segment([body.sentence or ""])  # an error if it is too long

        def run() -> Response:
            if tokens is not None:
                result = find_substitutes_at(
                    elmo, tokens, body.position or 0, body.k, context=before, following=after
                )
            else:
                result = api.substitutes(
                    elmo, body.sentence or "", body.k, context=body.context, following=body.following
                )
            self._state.metrics.count_tokens(len(result.tokens) + sum(map(len, neighbours)))
            return json_response(substitutes_to_json(result))

        return await self._run(run, "Put one word of the sentence in [brackets].")

    async def nearest(self, body: requests.NearestRequest) -> Response:
        """Find the words nearest to a word; or, with its context, the usages in the same sense."""
        if body.context is None and body.tokens is None:
            return await self._nearest_words(body)
        index = self._state.catalog.index(body.index)
        tokens, position = await self._locate_word(body, index)
        self._state.metrics.count_tokens(len(tokens))
        if body.same_word:
            await self._check_word(body.word, index.words)
        if body.approximate and (index.head.get("graph") or {}).get("usages") != len(index):
            raise invalid("The index has no graph for approximate search.", "no_graph")

        def run() -> Response:
            word = body.word if body.same_word else None
            query = index.vector_at(tokens, position)
            usages = index.nearest(query, body.k, word=word, approximate=body.approximate)
            if not body.layers:
                return json_response({"usages": [usage_to_json(usage, cosine=True) for usage in usages]})
            layers, others = self._state.usage_layers(index), list[Usage]()
            if word is None:
                numbers = {usage.number for usage in usages}
                others = layers.nearest_in_token_layer(tokens[position], query, body.k)
                others = [usage for usage in others if usage.number not in numbers]
            products = layers.dot_products(tokens, position, [*usages, *others])
            values = [
                usage_to_json(usage, cosine=True) | product
                for usage, product in zip([*usages, *others], products["usages"], strict=True)
            ]
            near, far = values[: len(usages)], values[len(usages) :]
            return json_response({"usages": near, "others": far, "query": products["query"]})

        return await self._run(run)

    async def _nearest_words(self, body: requests.NearestRequest) -> Response:
        """Find the words nearest to a word, whatever its sense."""
        words = self._words(body.index)
        for word in (body.word, *body.like, *body.unlike):
            await self._check_word(word, words)

        def run() -> Response:
            nearest = api.nearest(
                words,
                body.word,
                body.k,
                like=body.like,
                unlike=body.unlike,
                min_count=body.min_count,
                min_chars=body.min_chars,
            )
            return json_response(
                {
                    "words": [
                        {"word": word, "cosine": cosine, "count": words.count(word)}
                        for word, cosine in nearest
                    ]
                }
            )

        return await self._run(run)

    async def senses(self, body: requests.SensesRequest) -> Response:
        """Find the senses of a word: groups of its usages, and a map of them."""
        index = self._state.catalog.index(body.index)
        await self._check_word(body.word, index.words)

        def run() -> Response:
            result = api.senses(
                index, body.word, max_senses=body.max_senses, groups=body.groups, seed=body.seed
            )
            sample = np.sort(np.random.default_rng(0).permutation(len(result.numbers))[:MAP_USAGES])
            points = project(represent_usages(index, body.word, result.numbers[sample]))
            usages = [
                usage_to_json(index.usage(int(result.numbers[row])))
                | {"x": float(x), "y": float(y), "sense": int(result.labels[row])}
                for row, (x, y) in zip(sample, points, strict=True)
            ]
            values = result.as_dict()
            for sense in (values, *values["senses"]):
                sense["documents"] = key_by_file_name(sense["documents"])
            return json_response(values | {"usages": usages})

        return await self._run(run, TOO_FEW_USAGES, self._state.analyses)

    async def change(self, body: requests.ChangeRequest) -> Response:
        """Find how words changed between two indexes: given words, or the frequent ones that changed most."""
        first, second = (self._state.catalog.index(name) for name in (body.first, body.second))
        await self._check_change_words(body.words, first, second)
        pair = self._state.index_pairs.get(first, second)
        search = ChangeSearch(pair, self._state.limits.timeout * CHANGE_TIME)

        def run() -> Response:
            result = search.compare_words(body.words) if body.words else search.find_most_changed(body.k)
            changes = [change.as_dict() | {"neighbours": pair.neighbours(change)} for change in result]
            return json_response({"changes": changes, "complete": search.complete})

        return await self._run(run, MODELS_DIFFER, self._state.analyses, search.abandoned)

    async def _check_change_words(self, words: Sequence[str], *indexes: Index) -> None:
        """Refuse words with too few usages; errors name them by number."""
        for number, word in enumerate(words, start=1):
            for name, index in zip(("first", "second"), indexes, strict=True):
                await self._check_word(word, index.words, number=number)
                count = index.words.count(word)
                if count < MIN_USAGES:
                    raise invalid(
                        f"Word {number} of {len(words)} has {count} usages in the {name} index: "
                        f"at least {MIN_USAGES} are needed.",
                        "too_few_usages",
                        number=number,
                        count=count,
                        minimum=MIN_USAGES,
                    )

    async def similarity(self, body: requests.SimilarityRequest) -> Response:
        """Compare two sentences, or two usages (a word in [brackets]), and all pairs of their tokens."""
        spec = self._resolve_output(body.layer, None)
        elmo, texts = self._state.catalog.elmo, body.texts
        is_usage = ["[" in text for text in texts]
        if any(is_usage) and not all(is_usage):
            raise invalid("Only one text has a word in [brackets]: mark one in each, or in none.")

        def segment(text: str) -> list[str]:
            before, word, after = parse_brackets(text) if "[" in text else (text, "", "")
            return [*elmo.token_texts(before), *([word] if word else []), *elmo.token_texts(after)]

        try:
            sentences = await self._state.run_light(lambda: [*map(segment, texts)], sum(map(len, texts)))
        except PolysemeError:
            raise invalid(ONE_WORD_IN_BRACKETS) from None
        for tokens in sentences:
            self._state.check_length(tokens)
        self._state.check_values(len(sentences[0]) * len(sentences[1]))
        first, second = await self._state.batcher.embed(sentences, spec)

        def run() -> Response:
            vectors = {tuple(tokens): array for tokens, array in zip(sentences, (first, second), strict=True)}
            encoder = UsageEncoder(
                elmo.token_texts, lambda tokens: vectors[tuple(tokens)], uncorrected_space(first.shape[1])
            )
            cosine = None  # for a text without tokens
            if len(first) and len(second):
                encode = encoder.encode_usage if all(is_usage) else encoder.encode_sentence
                cosine = float(encode(texts[0]) @ encode(texts[1]))
            to_directions = encoder.space.to_directions
            matrix = array_to_json(to_directions(first) @ to_directions(second).T)
            return json_response_from_parts(cosine=cosine, tokens=sentences, matrix=matrix)

        try:
            return await self._state.light_jobs.run(run)
        except PolysemeError:
            raise invalid(ONE_WORD_IN_BRACKETS) from None

    async def predict(self, body: requests.PredictRequest) -> Response:
        """Predict with a task model; a question is a text, or a list of texts if the task takes several."""
        model = self._state.catalog.task(body.task)
        self._state.check_count(body.texts)
        count = model.task.texts_per_question
        questions = [text if isinstance(text, str) else tuple(text) for text in body.texts]
        if any((1 if isinstance(question, str) else len(question)) != count for question in questions):
            raise invalid(f"A question of this task has {count} text{'s' if count > 1 else ''}.")
        characters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in body.texts)
        try:
            examples = await self._state.run_light(
                lambda: [model.parse(question, "the question") for question in questions], characters
            )
        except PolysemeError:
            raise invalid(INVALID_QUESTION) from None
        for tokens in (tokens for example in examples for tokens in example.sentences):
            self._state.check_length(tokens)
        texts = [[token for tokens in example.sentences for token in tokens] for example in examples]
        abandoned = threading.Event()

        def run() -> Response:
            chunks = _chunks_until(abandoned, examples, texts, self._chunk_tokens)
            predictions = [prediction for chunk in chunks for prediction in model.predict_examples(chunk)]
            return json_response({"predictions": [prediction.as_dict() for prediction in predictions]})

        tokens_read = sum(map(len, texts))
        return await self._run(run, INVALID_QUESTION, abandoned=abandoned, tokens=tokens_read)

    async def _run(
        self,
        function: Callable[[], Response],
        error: str = "This cannot be done.",
        pool: WorkerPool | None = None,
        abandoned: threading.Event | None = None,
        tokens: int = 0,
    ) -> Response:
        """Call `function` in a thread.

        Args:
            function: What to call.
            error: Message for an error of the library, whose message may repeat the text.
            pool: Threads to use; those for queries if left out.
            abandoned: Set when the request is gone.
            tokens: Number of tokens that the function processes, for the metrics.

        """

        def count_and_run() -> Response:
            self._state.metrics.count_tokens(tokens)
            return function()

        try:
            return await (pool or self._state.queries).run(count_and_run, abandoned)
        except PolysemeError:
            raise invalid(error, CODES.get(error)) from None

    async def _check_word(self, word: str, words: WordVectors, **values: int) -> None:
        """Refuse a word without usages, with near spellings; `values` are for the error."""
        if word in words:
            return
        near = await self._state.queries.run(lambda: words.suggest_spellings(word))
        hint = f" Near spellings: {', '.join(near)}." if near else ""
        raise not_found(f"The word is not in the index.{hint}", "word_missing", near=near, **values)

    def _words(self, name: str | None) -> WordVectors:
        """The word vectors of an index, or of the model if there is no index."""
        catalog = self._state.catalog
        if name is None and not catalog.indexes:
            if catalog.words is None:
                raise invalid("The model has no word vectors, and this server has no index.", "no_words")
            return catalog.words
        return catalog.index(name).words

    async def _locate_word(self, body: requests.NearestRequest, index: Index) -> tuple[list[str], int]:
        """The tokens of the sentence, and the position of the word among them."""
        if body.tokens is not None:
            self._state.check_length(body.tokens)
            return body.tokens, body.position or 0
        context, segment = body.context or "", index.head["segment"]
        if f"[{body.word}]" in context and body.which is None:
            try:
                before, word, after = parse_brackets(context)
            except PolysemeError:
                raise invalid("Put one word of the context in [brackets], or none.") from None
            left, right = await self._state.segment([before, after], segment)
            return [*left, word, *right], len(left)
        (tokens,) = await self._state.segment([context], segment)
        positions = [position for position, token in enumerate(tokens) if token == body.word]
        count = len(positions)
        if not positions:
            raise invalid("The word is not a token of the context; /tokenize shows its tokens.", "no_token")
        if count > 1 and body.which is None:
            raise invalid(
                f"The word occurs {count} times in the context: set which, from 1.", "several", count=count
            )
        if body.which is not None and body.which > count:
            raise invalid(
                f"which is too large: the word occurs {count} times in the context.",
                "which_too_large",
                count=count,
            )
        return tokens, positions[(body.which or 1) - 1]

    def _resolve_output(self, layer: Any, pool: str | None) -> OutputSpec:
        layers = self._state.catalog.elmo.config.layers
        try:
            return resolve_output(layer, pool, "both", layers)
        except PolysemeError:
            raise invalid(f"layer must be a number below {layers}, or {layers} weights.") from None

    def _check_softmax(self) -> None:
        if self._state.catalog.elmo.model.softmax is None:
            raise invalid("The model has no softmax, so it cannot predict words.", "no_softmax")


def _chunks_until(
    abandoned: threading.Event, items: Sequence[Item], sentences: Sequence[list[str]], chunk_tokens: int
) -> Iterator[Sequence[Item]]:
    """Items in chunks, by the tokens of their sentences, until the request is gone."""
    start = 0
    for chunk in chunk_sentences(sentences, chunk_tokens):
        if abandoned.is_set():
            return
        yield items[start : start + len(chunk)]
        start += len(chunk)
