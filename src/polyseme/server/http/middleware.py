"""Around every request: key, limits, time, headers, ids, logs, counts. A plain ASGI middleware.

    uvicorn  ->  server.http.middleware  ->  the routes

Nothing of a request's text is logged, and no error repeats it. A request whose sender is gone is given up,
and leaves the queue. A large answer is written in pieces, as fast as it is read; until then the request
counts as one that is under way, and its time runs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from polyseme.server.http.limits import Limits, RefusedError, busy, no_memory, stopping, too_large
from polyseme.server.http.rendering import refused
from polyseme.server.http.request_log import NAME
from polyseme.server.state import ServerState
from polyseme.training.out_of_memory import is_out_of_memory

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/health",)  # routes that need no key, and are asked however busy the server is
PIECE = 1 << 18  # bytes of an answer that are written at once
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
logger = logging.getLogger(NAME)


class Guard:
    """The middleware, with the content policy of the page and, if there is one, the key."""

    def __init__(self, app: App, state: ServerState, policy: str, key: str | None) -> None:
        self._app, self._state = app, state
        self._headers = HEADERS | {"content-security-policy": policy}
        self._key = None if key is None else key.encode()
        self._running = 0
        self._ending: asyncio.Future[Any] | None = None  # done when nothing is finished any more

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        given = headers.get("x-request-id", b"").decode("latin-1")
        talk = _Talk(send, given if SANE.fullmatch(given) else uuid.uuid4().hex, self._headers)
        start = time.perf_counter()
        counted = scope["path"] not in OPEN
        self._running += counted
        try:
            await self._guarded(scope, headers, receive, talk)
        except RefusedError as refusal:
            await talk.refuse(refusal, scope, receive)
        except asyncio.CancelledError:
            if not self._state.draining:
                raise
            await talk.refuse(stopping(), scope, receive)
        except Exception as problem:
            logger.exception("request %s failed", talk.id)
            await talk.refuse(unforeseen(problem), scope, receive)
        finally:
            self._running -= counted
            self._note(scope, talk, time.perf_counter() - start)

    async def _guarded(self, scope: Scope, headers: dict[str, bytes], receive: Receive, talk: _Talk) -> None:
        if scope["path"] not in OPEN:
            self._check_key(headers)
        if self._state.draining and scope["path"] != "/metrics":
            raise stopping()
        if self._running > self._state.limits.concurrent and scope["path"] not in OPEN:
            raise busy("Too many requests at once. Ask again in a moment.")
        body = await _body(receive, headers, self._state.limits)
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await self._patiently(self._app(scope, _replay(body), talk.send), gone)
        finally:
            gone.cancel()

    async def _patiently(self, work: Awaitable[None], gone: asyncio.Future[None]) -> None:
        """Do `work` within its time, as long as the sender is there and the server does not end."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._state.ending.wait())
        patience, waiting = asyncio.timeout(self._state.limits.timeout), True

        def end(_: object) -> None:
            if waiting:  # a call may be on its way when the work is done
                patience.reschedule(0.0)

        try:
            async with patience:
                gone.add_done_callback(end)
                self._ending.add_done_callback(end)
                await work
        except TimeoutError:
            if not patience.expired():
                raise
            if gone.done():
                return
            if self._ending.done():
                raise stopping() from None
            raise RefusedError(504, "timeout", "This took too long and was given up.") from None
        finally:
            waiting = False
            gone.remove_done_callback(end)
            self._ending.remove_done_callback(end)

    def _check_key(self, headers: dict[str, bytes]) -> None:
        """Compare the key in constant time: a bearer's, a header's, or the password of a browser."""
        if self._key is None:
            return
        kind, _, value = headers.get("authorization", b"").partition(b" ")
        given = headers.get("x-api-key", b"")
        if kind.lower() == b"bearer":
            given = value.strip()
        elif kind.lower() == b"basic":
            with suppress(binascii.Error):
                given = base64.b64decode(value.strip()).partition(b":")[2]
        if not hmac.compare_digest(given, self._key):
            raise RefusedError(401, "unauthorized", "The API key is missing or wrong.")

    def _note(self, scope: Scope, talk: _Talk, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._state.metrics.request(route, talk.status, seconds)
        self._state.count_cache()
        line = {
            "id": talk.id,
            "method": scope["method"],
            "route": route,
            "status": talk.status,
            "ms": round(seconds * 1000, 1),
        }
        logger.info("request", extra={"fields": line})


def unforeseen(problem: Exception) -> RefusedError:
    """What is told of a failure that the log has in full."""
    if is_out_of_memory(problem):
        return no_memory()
    return RefusedError(500, "internal", "Something went wrong; the log tells what.")


class _Talk:
    """The response to one request: its id, its status, headers for all."""

    def __init__(self, send: Send, request_id: str, headers: dict[str, str]) -> None:
        self._send, self.id, self._headers = send, request_id, headers
        self.status = 499  # of those whose sender left before there was an answer

    async def send(self, message: Message) -> None:
        """Pass a message on; the first gets the headers, a large one goes in pieces."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message.get("headers", ())}
            extra = {"x-request-id": self.id, **self._headers}
            added = [(name.encode(), value.encode()) for name, value in extra.items()]
            message["headers"] = [
                *message.get("headers", ()),
                *((name, value) for name, value in added if name not in own),
            ]
        if len(message.get("body", b"")) > PIECE:
            await self._send_pieces(message)
        else:
            await self._send(message)

    async def _send_pieces(self, message: Message) -> None:
        body = memoryview(message["body"])
        last = (len(body) - 1) // PIECE * PIECE
        for start in range(0, last, PIECE):
            piece = {"type": message["type"], "body": bytes(body[start : start + PIECE]), "more_body": True}
            await self._send(piece)
        await self._send({**message, "body": bytes(body[last:])})

    async def refuse(self, refusal: RefusedError, scope: Scope, receive: Receive) -> None:
        """Answer with an error, unless an answer has begun."""
        if self.status == 499:
            last = refusal.error_type == "draining" or refusal.status == 408
            headers = {"Connection": "close"} if last else None
            await refused(refusal, headers)(scope, receive, self.send)


async def _body(receive: Receive, headers: dict[str, bytes], limits: Limits) -> bytes:
    """The whole body, within its limits of size and time."""
    most = limits.body_bytes
    large = too_large(f"The body is larger than {most:,} bytes.", "body_too_large", most=most)
    said = headers.get("content-length", b"0")
    if said.isdigit() and int(said) > limits.body_bytes:
        raise large
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "usage", "The connection ended within the body.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body_bytes:
                    raise large
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise RefusedError(408, "timeout", "The body came too slowly.") from None


def _replay(body: bytes) -> Receive:
    """A `receive` that gives a body which was read before."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.Event().wait()  # for ever: the guard itself watches for those who leave
        return {"type": "http.disconnect"}

    return receive


async def _until_gone(receive: Receive) -> None:
    """Wait until the sender leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
