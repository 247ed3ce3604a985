"""HTTP over one connection, with time limits for clients that send or read too slowly.

server.run  ->  server.http.protocol  ->  uvicorn
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from polyseme.server.http.limits import HttpError
from polyseme.server.http.rendering import make_error_response

HEADER_SECONDS = 10.0  # for the headers of a request to arrive
MAX_DISCARDED_BYTES = 8_000_000  # of a body after its error response; the connection is then closed


class TimedProtocol(H11Protocol):
    """Closes connections that send the headers of a request, or read a response, too slowly.

    Args:
        seconds: Time limit for reading a response.
        max_body: Bytes of a chunk of a body; a larger one is refused as soon as it is declared.

    """

    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _discarded = 0  # bytes received after the response

    def __init__(self, *arguments: Any, seconds: float, max_body: int, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._seconds, self._max_body = seconds, max_body

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers are complete; start it again with the next request."""
        idle = self.cycle is None or self.cycle.response_complete
        if self._header_timer is None and idle:
            self._start_header_timer()
        self._discarded = self._discarded + len(data) if idle else 0
        if self._discarded > MAX_DISCARDED_BYTES:
            self.transport.abort()
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._discarded = 0
            _cancel(self._header_timer)
            self._header_timer = None

        if self._declared_chunk() > self._max_body:
            self._send_last_error(HttpError(413, "too_large", "A chunk of the body is too large."))

    def eof_received(self) -> None:
        """The client sends no more: a body that is not complete will never be."""
        if self.conn.their_state is h11.SEND_BODY:
            self._send_last_error(
                HttpError(400, "usage", "The connection closed before the end of the body.")
            )

    def _declared_chunk(self) -> int:
        """Bytes that the client has yet to send of the current chunk, as it says; h11 has no public name."""
        return int(getattr(getattr(self.conn, "_reader", None), "_bytes_in_chunk", 0))

    def pause_writing(self) -> None:
        """The response is larger than the send buffer: the client has to read it in time."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read what was written."""
        super().resume_writing()
        _cancel(self._write_timer)
        self._write_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        _cancel(self._header_timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with an error in our format, unless a response has begun."""
        self._send_last_error(HttpError(400, "usage", "This is not an HTTP request."))

    def _send_last_error(self, error: HttpError) -> None:
        """Send an error, unless a response has begun, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.transport.is_closing():
            response = make_error_response(error)
            headers = [*response.raw_headers, (b"connection", b"close")]
            reason = HTTPStatus(error.status).phrase.encode()
            for event in (
                h11.Response(status_code=error.status, headers=headers, reason=reason),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
