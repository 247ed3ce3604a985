"""The routes that measure: /evaluate (perplexity, scores of a task model) and /disambiguate.

    server.http.requests  ->  server.evaluation  ->  api, server.state

Both take as many texts as clients of other servers may send, and as many tokens as a request of single
sentences; they run one at a time, as all analyses do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from fastapi import FastAPI, Response

from polyseme import api
from polyseme.errors import PolysemeError
from polyseme.server.http import requests
from polyseme.server.http.limits import invalid
from polyseme.server.http.rendering import make_json_response
from polyseme.server.state import ServerState
from polyseme.server.verb_routes import add_verbs
from polyseme.server.verbs import stop_when

INVALID_EXAMPLES = "These are not labelled examples of this task, or a label is not one of its labels."
NO_WORDS = "The texts have no words."
INVALID_SENSES = (
    "Put the word of each sentence in [brackets], name the senses of train, and take a layer of the model."
)


class EvaluationRoutes:
    """The routes of evaluate and disambiguate."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        add_verbs(app, self._state, self.evaluate, self.disambiguate)

    async def evaluate(self, body: requests.EvaluateRequest) -> Response:
        """Measure the perplexity of texts, or the scores of a task model on labelled examples."""
        if body.examples is not None:
            return await self._score_examples(body.examples, body.task)
        texts, catalog = body.texts or [], self._state.catalog
        if catalog.elmo.model.softmax is None:
            raise invalid("The model has no softmax, so it cannot predict words.", "no_softmax")
        self._state.check_count(texts, self._state.limits.max_inputs)
        abandoned = threading.Event()

        def run() -> Response:
            sentences = [
                [token.text for token in sentence]
                for text in texts
                for line in text.splitlines()
                for sentence in catalog.elmo.split_sentences(line)
            ]
            self._check_sentences(sentences)
            self._state.metrics.count_tokens(sum(map(len, sentences)))
            result = api.evaluate(catalog.elmo, texts, progress=stop_when(abandoned))
            return make_json_response(result.total.as_dict())

        return await self._run(run, NO_WORDS, abandoned)

    async def _score_examples(self, rows: Sequence[object], task: str | None) -> Response:
        """The scores of a task model."""
        model = self._state.catalog.task(task)
        self._state.check_count(rows, self._state.limits.max_inputs)
        abandoned = threading.Event()

        def run() -> Response:
            examples = model.read(rows)
            sentences = [tokens for example in examples for tokens in example.sentences]
            self._check_sentences(sentences)
            self._state.metrics.count_tokens(sum(map(len, sentences)))
            return make_json_response(model.score_examples(examples, stop_when(abandoned)).as_dict())

        return await self._run(run, INVALID_EXAMPLES, abandoned)

    async def disambiguate(self, body: requests.DisambiguateRequest) -> Response:
        """Learn the senses of words from examples, and predict those of other usages."""
        elmo, limits = self._state.catalog.elmo, self._state.limits
        examples = [*body.train, *body.test]
        self._state.check_count(examples, limits.max_inputs)
        abandoned = threading.Event()

        def run() -> Response:
            sentences = [elmo.token_texts(example.sentence) for example in examples]
            self._check_sentences(sentences)
            self._state.metrics.count_tokens(sum(map(len, sentences)))
            scores, senses = api.disambiguate(
                elmo,
                [(example.word, example.sentence, example.sense) for example in body.train],
                [(example.word, example.sentence, example.sense) for example in body.test],
                layer=body.layer,
                view=body.view,
                space=body.space,
                prior=body.prior,
                progress=stop_when(abandoned),
            )
            return make_json_response(
                {"senses": senses, "scores": None if scores is None else asdict(scores)}
            )

        return await self._run(run, INVALID_SENSES, abandoned)

    def _check_sentences(self, sentences: Iterable[Sequence[str]]) -> None:
        """Refuse a sentence that is too long, and too many tokens together."""
        count = 0
        for tokens in sentences:
            self._state.check_length(tokens)
            count += len(tokens)
        self._state.check_total(count)

    async def _run(
        self, function: Callable[[], Response], error: str, abandoned: threading.Event
    ) -> Response:
        try:
            return await self._state.analyses.run(function, abandoned)
        except PolysemeError:
            raise invalid(error) from None
