"""What happens on one connection to an HTTP server?

One request at a time. Whoever asks gets a future of the response: of JSON mostly when all of it has come, so
that nobody wakes up twice; of everything else when the head has.
"""

import asyncio
import contextlib
import select
from typing import Protocol, cast

from httptools import HttpResponseParser

from holdfast.upstreams.http.errors import NOT_HTTP, Broken, words
from holdfast.upstreams.http.response import JSON, Response

HEAD_BYTES = 64 * 1024
"""Of everything that is not body: many times what servers send, and little enough to hold."""
KNOWN, KNOWN_BYTES = 8, 4096
"""Heads remembered, and how long they may be."""
FRAMED = 8
"""Bytes that may frame one byte of body: a chunk of a single byte takes five more."""


class Keeper(Protocol):
    """Whose connection it is."""

    def free(self, connection: "Connection") -> None:
        """It can carry the next request."""

    def lost(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    _transport: asyncio.Transport

    def __init__(self, keeper: Keeper, loop: asyncio.AbstractEventLoop) -> None:
        self._keeper, self._loop = keeper, loop
        self._parser = HttpResponseParser(self)
        # As much as the client before this one forgave; what it forgives moves no message's end.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._waiter: asyncio.Future[Response] | None = None
        self._response: Response | None = None
        self._fields: dict[bytes, bytes] = {}
        self._fed = self._got = 0
        self._interim = self._complete = self._junk = self._paused = False
        self._keep = True
        self._known: dict[bytes, tuple[dict[bytes, bytes], int]] = {}
        """Heads that came before with a whole answer: what they say, and how long its body is."""
        self.closed = False
        self.idle_since = 0.0

    # one request

    def send(self, data: bytes) -> "asyncio.Future[Response]":
        """Once this is called, nobody knows what has arrived."""
        self._fed = self._got = 0
        self._complete = False
        waiter = self._waiter = self._loop.create_future()
        self._transport.write(data)
        return waiter

    def give_up(self, waiter: "asyncio.Future[Response]") -> None:
        """Whoever waited has gone, whether the response was already on its way to them or not."""
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            waiter.result().close()  # the connection itself may already be somebody else's
        else:
            self.abort()

    def abort(self) -> None:
        self._broke(Broken("it was given up"))

    def go_on(self, response: Response) -> None:
        """A reader has taken what was held of this response."""
        if self._paused and response is self._response:
            self._resume()

    @property
    def usable(self) -> bool:
        """As far as the loop knows: what is written now is written to somebody."""
        return not (self.closed or self._transport.is_closing())

    @property
    def silent(self) -> bool:
        """Nothing waits to be read on it, not even its end."""
        if not hasattr(select, "poll"):
            return True  # on Windows the loop is believed
        looking = select.poll()
        looking.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not looking.poll(0)

    # what the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None and self._response is None:
            return self.abort()  # nobody asked anything
        if not self._fed and self._found(data):
            return self._finish()
        if self._fed > HEAD_BYTES and self._fed > HEAD_BYTES + FRAMED * self._got:
            return self._broke(Broken(f"it sent more than {HEAD_BYTES} bytes around its answer"))
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except NOT_HTTP as error:
            self._junk = True
            if not self._complete:
                return self._broke(Broken(words(error)))
        if self._complete:
            if self._fed == len(data):
                self._learn(data)
            self._finish()
        elif (response := self._response) is not None:
            self._flow(response)
        return None

    def _found(self, data: bytes) -> bool:
        """Whether this is a whole answer whose head was parsed before: a server's differ by the second."""
        end = data.find(b"\r\n\r\n", 0, KNOWN_BYTES) + 4
        known = self._known.get(data[:end])
        if known is None or len(data) - end != known[1]:
            return False
        self._fed, self._got = len(data), known[1]
        response = self._response = Response(self, 200, known[0])
        response.add(data[end:])
        self._complete = self._keep = True
        return True

    def _learn(self, data: bytes) -> None:
        response = self._response
        head, _, body = data.partition(b"\r\n\r\n")
        if response is None or not self._keep or self._junk or len(head) > KNOWN_BYTES - 4:
            return
        if response.status == 200 and response.content_type == JSON and response.content_length == len(body):
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[head + b"\r\n\r\n"] = response.fields, len(body)

    def eof_received(self) -> None:
        self._ended(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._ended(error)
        self._keeper.lost(self)

    # what the parser says

    def on_message_begin(self) -> None:
        self._junk = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status, fields = self._parser.get_status_code(), self._fields
        self._fields = {}
        if self._complete:
            return
        if status < 200:
            if status == 101:
                raise ValueError("nobody asked for another protocol")
            self._interim = True
            return
        response = self._response = Response(self, status, fields)
        if status != 200 or response.content_type != JSON:
            self._hand_over(response)

    def on_body(self, part: bytes) -> None:
        if self._response is not None and not self._complete:
            self._got += len(part)
            self._response.add(part)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif not self._complete:
            self._complete, self._keep = True, self._parser.should_keep_alive()
            self._fields = {}

    # what follows from it

    def _hand_over(self, response: Response) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            return
        if waiter.done():  # given up in this very turn of the loop
            self._junk = True
        else:
            waiter.set_result(response)

    def _flow(self, response: Response) -> None:
        """Some of a body has come, and not all."""
        response.wake()
        if response.full and not self._paused:
            self._hand_over(response)
            self._paused = True
            with contextlib.suppress(RuntimeError):  # it is closing
                self._transport.pause_reading()

    def _resume(self) -> None:
        self._paused = False
        with contextlib.suppress(RuntimeError):  # it is closing
            self._transport.resume_reading()

    def _finish(self) -> None:
        response, self._response = self._response, None
        if response is None:
            return self.abort()
        self._hand_over(response)
        if self._paused:
            self._resume()
        if self._keep and not self._junk and self.usable and not self._transport.get_write_buffer_size():
            self._keeper.free(self)
        else:
            self.closed = True
            self._transport.abort()  # what is not yet written, nobody waits for
        return response.end()

    def _ended(self, error: Exception | None) -> None:
        self.closed = True
        response = self._response
        if response is not None and error is None and response.until_eof:
            self._keep = False
            self._finish()
        elif response is not None or self._waiter is not None:
            self._broke(Broken(words(error)))

    def _broke(self, error: Broken) -> None:
        response, self._response = self._response, None
        if response is not None:
            self._hand_over(response)
            response.end(error)
        elif (waiter := self._waiter) is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_exception(error)
        self.closed = True
        self._transport.abort()
