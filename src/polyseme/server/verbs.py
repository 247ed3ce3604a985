"""One route per verb: check the request, run the verb, render the result.

    server.http.requests  ->  server.verbs  ->  api, server.jobs.batching, server.catalog

Verbs call the functions of `api`. Where texts are embedded together with those of other requests, the verb
has two halves there: a plan of what to embed, and what to do with the vectors. Work ends when its request is
gone, because its progress function raises then. Error messages are written here, since those of the library
may repeat a part of the text.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from polyseme import api
from polyseme.books.cast import Cast
from polyseme.elmo import EmbeddingPlan
from polyseme.errors import FormatError, MissingExtraError, PolysemeError, UnknownWordError, WordPositionError
from polyseme.io.progress import OnProgress, ProgressEvent
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.change_screening import MIN_USAGES
from polyseme.search.index import Index, Usage
from polyseme.search.maps import project
from polyseme.search.senses import MIN_USAGES as MIN_SENSE_USAGES
from polyseme.search.senses import represent_usages
from polyseme.server.http import requests
from polyseme.server.http.json_values import (
    generated_to_json,
    key_by_file_name,
    score_to_json,
    substitutes_to_json,
    tokens_to_json,
    usage_to_json,
)
from polyseme.server.http.limits import HttpError, invalid
from polyseme.server.http.rendering import (
    array_to_json,
    arrays_to_json,
    choose_raw_type,
    make_json_response,
    make_json_response_from_parts,
    make_raw_response,
)
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.state import ServerState
from polyseme.server.tei import embed_for_tei
from polyseme.server.verb_routes import add_verbs
from polyseme.server.word_checks import check_word
from polyseme.text.brackets import WordInSentence
from polyseme.word_vectors import WordVectors

MAP_USAGES = 400  # of a word, on its map
CHANGE_TIME = 1 / 3  # of the timeout of a request, for comparing words
PERSONS_TIME = 2 / 3  # of it, at most, for finding persons
PERSONS_WAIT = 20.0  # seconds until the client is told to ask for them again
CHUNK_TOKENS = 2048  # predicted before checking whether the request is gone
TOO_FEW_USAGES = "The word has too few usages to find senses."
NO_DOCUMENTS = "No document fits documents or by, or the word does not occur in these documents."
MODELS_DIFFER = "These indexes cannot be compared: their models differ."
NO_MAP = (
    "by is neither word, sense, document nor a field of the metadata, a word has too few usages for senses, "
    "or no document fits documents."
)
ONE_WORD_IN_BRACKETS = "Put one word of each text in [brackets], or none."
INVALID_QUESTION = "These are not questions of this task."
logger = logging.getLogger(LOGGER)
CODES = {TOO_FEW_USAGES: "too_few_for_senses", MODELS_DIFFER: "models_differ"}


class VerbRoutes:
    """The routes of all verbs.

    Args:
        state: The state of the server.
        chunk_tokens: Tokens to predict before checking whether the request is gone.
        persons_wait: Seconds that a request waits for the persons of an index.

    """

    def __init__(
        self, state: ServerState, *, chunk_tokens: int = CHUNK_TOKENS, persons_wait: float = PERSONS_WAIT
    ) -> None:
        self._state, self._chunk_tokens = state, chunk_tokens
        self._persons_wait = min(persons_wait, state.limits.timeout * PERSONS_TIME)
        self._finding = dict[int, asyncio.Task[Cast]]()  # persons of whole indexes, by id of the index

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application: its own routes are found faster than those of a router."""
        add_verbs(
            app,
            self._state,
            self.embed,
            self.embed_all,
            self.tokenize,
            self.score,
            self.substitutes,
            self.nearest,
            self.senses,
            self.characters,
            self.timeline,
            self.change,
            self.similarity,
            self.predict,
            self.summarise,
            self.generate,
            self.map,
        )

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
            return make_json_response({"tokens": [tokens_to_json(text) for text in texts]})

        return await self._state.run_light(run, sum(map(len, body.texts)))

    async def embed(self, body: requests.EmbedBody, request: Request) -> Response:
        """Embed texts, one vector each: the vectors of its tokens, pooled."""
        if isinstance(body, requests.TeiRequest):
            return await embed_for_tei(self._state, body)
        if body.pool == "sentence" and self._state.catalog.elmo.model.pooling is None:
            raise invalid("The model was not fitted for pool=sentence: use another pool, such as mean.")
        plan = await self._state.plan_embedding(
            body.texts, layer=body.layer, pool=body.pool, direction=body.direction
        )
        size = self._count_values(plan)
        count = len(body.texts) * size
        self._state.check_values(count)
        vectors = await self._state.embed(*plan)

        def render() -> Response:
            media_type = choose_raw_type(request)
            if media_type is not None:
                return make_raw_response([np.stack(vectors)], media_type)
            return make_json_response_from_parts(vectors=arrays_to_json(vectors), size=size)

        return await self._state.run_light(render, count)

    async def embed_all(self, body: requests.EmbedAllRequest, request: Request) -> Response:
        """Embed texts, one vector per token."""
        plan = await self._state.plan_embedding(body.texts, layer=body.layer, direction=body.direction)
        count = plan.tokens * self._count_values(plan)
        self._state.check_values(count)
        vectors = await self._state.embed(*plan)

        def render() -> Response:
            media_type = choose_raw_type(request)
            if media_type is not None:
                return make_raw_response(vectors, media_type)
            return make_json_response_from_parts(tokens=plan.sentences, vectors=arrays_to_json(vectors))

        return await self._state.run_light(render, count)

    def _count_values(self, plan: EmbeddingPlan) -> int:
        """The number of values of a vector, of all its layers together."""
        config = self._state.catalog.elmo.config
        size = config.size if plan.spec.direction == "both" else config.size // 2
        return plan.spec.count_layers(config.layers) * size

    async def score(self, body: requests.ScoreRequest) -> Response:
        """Score texts: natural log probabilities by the language model."""
        self._check_softmax()
        sentences = await self._state.segment(body.texts)
        elmo, abandoned = self._state.catalog.elmo, threading.Event()

        def run() -> Response:
            scores = api.score(elmo, sentences, progress=stop_when(abandoned))
            return make_json_response({"scores": [*map(score_to_json, scores)]})

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
            result = api.substitutes(
                elmo,
                body.sentence or "" if tokens is None else tokens,
                body.k,
                position=body.position,
                context=before,
                following=after,
                counts=body.counts,
            )
            self._state.metrics.count_tokens(len(result.tokens) + sum(map(len, neighbours)))
            return make_json_response(substitutes_to_json(result))

        return await self._run(run, "Put one word of the sentence in [brackets].")

    async def nearest(self, body: requests.NearestRequest) -> Response:
        """Find the words nearest to a word; or, with its context, the usages in the same sense."""
        if body.context is None and body.tokens is None:
            return await self._find_nearest_words(body)
        index = self._state.catalog.index(body.index)
        self._check_index_layer(index, body.layer)
        tokens, position = await self._locate_word(body, index)
        self._state.metrics.count_tokens(len(tokens))
        if body.same_word:
            await self._check_word(body.word, index.words)
        if body.by is not None:
            raise invalid("by has no effect with a context.")
        if body.approximate and (index.head.get("graph") or {}).get("usages") != len(index):
            raise invalid("The index has no graph for approximate search.", "no_graph")

        def run() -> Response:
            usages = api.nearest(
                index,
                tokens[position],
                body.k,
                context=tokens,
                position=position,
                same_word=body.same_word,
                approximate=body.approximate,
                like=body.like,
                unlike=body.unlike,
                min_count=body.min_count,
                min_chars=body.min_chars,
                documents=body.documents,
            )
            if not body.layers:
                return make_json_response({"usages": [usage_to_json(usage, cosine=True) for usage in usages]})
            layers, others = self._state.usage_layers(index), list[Usage]()
            if not body.same_word:
                numbers = {usage.number for usage in usages}
                query = index.query_vector(tokens[position], tokens, position=position)
                others = layers.nearest_in_token_layer(tokens[position], query, body.k)
                others = [usage for usage in others if usage.number not in numbers]
            products = layers.dot_products(tokens, position, [*usages, *others])
            values = [
                usage_to_json(usage, cosine=True) | product
                for usage, product in zip([*usages, *others], products["usages"], strict=True)
            ]
            near, far = values[: len(usages)], values[len(usages) :]
            return make_json_response({"usages": near, "others": far, "query": products["query"]})

        return await self._run(run)

    async def _find_nearest_words(self, body: requests.NearestRequest) -> Response:
        """Find the words nearest to a word, whatever its sense."""
        words = self._get_words(body.index)
        if body.layer is not None:
            self._check_index_layer(self._state.catalog.index(body.index), body.layer)
        for word in (body.word, *body.like, *body.unlike):
            await self._check_word(word, words)

        has_index = body.index is not None or bool(self._state.catalog.indexes)
        if (body.documents is not None or body.by is not None) and not has_index:
            raise invalid("documents and by need an index, and this server has none.")

        def run() -> Response:
            source = words
            counts = words.count
            if body.documents is not None or body.by is not None:
                part = _restrict(self._state.catalog.index(body.index), body.documents)
                if body.by is not None:
                    return make_json_response({"groups": self._find_nearest_by_group(body, part, body.by)})
                source, counts = part.words_with(body.word, *body.like, *body.unlike), part.count
            nearest = api.nearest(
                source,
                body.word,
                body.k,
                like=body.like,
                unlike=body.unlike,
                min_count=body.min_count,
                min_chars=body.min_chars,
            )
            return make_json_response(
                {
                    "words": [
                        {"word": word, "cosine": cosine, "count": counts(word)} for word, cosine in nearest
                    ]
                }
            )

        return await self._run(run, NO_DOCUMENTS)

    @staticmethod
    def _find_nearest_by_group(body: requests.NearestRequest, part: Index, by: str) -> list[dict[str, Any]]:
        """The words nearest to a word in each group of documents."""
        groups = api.nearest(
            part,
            body.word,
            body.k,
            like=body.like,
            unlike=body.unlike,
            min_count=body.min_count,
            min_chars=body.min_chars,
            by=by,
        )
        return [group.as_dict() for group in groups]

    async def senses(self, body: requests.SensesRequest) -> Response:
        """Find the senses of a word: groups of its usages, and a map of them."""
        index = self._state.catalog.index(body.index)
        await self._check_word(body.word, index.words)

        def run() -> Response:
            part = _restrict(index, body.documents)
            result = self._state.models.find_senses(
                part, body.word, max_senses=body.max_senses, groups=body.groups, seed=body.seed, by=body.by
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
            return make_json_response(values | {"usages": usages})

        return await self._run(run, TOO_FEW_USAGES, self._state.analyses)

    async def characters(self, body: requests.CharactersRequest) -> Response:
        """Find the persons of an index: where they occur, with whom, and who is spoken of alike.

        The first request for an index starts the work, which takes seconds to a minute. It goes on when the
        request is gone, and later requests get its result.
        """
        index, casts = self._state.catalog.index(body.index), self._state.models.casts
        abandoned = threading.Event()

        def find() -> Cast:
            part, progress = _restrict(index, body.documents), stop_when(abandoned)
            return casts.find((part,), body.k, lambda: api.characters(part, k=body.k, progress=progress))

        if body.documents is not None or "k" in body.model_fields_set:
            return await self._run(
                lambda: make_json_response(find().as_dict()), NO_DOCUMENTS, self._state.persons, abandoned
            )
        finding = self._finding.get(id(index))
        if finding is None:
            finding = self._finding[id(index)] = asyncio.create_task(self._state.persons.run(find))
            finding.add_done_callback(lambda task: self._end_finding(id(index), task))
        await asyncio.wait([finding], timeout=self._persons_wait)
        if not finding.done():
            raise HttpError(
                503,
                "computing",
                "The persons of this index are being found, once. Ask again in a few seconds.",
                retry_after=2,
                code="finding_persons",
            )
        return await self._state.run_light(lambda: make_json_response(finding.result().as_dict()), len(index))

    def _end_finding(self, key: int, task: asyncio.Task[Cast]) -> None:
        """Forget a search for persons; if it failed when nobody waited, the log has it."""
        del self._finding[key]
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.error("finding persons failed", exc_info=problem)

    async def timeline(self, body: requests.TimelineRequest) -> Response:
        """Count a word and its senses over documents or years."""
        index = self._state.catalog.index(body.index)
        await self._check_word(body.word, index.words)

        def run() -> Response:
            part, found = _restrict(index, body.documents), None
            if part.count(body.word) >= MIN_SENSE_USAGES:
                found = self._state.models.find_senses(
                    part, body.word, max_senses=body.max_senses, groups=body.groups, seed=body.seed
                )
            result = api.timeline(part, body.word, by=body.by, computed=found)
            return make_json_response(result.as_dict())

        return await self._run(run, NO_DOCUMENTS, self._state.analyses)

    async def change(self, body: requests.ChangeRequest) -> Response:
        """Find how words changed between two indexes: given words, or the frequent ones that changed most."""
        first, second = (self._state.catalog.index(name) for name in (body.first, body.second))
        if body.documents is not None or body.against is not None:
            selections = (first, body.documents), (second, body.against)

            def restrict_both() -> tuple[Index, Index]:
                before, after = (_restrict(index, documents) for index, documents in selections)
                return before, after

            try:
                first, second = await self._state.queries.run(restrict_both)
            except PolysemeError:
                raise invalid(NO_DOCUMENTS) from None
        await self._check_change_words(body.words, first, second)
        memo = self._state.models.get_changes(first, second, body.seed)
        abandoned = threading.Event()

        def run() -> Response:
            changes = api.change(
                memo.computed.first,
                memo.computed.second,
                body.words,
                k=body.k,
                min_count=body.min_count,
                all_words=body.all_words,
                seed=body.seed,
                timeout=self._state.limits.timeout * CHANGE_TIME,
                computed=memo.computed,
                progress=stop_when(abandoned),
            )
            rows = [change.as_dict() | {"neighbours": memo.neighbours(change)} for change in changes]
            return make_json_response({"changes": rows, "complete": changes.complete})

        return await self._run(run, MODELS_DIFFER, self._state.analyses, abandoned)

    async def _check_change_words(self, words: Sequence[str], *indexes: Index) -> None:
        """Refuse words with too few usages; errors name them by number."""
        for number, word in enumerate(words, start=1):
            for name, index in zip(("first", "second"), indexes, strict=True):
                await self._check_word(word, index.whole.words, number=number)
                count = await self._state.queries.run(partial(_count, index, word))
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
        """Compare words, sentences or usages (a word in [brackets]); of two, also all pairs of tokens."""
        catalog, texts = self._state.catalog, body.texts
        self._state.check_count(texts)
        source = catalog.elmo if body.index is None else catalog.index(body.index)
        if isinstance(source, Index):
            self._check_index_layer(source, body.layer)
        else:
            self._resolve_output("top" if body.layer is None else body.layer, None)
        words = source.words if isinstance(source, Index) else catalog.words

        def make_plan() -> api.SimilarityPlan:
            return api.plan_similarity(source, *texts, layer=body.layer, words=catalog.words)

        try:
            plan = await self._state.run_light(make_plan, sum(map(len, texts)))
        except UnknownWordError:
            for number, text in enumerate(texts, start=1):
                if words is not None:
                    await self._check_word(text, words, number=number)
            raise
        except FormatError:
            raise invalid("The model has no word vectors: name a layer.", "no_words") from None
        except PolysemeError:
            if not any("[" in text for text in texts):
                raise invalid("A text has no words.", "no_tokens") from None
            raise invalid(ONE_WORD_IN_BRACKETS) from None
        for tokens in plan.sentences:
            self._state.check_length(tokens)
        is_pair = len(texts) == 2
        lengths = [len(tokens) for tokens in plan.sentences] or [1] * len(texts)
        self._state.check_values(lengths[0] * lengths[1] if is_pair else len(texts) ** 2)
        vectors = [] if plan.encoder is None else await self._state.embed(plan.sentences, plan.encoder.spec)

        def run() -> Response:
            result = plan.finish(vectors)
            return make_json_response_from_parts(
                kind=result.kind,
                cosines=array_to_json(result.cosines),
                odd_one_out=result.odd_one_out,
                tokens=result.tokens,
                cosine=result.cosine if is_pair else None,
                matrix=array_to_json(result.compare_tokens()) if is_pair else None,
                usual=None if result.usual is None else result.usual.as_dict(),
            )

        return await self._state.light_jobs.run(run)

    def _check_index_layer(self, index: Index, layer: Layer | None) -> None:
        """Refuse a layer that an index does not store."""
        if layer is None:
            return
        try:
            index.check_layer(layer)
        except PolysemeError:
            raise invalid(f"The index stores layer {index.head['layer']}.", "other_layer") from None

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
            plan = await self._state.run_light(
                lambda: api.plan_prediction(model, questions, plain_text=True), characters
            )
        except PolysemeError:
            raise invalid(INVALID_QUESTION) from None
        sentences = [tokens for example in plan.examples for tokens in example.sentences]
        for tokens in sentences:
            self._state.check_length(tokens)
        abandoned = threading.Event()

        def run() -> Response:
            predictions = plan.run(stop_when(abandoned), chunk_tokens=self._chunk_tokens)
            return make_json_response({"predictions": [*map(api.describe_prediction, predictions)]})

        return await self._run(run, INVALID_QUESTION, abandoned=abandoned, tokens=sum(map(len, sentences)))

    async def summarise(self, body: requests.SummariseRequest) -> Response:
        """Summarise a text by its most central sentences."""
        elmo, abandoned = self._state.catalog.elmo, threading.Event()
        sentences = await self._state.run_light(lambda: elmo.split_sentences(body.text), len(body.text))
        if not sentences:
            raise invalid("The text has no sentences.")
        for sentence in sentences:
            self._state.check_length(sentence)
        count = sum(map(len, sentences))
        self._state.check_total(count)

        def run() -> Response:
            summary = api.summarise(
                elmo,
                body.text,
                sentences=body.sentences,
                diversity=body.diversity,
                progress=stop_when(abandoned),
            )
            return make_json_response(summary.as_dict())

        return await self._run(run, abandoned=abandoned, tokens=count)

    async def generate(self, body: requests.GenerateRequest) -> Response:
        """Continue a text, word by word, with the forward language model."""
        self._check_softmax()
        elmo, abandoned = self._state.catalog.elmo, threading.Event()
        sentences = await self._state.run_light(lambda: elmo.split_sentences(body.prompt), len(body.prompt))
        for sentence in sentences:
            self._state.check_length(sentence)
        count = sum(len(sentence) for sentence in sentences)
        self._state.check_total(count)

        def run() -> Response:
            result = api.generate(
                elmo,
                body.prompt,
                tokens=body.tokens,
                temperature=body.temperature,
                top_k=body.top_k,
                seed=body.seed,
                stop_at_end=body.stop_at_end,
                progress=stop_when(abandoned),
            )
            self._state.metrics.count_tokens(len(result.tokens))
            return make_json_response(generated_to_json(result))

        return await self._run(run, pool=self._state.analyses, abandoned=abandoned, tokens=count)

    async def map(self, body: requests.MapRequest) -> Response:
        """Place the usages of words in two dimensions."""
        index = self._state.catalog.index(body.index)
        words = [body.words] if isinstance(body.words, str) else body.words
        for number, word in enumerate(words, start=1):
            await self._check_word(word, index.words, number=number)
        abandoned = threading.Event()

        def run() -> Response:
            try:
                usage_map = api.map_usages(
                    index,
                    words,
                    by=body.by,
                    method=body.method,
                    documents=body.documents,
                    progress=stop_when(abandoned),
                )
            except MissingExtraError:
                raise invalid("The server has no openTSNE: use method pca.", "no_tsne") from None
            rows = zip(usage_map.usages, usage_map.points, usage_map.groups, strict=True)
            usages = [
                usage_to_json(usage) | {"x": float(x), "y": float(y), "group": group}
                for usage, (x, y), group in rows
            ]
            return make_json_response({"usages": usages})

        return await self._run(run, NO_MAP, self._state.analyses, abandoned)

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
        await check_word(self._state, word, words, **values)

    def _get_words(self, name: str | None) -> WordVectors:
        """The word vectors of an index, or of the model if there is no index."""
        catalog = self._state.catalog
        if name is None and not catalog.indexes:
            if catalog.words is None:
                raise invalid("The model has no word vectors, and this server has no index.", "no_words")
            return catalog.words
        return catalog.index(name).words

    async def _locate_word(self, body: requests.NearestRequest, index: Index) -> WordInSentence:
        """The tokens of the sentence, and the position of the word among them."""
        context = body.context if body.tokens is None else body.tokens
        if context is None:
            raise invalid("Give a context, or tokens with a position.")
        characters = len(context) if isinstance(context, str) else 0
        try:
            located = await self._state.run_light(
                lambda: index.locate(body.word, context, which=body.which, position=body.position), characters
            )
        except WordPositionError as problem:
            count = problem.count
            if not count:
                message = "The word is not a token of the context; /tokenize shows its tokens."
                raise invalid(message, "no_token") from None
            if body.which is None:
                message = f"The word occurs {count} times in the context: set which, from 1."
                raise invalid(message, "several", count=count) from None
            message = f"which is too large: the word occurs {count} times in the context."
            raise invalid(message, "which_too_large", count=count) from None
        except PolysemeError:
            raise invalid("Put one word of the context in [brackets], or none.") from None
        self._state.check_length(located.tokens)
        return located

    def _resolve_output(self, layer: Any, pool: str | None) -> OutputSpec:
        layers = self._state.catalog.elmo.config.layers
        try:
            return resolve_output(layer, pool, "both", layers)
        except PolysemeError:
            raise invalid(f"layer must be a number below {layers}, or {layers} weights.") from None

    def _check_softmax(self) -> None:
        if self._state.catalog.elmo.model.softmax is None:
            raise invalid("The model has no softmax, so it cannot predict words.", "no_softmax")


def _restrict(index: Index, documents: str | None) -> Index:
    return index if documents is None else index.restrict(documents)


def _count(index: Index, word: str) -> int:
    """How many usages a word has in an index or a part of one."""
    try:
        return index.count(word)
    except UnknownWordError:
        return 0


class RequestGoneError(Exception):
    """Nobody waits for the result any more."""


def stop_when(abandoned: threading.Event) -> OnProgress:
    """A progress function that ends the work when its request is gone."""

    def on_progress(_: ProgressEvent) -> None:
        if abandoned.is_set():
            raise RequestGoneError

    return on_progress
