"""How do requests come in through a socket, how do answers leave, and who hears that a client left?

Most requests are small POSTs to a few paths, whole in one read, and their answers are one head and one body.
Those get a `Turn`: no timer, no event and no look at every header of an answer, and one trip into the kernel.
Whatever is in any way unusual gets uvicorn's own cycle, as does a request that others were sent on top of.

ASGI tells of a connection's end only to who listens, which is a task per request; here a function can be left
to be called. Everything else is uvicorn's.
"""

import asyncio
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.cli.heads import Head, Heads
from holdfast.cli.joined import Joined
from holdfast.cli.linger import Linger
from holdfast.cli.turn import Turn
from holdfast.servers.offers import FIELDS, LEAVING, PATHS, WHOLE, Leaving, Whole

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_PLAIN = {path.encode(): path for path in PATHS}
_ODD = frozenset({b"expect", b"transfer-encoding", b"upgrade", b"x-forwarded-for", b"x-forwarded-proto"})
"""Headers that ask for more than an answer, or say that somebody else is asking."""


LAST_S = 0.5
"""For a request that may be on its way when the server goes."""


def _is_readable(transport: asyncio.Transport) -> bool:
    socket = transport.get_extra_info("socket")
    if socket is None or transport.is_closing() or not hasattr(select, "poll"):  # the loop is believed
        return False
    looking = select.poll()
    looking.register(socket.fileno(), select.POLLIN)
    return bool(looking.poll(0))


