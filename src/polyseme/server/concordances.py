"""The routes that read a corpus word by word: /concordance, /collocates, /passage.

server.http.requests  ->  server.concordances  ->  api.concordances, server.served_models

Senses are found once for a word and kept, so that the next page of lines takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response

from polyseme import api
from polyseme.errors import PolysemeError, UnknownWordError
from polyseme.search.concordance import describe_senses
from polyseme.search.index import Index
from polyseme.search.senses import MIN_USAGES, Senses
from polyseme.server.http import requests
from polyseme.server.http.limits import invalid, not_found
from polyseme.server.http.rendering import make_json_response
from polyseme.server.state import ServerState
from polyseme.server.verb_routes import add_verbs
from polyseme.server.word_checks import check_word

MAX_DOCUMENTS = 1000  # of a response
NO_LINES = "No document fits documents or by, or the word does not occur there, or not near the collocate."
SenseRequest = requests.ConcordanceRequest | requests.CollocatesRequest


class ConcordanceRoutes:
    """The routes of concordance, collocates and passage.

    Args:
        state: The state of the server.

    """

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        add_verbs(app, self._state, self.concordance, self.collocates, self.passage)

    async def concordance(self, body: requests.ConcordanceRequest) -> Response:
        """List the usages of a word as lines, sorted, and count them over documents."""
        whole = self._state.catalog.index(body.index)
        await check_word(self._state, body.word, whole.words)
        if body.collocate is not None:
            await check_word(self._state, body.collocate, whole.words)
        if (body.usage is None) == (body.sort == "similarity"):
            raise invalid("sort similarity needs usage, the number of a usage, and no other order takes it.")
        _check_usage(body.usage, whole)

        def run() -> Response:
            index = _restrict(whole, body.documents)
            found = api.concordance(
                index,
                body.word,
                body.k,
                start=body.start,
                sort=body.sort,
                usage=body.usage,
                collocate=body.collocate,
                window=body.window,
                width=body.width,
                by=body.by,
                computed=self._find_senses(index, body) if body.sort == "sense" else None,
            )
            values = found.as_dict()
            values["documents"] = values["documents"][:MAX_DOCUMENTS]
            for line in values["lines"]:
                line["document"] = Path(line["document"]).name
            return make_json_response(values)

        return await self._run(run, long=body.sort == "sense")

    async def collocates(self, body: requests.CollocatesRequest) -> Response:
        """Find the words that stand near a word more often than elsewhere, and near which of its senses."""
        whole = self._state.catalog.index(body.index)
        await check_word(self._state, body.word, whole.words)

        def run() -> Response:
            index = _restrict(whole, body.documents)
            senses = self._find_senses(index, body) if body.senses else None
            found = api.collocates(
                index,
                body.word,
                body.k,
                window=body.window,
                min_count=body.min_count,
                all_words=body.all_words,
                senses=body.senses,
                computed=senses,
            )
            values: dict[str, Any] = {
                "word": body.word,
                "collocates": [collocate.as_dict() for collocate in found],
                "kind": None if senses is None else senses.kind,
                "senses": None if senses is None else describe_senses(senses),
            }
            return make_json_response(values)

        return await self._run(run, long=body.senses)

    async def passage(self, body: requests.PassageRequest) -> Response:
        """Read the text around a usage."""
        index = self._state.catalog.index(body.index)
        _check_usage(body.usage, index)

        def run() -> Response:
            values = api.passage(index, body.usage, body.sentences).as_dict()
            return make_json_response(values | {"document": Path(values["document"]).name})

        return await self._run(run)

    def _find_senses(self, index: Index, body: SenseRequest) -> Senses:
        """The senses that a request asks for, which may be known."""
        if index.count(body.word) < MIN_USAGES:
            raise invalid("The word has too few usages to find senses.", "too_few_for_senses")
        return self._state.models.find_senses(
            index, body.word, max_senses=body.max_senses, groups=body.groups, seed=body.seed
        )

    async def _run(self, function: Callable[[], Response], *, long: bool = False) -> Response:
        """Call a function in a thread: of those for analyses if it may have to find senses."""
        try:
            return await (self._state.analyses if long else self._state.queries).run(function)
        except UnknownWordError:
            raise not_found(NO_LINES, "no_lines") from None
        except PolysemeError:
            raise invalid(NO_LINES, "no_lines") from None


def _check_usage(number: int | None, index: Index) -> None:
    """Refuse the number of a usage that the index does not have."""
    if number is not None and number >= len(index):
        raise not_found(f"No such usage; the index has 0 to {len(index) - 1:,}.", "usage_missing")


def _restrict(index: Index, documents: str | None) -> Index:
    return index if documents is None else index.restrict(documents)
