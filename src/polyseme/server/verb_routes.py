"""The route of a verb: POST, named after its handler, answered by the model that the request means.

server.state, server.http.openapi  ->  server.verb_routes  ->  server.verbs, .evaluation, .concordances
"""

from __future__ import annotations

from fastapi import FastAPI, Response

from polyseme.server.http.openapi import make_response_docs
from polyseme.server.state import Handler, ServerState


def add_verbs(app: FastAPI, state: ServerState, *handlers: Handler[Response]) -> None:
    """Add a route for each handler to an application."""
    for handler in handlers:
        route = f"/{handler.__name__}"
        app.add_api_route(
            route,
            state.choose_model(handler),
            methods=["POST"],
            response_class=Response,
            responses=make_response_docs(route),
        )
