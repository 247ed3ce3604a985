"""HTTP over one connection, with its clocks: whoever sends or reads too slowly is not waited for.

server.run  ->  server.http.protocol  ->  uvicorn
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from polyseme.server.http.limits import RefusedError
from polyseme.server.http.rendering import refused

HEAD_SECONDS = 10.0  # in which the head of a request must be there
UNREAD_BYTES = 8_000_000  # of a body that was refused already; more are not even thrown away


class TimedProtocol(H11Protocol):
    """Closes connections that send the head of a request, or read an answer, too slowly.

    seconds: in which an answer must be read.
    """

    _timer: asyncio.TimerHandle | None = None  # for the head of a request
    _writing: asyncio.TimerHandle | None = None  # for an answer
    _unread = 0  # bytes that came after their answer

    def __init__(self, *given: Any, seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds

    def connection_made(self, transport: Any) -> None:
        """A connection must begin to talk."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """The clock stops with the head of a request, and runs again with the next one."""
        idle = self.cycle is None or self.cycle.response_complete
        if self._timer is None and idle:
            self._watch()
        self._unread = self._unread + len(data) if idle else 0
        if self._unread > UNREAD_BYTES:
            self.transport.abort()
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._unread = 0
            _stop(self._timer)
            self._timer = None

    def pause_writing(self) -> None:
        """An answer is larger than what is sent at once: from now on it must be read."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """What was written was read."""
        super().resume_writing()
        _stop(self._writing)
        self._writing = None

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock runs for those who left."""
        _stop(self._timer)
        _stop(self._writing)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is refused in our form, unless an answer has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = refused(RefusedError(400, "usage", "This is no HTTP request."))
            headers = [*answer.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
