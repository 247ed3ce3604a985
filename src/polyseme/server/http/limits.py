"""Limits of a request, and the HTTP errors that routes raise.

    cli.serving, server.serve  ->  server.http.limits  ->  every module of the server

An error message never repeats the request: it may be confidential, or 50 MB long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METRICS_FOLDER = (
    "PROMETHEUS_MULTIPROC_DIR"  # environment variable: where several processes share their counts
)


@dataclass(frozen=True)
class Limits:
    """Limits of a server; /info shows all of them."""

    body_bytes: int = 2_000_000
    max_texts: int = 32  # per request
    max_inputs: int = 2_048  # per request of other servers' embedding clients, which send many at once
    max_tokens: int = 2_000  # per text
    queue: int = 256  # texts waiting for a batch, and jobs waiting for a thread
    concurrent: int = 512  # requests in progress
    timeout: float = 30.0  # seconds per request
    grace: float = 20.0  # seconds to finish requests in progress when the server stops
    response_values: int = 4_000_000  # numbers per response
    batch_tokens: int = 4096  # per batch, padding included
    batch_wait: float = 0.002  # seconds a busy server waits for more texts to join a batch
    workspace_bytes: int = 50_000_000  # of the text of a corpus in the workspace
    workspace_corpora: int = 20  # in the workspace


class HttpError(Exception):
    """An error response.

    Args:
        status: HTTP status.
        error_type: Kind of error, one word.
        message: One sentence for people.
        retry_after: Seconds after which a retry makes sense.
        code: Stable name of this error within its kind, for programs that translate the message.
        values: The numbers and names that the message contains.
        param: The field at fault, for clients of OpenAI.

    """

    def __init__(
        self,
        status: int,
        error_type: str,
        message: str,
        *,
        retry_after: int | None = None,
        code: str | None = None,
        values: dict[str, Any] | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.error_type, self.message = status, error_type, message
        self.retry_after = retry_after
        self.code, self.values, self.param = code, values or {}, param


def invalid(message: str, code: str | None = None, **values: Any) -> HttpError:
    """422: the request cannot be fulfilled as it is."""
    return HttpError(422, "usage", message, code=code, values=values)


def not_found(message: str, code: str | None = None, **values: Any) -> HttpError:
    """404: there is no such index, task, model or word."""
    return HttpError(404, "not_found", message, code=code, values=values)


def busy(message: str) -> HttpError:
    """429: the server has too much to do."""
    return HttpError(429, "busy", message, retry_after=1)


def too_large(message: str, code: str | None = None, **values: Any) -> HttpError:
    """413: the request exceeds a limit."""
    return HttpError(413, "too_large", message, code=code, values=values)


def out_of_memory() -> HttpError:
    """503: the request does not fit into memory, at least not now."""
    return HttpError(503, "memory", "Not enough memory. Send a smaller request.", retry_after=5)


def loading() -> HttpError:
    """503: the model is still being loaded."""
    return HttpError(503, "loading", "The model is being loaded.", retry_after=2)


def shutting_down() -> HttpError:
    """503: the server accepts no new requests, or cannot finish this one."""
    return HttpError(503, "draining", "The server is shutting down.", retry_after=5)
