"""ASGI middleware around every request: API key, limits, timeout, headers, request ids, log, metrics.

    uvicorn  ->  server.http.middleware  ->  the routes

The text of a request is never logged, and no error repeats it. When a client disconnects, its request is
cancelled and leaves the queue. A large response is written in pieces, as fast as the client reads it; until
then the request counts as in progress, and its timeout runs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from random import getrandbits
from typing import Any

from polyseme.json_text import MAX_DIGITS
from polyseme.server.http.compression import (
    INLINE_BYTES,
    MIN_BYTES,
    accepts_gzip,
    compress,
    is_compressible,
    mark_compressed,
)
from polyseme.server.http.limits import HttpError, Limits, busy, out_of_memory, shutting_down, too_large
from polyseme.server.http.rendering import make_error_response
from polyseme.server.http.request_log import LOGGER
from polyseme.server.state import ServerState
from polyseme.training.out_of_memory import is_out_of_memory

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PUBLIC_ROUTES = ("/health",)  # need no API key, and work however busy the server is
PIECE_BYTES = 1 << 18  # of a response, written at once
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
logger = logging.getLogger(LOGGER)


class RequestMiddleware:
    """The middleware.

    Args:
        app: The application with the routes.
        state: The state of the server.
        policy: Content security policy of the pages.
        key: API key that requests must send; None if they need none.
        piece_bytes: Bytes of a response to write at once.

    """

    def __init__(
        self,
        app: App,
        state: ServerState,
        policy: str,
        key: str | None,
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._app, self._state, self._piece_bytes = app, state, piece_bytes
        self._headers = HEADERS | {"content-security-policy": policy}
        self._key = None if key is None else key.encode()
        self._running = 0
        self._grace_over: asyncio.Future[Any] | None = None  # done when requests in progress are given up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        client_id = headers.get("x-request-id", b"").decode("latin-1")
        request_id = client_id if REQUEST_ID.fullmatch(client_id) else f"{getrandbits(128):032x}"
        compressor = _Compressor(scope, headers, self._state)
        added = self._headers | {"connection": "close"} if self._state.retiring else self._headers
        response = _ResponseSender(send, request_id, added, self._piece_bytes, compressor)
        start = time.perf_counter()
        counted = scope["path"] not in PUBLIC_ROUTES
        self._running += counted
        try:
            await self._handle(scope, headers, receive, response)
        except HttpError as error:
            await response.send_error(error, scope, receive)
        except asyncio.CancelledError:
            if not self._state.draining:
                raise
            await response.send_error(shutting_down(), scope, receive)
        except Exception as problem:
            logger.exception("request %s failed", response.id)
            await response.send_error(internal_error(problem), scope, receive)
        finally:
            self._running -= counted
            self._log(scope, response, time.perf_counter() - start)

    async def _handle(
        self, scope: Scope, headers: dict[str, bytes], receive: Receive, response: _ResponseSender
    ) -> None:
        if scope["path"] not in PUBLIC_ROUTES:
            self._check_key(headers)
        if self._state.draining and scope["path"] != "/metrics":
            raise shutting_down()
        if self._running > self._state.limits.concurrent and scope["path"] not in PUBLIC_ROUTES:
            raise busy("Too many requests in progress. Try again in a moment.")
        body = await _read_body(receive, headers, self._state.limits)
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await self._run_with_timeout(self._app(scope, _replay(body), response.send), disconnected)
        finally:
            disconnected.cancel()

    async def _run_with_timeout(self, work: Awaitable[None], disconnected: asyncio.Future[None]) -> None:
        """Await `work` until the timeout, the client's disconnect or the end of the grace period."""
        if self._grace_over is None:
            self._grace_over = asyncio.ensure_future(self._state.grace_over.wait())
        timeout, waiting = asyncio.timeout(self._state.limits.timeout), True

        def end(_: object) -> None:
            if waiting:  # the callback may already be scheduled when the work ends
                timeout.reschedule(0.0)

        try:
            async with timeout:
                disconnected.add_done_callback(end)
                self._grace_over.add_done_callback(end)
                await work
        except TimeoutError:
            if not timeout.expired():
                raise
            if disconnected.done():
                return
            if self._grace_over.done():
                raise shutting_down() from None
            raise HttpError(504, "timeout", "The request timed out.") from None
        finally:
            waiting = False
            disconnected.remove_done_callback(end)
            self._grace_over.remove_done_callback(end)

    def _check_key(self, headers: dict[str, bytes]) -> None:
        """Compare the key in constant time: a bearer token, X-API-Key, or the password of basic auth."""
        if self._key is None:
            return
        scheme, _, value = headers.get("authorization", b"").partition(b" ")
        key = headers.get("x-api-key", b"")
        if scheme.lower() == b"bearer":
            key = value.strip()
        elif scheme.lower() == b"basic":
            with suppress(binascii.Error):
                key = base64.b64decode(value.strip()).partition(b":")[2]
        if not hmac.compare_digest(key, self._key):
            raise HttpError(401, "unauthorized", "The API key is missing or wrong.")

    def _log(self, scope: Scope, response: _ResponseSender, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._state.metrics.count_request(route, response.status, seconds)
        self._state.update_cache_metrics()
        line = {
            "id": response.id,
            "method": scope["method"],
            "route": route,
            "status": response.status,
            "ms": round(seconds * 1000, 1),
        }
        logger.info("request", extra={"fields": line})


def internal_error(problem: Exception) -> HttpError:
    """The error response for an unexpected exception, which the log has in full."""
    if is_out_of_memory(problem):
        return out_of_memory()
    return HttpError(500, "internal", "Internal error; see the server's log.")


class _Compressor:
    """Compresses the response of one request, if it is text and the client accepts it."""

    def __init__(self, scope: Scope, headers: dict[str, bytes], state: ServerState) -> None:
        self._scope, self._headers, self._state = scope, headers, state

    async def compress(self, start: Message, message: Message) -> Message:
        """The first body of a response, compressed where that is worthwhile; changes its headers."""
        if not is_compressible(self._scope, start):
            return message
        start["headers"] = [*start["headers"], (b"vary", b"Accept-Encoding")]
        body = message.get("body", b"")
        if len(body) < MIN_BYTES or message.get("more_body") or not accepts_gzip(self._headers):
            return message
        if len(body) <= INLINE_BYTES:
            compressed = compress(body)
        else:
            compressed = await self._state.light_jobs.run(partial(compress, body))
        mark_compressed(start, len(compressed))
        return {**message, "body": compressed}


class _ResponseSender:
    """Sends the response of one request, with its id and the headers that all responses have."""

    def __init__(
        self, send: Send, request_id: str, headers: dict[str, str], piece_bytes: int, compressor: _Compressor
    ) -> None:
        self._send, self.id, self._headers, self._piece_bytes = send, request_id, headers, piece_bytes
        self._compressor = compressor
        self._start: Message | None = None  # of a response, until its body is known
        self.status = 499  # stays if the client disconnects before a response

    async def send(self, message: Message) -> None:
        """Send an ASGI message: add headers to the first, compress and split large bodies."""
        if message["type"] == "http.response.start":
            present = {name for name, _ in message.get("headers", ())}
            extra = {"x-request-id": self.id, **self._headers}
            added = [(name.encode(), value.encode()) for name, value in extra.items()]
            message["headers"] = [
                *message.get("headers", ()),
                *((name, value) for name, value in added if name not in present),
            ]
            self._start = message
            return
        if self._start is not None:
            message = await self._compressor.compress(self._start, message)
            start, self._start = self._start, None
            self.status = start["status"]
            await self._send(start)
        if len(message.get("body", b"")) > self._piece_bytes:
            await self._send_pieces(message)
        else:
            await self._send(message)

    async def _send_pieces(self, message: Message) -> None:
        body, size = memoryview(message["body"]), self._piece_bytes
        last = (len(body) - 1) // size * size
        for start in range(0, last, size):
            piece = {"type": message["type"], "body": bytes(body[start : start + size]), "more_body": True}
            await self._send(piece)
        await self._send({**message, "body": bytes(body[last:])})

    async def send_error(self, error: HttpError, scope: Scope, receive: Receive) -> None:
        """Send an error response, unless a response has begun."""
        if self.status == 499:
            last = error.error_type == "draining" or error.status == 408
            headers = {"Connection": "close"} if last else None
            await make_error_response(error, headers, path=scope["path"])(scope, receive, self.send)


async def _read_body(receive: Receive, headers: dict[str, bytes], limits: Limits) -> bytes:
    """Read the whole body, within the limits of size and time."""
    limit = limits.body_bytes
    error = too_large(f"The body is larger than {limit:,} bytes.", "body_too_large", limit=limit)
    length = headers.get("content-length", b"0")
    if length.isdigit() and (len(length) > MAX_DIGITS or int(length) > limit):
        raise error
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpError(400, "usage", "The connection closed before the end of the body.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise error
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise HttpError(408, "timeout", "The body arrived too slowly.") from None


def _replay(body: bytes) -> Receive:
    """An ASGI `receive` that returns a body which was read before."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.Event().wait()  # forever: the middleware itself notices a disconnect
        return {"type": "http.disconnect"}

    return receive


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
