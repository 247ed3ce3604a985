"""Routes have the arguments and defaults of the Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from polyseme import api
from polyseme.elmo import Elmo
from polyseme.server.catalog import Catalog
from polyseme.server.concordances import ConcordanceRoutes
from polyseme.server.evaluation import EvaluationRoutes
from polyseme.server.http import requests
from polyseme.server.http.limits import Limits
from polyseme.server.state import ServerState
from polyseme.server.verbs import VerbRoutes

# Arguments that a server has fixed when it starts (its models, devices, memory and limits), or that concern
# what a response does not have: progress, files, state from call to call, other ways to segment and correct.
SERVER_ARGUMENTS = {
    *("self", "model", "elmo", "static", "source", "options", "device", "memory", "batch_tokens", "timeout"),
    "computed",
    *("progress", "out", "force", "segment", "stateful", "uncorrected", "encoding"),
}
# Fields that only routes have: names of a model, an index or a task, and a sentence that is segmented
# already, which Python takes instead of the text.
ROUTE_FIELDS = {"model", "index", "task", "tokens"}

# Per route: request, function, renamed fields (route: function), missing arguments, extra fields, defaults.
Route = tuple[type[requests.Request], Callable[..., Any], dict[str, str], set[str], set[str], dict[str, Any]]
ROUTES: dict[str, Route] = {
    "/embed": (
        requests.EmbedRequest,
        Elmo.embed,
        {"texts": "sentences"},  # the same name on all routes
        set(),
        set(),
        {"pool": "mean"},  # one vector per text, as clients of embedding servers expect
    ),
    "/embed_all": (
        requests.EmbedAllRequest,
        Elmo.embed,
        {"texts": "sentences"},
        {"pool"},  # /embed pools
        set(),
        {},
    ),
    "/score": (requests.ScoreRequest, api.score, {"texts": "text"}, set(), set(), {}),
    "/substitutes": (
        requests.SubstitutesRequest,
        api.substitutes,
        {},
        set(),
        set(),
        {"sentence": None},  # tokens may replace it
    ),
    "/nearest": (
        requests.NearestRequest,
        api.nearest,
        {},
        set(),
        {"layers"},  # for the page, which mixes layers as the user drags sliders
        {},
    ),
    "/characters": (
        requests.CharactersRequest,
        api.characters,
        {},
        {"index", "alias"},  # a name, see ROUTE_FIELDS; a file
        set(),
        {},
    ),
    "/timeline": (requests.TimelineRequest, api.timeline, {}, {"index"}, set(), {}),
    "/senses": (requests.SensesRequest, api.senses, {}, {"index"}, set(), {}),  # a name, see ROUTE_FIELDS
    "/concordance": (requests.ConcordanceRequest, api.concordance, {}, {"index"}, set(), {}),
    "/collocates": (requests.CollocatesRequest, api.collocates, {}, {"index"}, set(), {}),
    "/passage": (requests.PassageRequest, api.passage, {}, {"index"}, set(), {}),
    "/change": (requests.ChangeRequest, api.change, {}, set(), set(), {}),
    "/summarise": (requests.SummariseRequest, api.summarise, {}, set(), set(), {}),
    "/generate": (requests.GenerateRequest, api.generate, {}, set(), set(), {}),
    "/map": (requests.MapRequest, api.map_usages, {}, {"index"}, set(), {}),  # a name, see ROUTE_FIELDS
    "/similarity": (requests.SimilarityRequest, api.similarity, {}, set(), set(), {}),
    "/evaluate": (
        requests.EvaluateRequest,
        api.evaluate,
        {"texts": "text"},
        {"static"},
        {"examples"},  # which Python takes as the text
        {"text": None},  # examples may replace it
    ),
    "/disambiguate": (requests.DisambiguateRequest, api.disambiguate, {}, {"wordnet"}, set(), {}),
    "/predict": (
        requests.PredictRequest,
        api.predict,
        {"texts": "data"},
        {"plain_text", "format", "question"},  # a request holds texts (a question and its text), no files
        set(),
        {},
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_has_the_arguments_and_defaults_of_its_function(route: str):
    request, function, renamed, missing, extra, defaults = ROUTES[route]
    parameters = inspect.signature(function).parameters
    expected = set(parameters) - SERVER_ARGUMENTS - missing
    fields = {renamed.get(name, name): field for name, field in request.model_fields.items()}
    assert set(fields) - (ROUTE_FIELDS - expected) - extra == expected
    for name in expected:
        default = parameters[name].default
        if name in defaults:
            assert fields[name].get_default() == defaults[name]
        elif default is inspect.Parameter.empty:
            assert fields[name].is_required()
        else:
            assert fields[name].get_default(call_default_factory=True) == ([] if default == () else default)


def test_every_verb_over_http_has_a_row():
    app = FastAPI()
    state = ServerState(open_nothing, Limits())
    VerbRoutes(state).add_to(app)
    ConcordanceRoutes(state).add_to(app)
    EvaluationRoutes(state).add_to(app)
    paths = {route.path for route in app.routes if isinstance(route, APIRoute)}
    assert paths - set(ROUTES) == {"/tokenize"}  # part of embed, not a verb


def open_nothing() -> Catalog:
    raise AssertionError("no route is called")