class Protocol(HttpToolsProtocol):
    def __init__(
        self, *given: Any, linger: Linger | None = None, heads: Heads | None = None, **named: Any
    ) -> None:
        """`linger` and `heads` are shared by all connections."""
        super().__init__(*given, **named)
        self.linger, self._heads = linger or Linger(), heads or Heads()
        self._takes_turns = (
            not self.access_log
            and not self.root_path
            and self.limit_concurrency is None
            and not getattr(self.config, "reset_contextvars", False)
        )
        self._inner: Any = self.app.app if type(self.app) is ProxyHeadersMiddleware else self.app
        """The application, for requests that name nobody they were forwarded for."""
        self._left: Callable[[], None] | None = None
        self._turn: Turn | None = None
        self._offered: dict[str, Leaving | Whole] = {LEAVING: self._tell, WHOLE: self._whole}
        self._over = self._odd = self._coming = self._last = False
        self._between = True  # the parser has had whole requests only
        self._data = self._body = b""  # what was read, where a request begins it; and of its body
        self._idle = False
        self._since = 0.0
        self._defaults: tuple[Any, bytes] = (None, b"")

    # --- a connection -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        super().on_message_begin()
        self._blank: dict[str, Any] = {**self.scope}

    def connection_lost(self, exc: Exception | None) -> None:
        if self._turn is not None and not self._turn.response_complete:
            self._turn.disconnected = True
        super().connection_lost(exc)
        self._over = True
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        left, self._left = self._left, None
        if left is not None:
            left()

    def shutdown(self) -> None:
        """No more requests, but one that was sent before anybody could know is answered."""
        before: Any = self.cycle
        resting = before is None or before.response_complete
        if resting and (before is None or not self._idle or _is_readable(self.transport)):
            self._last = True
            self.loop.call_later(LAST_S, super().shutdown)
        else:
            super().shutdown()

    def _tell(self, left: Callable[[], None] | None) -> None:
        """Who is to be told when the client of the request under way leaves; it may have left already."""
        if self._over and left is not None:
            left()
        else:
            self._left = left

    # --- a request --------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._between:
            found = self._heads.find(data)
            if found is not None and self._can_turn():
                self._known(*found)
                return
            self._data = data
        super().data_received(data)
        self._data = b""
        if self._coming:  # its end is not here yet
            self._coming = False
            if not self.transport.is_closing():
                body, self._body = self._body, b""
                super().on_headers_complete()
                if body:
                    super().on_body(body)

    def _can_turn(self) -> bool:
        """The request before this one is answered, and more may follow."""
        before: Any = self.cycle
        return (
            self._takes_turns
            and not self._last
            and (before is None or before.response_complete)
            and not self.transport.is_closing()
        )

    def _known(self, head: Head, body: bytes) -> None:
        """A request whose head was parsed before."""
        self._unset_keepalive_if_required()
        self.url, self.headers = head.url, head.headers.copy()
        scope = self._new_scope()
        scope[FIELDS] = head.fields
        self._take_turn(body, keep_alive=True)

    def _new_scope(self) -> dict[str, Any]:
        scope = self._blank.copy()
        scope["headers"], scope["state"] = self.headers, self.app_state.copy()
        self.scope = scope  # type: ignore[assignment]
        return scope

    def on_message_begin(self) -> None:
        self._between = False
        self.url = b""
        self.expect_100_continue = self._odd = False
        self.headers = []
        self._new_scope()

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _ODD:
            self._odd = True
            super().on_header(name, value)
        else:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self.parser
        before: Any = self.cycle
        self._coming = (
            not self._odd
            and self._takes_turns
            and self.url in _PLAIN
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and not parser.should_upgrade()
            and (before is None or before.response_complete)
        )
        if not self._coming:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._coming:
            self._body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._between = True
        if not self._coming:
            super().on_message_complete()
            return
        self._coming = False
        body, self._body = self._body, b""
        keep = not self._last and self.parser.should_keep_alive()
        if keep and self._data:
            self._heads.learn(self._data, self.url, self.headers, body)
        self._take_turn(body, keep_alive=keep)

    def _take_turn(self, body: bytes, *, keep_alive: bool) -> None:
        scope: Any = self.scope
        scope["method"], scope["query_string"] = "POST", b""
        scope["path"], scope["raw_path"] = _PLAIN[self.url], self.url
        scope["extensions"] = self._offered
        turn = self.cycle = self._turn = Turn(self, scope, body, keep_alive)
        turn.task = self.loop.create_task(turn.run(self._inner))
        self.tasks.add(turn.task)
        self.linger.asked()

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: Any) -> None:
        if cycle.scope["method"] != "HEAD":  # whose length says nothing of what comes
            cycle.transport = Joined(self.transport)  # type: ignore[assignment]
        cycle.scope["extensions"] = {LEAVING: self._tell}  # type: ignore[dict-item]
        if self._last:
            cycle.keep_alive = False
        super()._start_asgi_task(cycle, app)

    # --- its answer -------------------------------------------------------------------

    def _whole(self, status: int, headers: bytes, body: bytes) -> bool:
        """Write a whole answer, its headers as they are; False where it must go by `send`."""
        turn = self._turn
        if turn is None or turn.response_started or self.flow.write_paused:
            return False
        if turn.disconnected:
            return True
        turn.response_started = turn.response_complete = True
        close = b"" if turn.keep_alive else b"connection: close\r\n"
        self.transport.write(
            b"%b%b%bcontent-length: %d\r\n%b\r\n%b"
            % (STATUS_LINE[status], self._always(), headers, len(body), close, body)
        )
        if close:
            self.transport.close()
        if turn.listening is not None:
            turn.listening.set()
        self.on_response_complete()
        self.linger.answered()
        return True

    def _always(self) -> bytes:
        """The headers of every answer, which are the same for a second."""
        given = self.server_state.default_headers
        if self._defaults[0] is not given:
            self._defaults = given, b"".join(b"%b: %b\r\n" % one for one in given)
        return self._defaults[1]

    # --- and the time until the next --------------------------------------------------

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle, self._since = True, self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """Something came. The timer goes on: one that looks once in its time is set once in its time."""
        self._idle = False

    def _wait(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if not self._idle:
            return  # whoever answers sets it again
        left = self._since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait(left)
        elif _is_readable(self.transport):  # a request was faster, and is read next
            self._wait(LAST_S)
        else:
            super().timeout_keep_alive_handler()
