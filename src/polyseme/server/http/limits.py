"""What a request may cost, and the refusals that say so.

    a command line  ->  server.http.limits  ->  every other room of the server

A refusal never repeats what was sent: it may be secret, or 50 MB long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # the folder where several processes put their counts


@dataclass(frozen=True)
class Limits:
    """All of them are shown by /info."""

    body_bytes: int = 2_000_000
    max_texts: int = 32  # per request
    max_tokens: int = 2_000  # per text
    queue: int = 256  # texts that wait to be read
    concurrent: int = 512  # requests under way
    timeout: float = 30.0  # seconds per request
    grace: float = 20.0  # seconds to finish what is under way when the server stops
    answer_values: int = 4_000_000  # numbers of an answer
    batch_tokens: int = 4096  # of a batch, padding included
    batch_wait: float = 0.002  # seconds a busy server waits for more texts to join a batch


class RefusedError(Exception):
    """An answer that is no result: a status, a kind of error, one sentence.

    code, values: which of the refusals of its kind it is, and what its sentence tells, for programs that say
    it in words of their own. A code stays as it is when the sentence is written anew.
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
    ) -> None:
        super().__init__(message)
        self.status, self.error_type, self.message = status, error_type, message
        self.retry_after = retry_after
        self.code, self.values = code, values or {}


def wrong(message: str, code: str | None = None, **values: Any) -> RefusedError:
    """What was asked cannot be done."""
    return RefusedError(422, "usage", message, code=code, values=values)


def missing(message: str, code: str | None = None, **values: Any) -> RefusedError:
    """There is no such index, task or model."""
    return RefusedError(404, "not_found", message, code=code, values=values)


def busy(message: str) -> RefusedError:
    """More than the server takes on at once."""
    return RefusedError(429, "busy", message, retry_after=1)


def too_large(message: str, code: str | None = None, **values: Any) -> RefusedError:
    """More than a request may ask for."""
    return RefusedError(413, "too_large", message, code=code, values=values)


def no_memory() -> RefusedError:
    """What was asked does not fit into memory, at least not now."""
    return RefusedError(503, "memory", "Not enough memory for this. Ask for less.", retry_after=5)


def stopping() -> RefusedError:
    """The server takes nothing on any more, or cannot finish what it has."""
    return RefusedError(503, "draining", "The server is stopping.", retry_after=5)
