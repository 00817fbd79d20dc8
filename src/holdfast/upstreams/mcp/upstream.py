"""An MCP server as an upstream.

    construct (no effects) -> start -> invoke, snapshot, ... -> close

A server that dies is started again; while it is away, calls are told so and nothing is sent.
"""

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from holdfast.model import defaults
from holdfast.model.answer import Answer
from holdfast.model.errors import NoEffect
from holdfast.model.peer import Peer
from holdfast.model.timeout import timeout
from holdfast.ports import Attempt
from holdfast.upstreams.mcp import listing, rounds
from holdfast.upstreams.mcp.answers import answered, unfinished
from holdfast.upstreams.mcp.asking import Asking, asking
from holdfast.upstreams.mcp.auth import whose
from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.change import Change, Hear
from holdfast.upstreams.mcp.connecting import Connecting
from holdfast.upstreams.mcp.connection import Connection
from holdfast.upstreams.mcp.door import Door
from holdfast.upstreams.mcp.errors import Garbage, Lost, Refused, Rejected, Unsent, judged
from holdfast.upstreams.mcp.exchange import Exchange
from holdfast.upstreams.mcp.hidden import hidden, place
from holdfast.upstreams.mcp.link import Link
from holdfast.upstreams.mcp.listing import Snapshot
from holdfast.upstreams.mcp.mirror import Mirror
from holdfast.upstreams.mcp.owner import Owner, State
from holdfast.upstreams.mcp.processes import Processes, Room, marked
from holdfast.upstreams.mcp.protocol import client
from holdfast.upstreams.mcp.target import HttpTarget, StdioTarget, Target
from holdfast.upstreams.secrets.opening import InjectedOpening

HTTP_CONNECT_S = 3 * defaults.CONNECT_S
"""To connect, to ask for the version, and to ask again in the older way."""

log = logging.getLogger(__name__)

_FAILURES = (Unsent, Refused, Rejected, Lost, Garbage)


class McpUpstream:
    """Implements `ports.Upstream`."""

    taskless = True

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        concurrency: int = defaults.UPSTREAM_CONCURRENCY,
        client_version: str | None = None,
        connect_s: float | None = None,
        backoff: Backoff | None = None,
        on_change: Hear | None = None,
    ) -> None:
        self.name, self.target, self.concurrency = name, target, concurrency
        self.on_change = on_change
        """Told of every change, from within the event loop: it returns at once and raises nothing."""
        auth = target.auth if isinstance(target, HttpTarget) else None
        self.personal = auth is not None
        """Whether it knows who asks: what it tells one principal is not for another."""
        self.in_process = isinstance(target, StdioTarget)
        """Whether it ends with this process, and what it keeps open too."""
        self._hidden, self._mirror = hidden(target), Mirror()
        self._door = Door(target, self._hidden) if isinstance(target, HttpTarget) else None
        self._connecting = Connecting(
            name=name,
            target=target if isinstance(target, StdioTarget) else None,
            door=self._door,
            info=client(client_version or version("holdfast")),
            hidden=self._hidden,
            hear=self._changed,
            backoff=backoff or Backoff(),
            subscribed=set(),
        )
        self._connect_s = connect_s or (defaults.STDIO_READ_S if self._door is None else HTTP_CONNECT_S)
        self._processes = Processes(self._furnished)
        self._first = self._processes.room()
        self._missed = 0

    @property
    def _owner(self) -> Owner[Connection]:
        return self._first.owner

    def _furnished(self, room: Room) -> Owner[Connection]:
        def hear(change: Change) -> None:
            if room is self._first:
                self._changed(change)

        return Owner(
            self.name,
            lambda: self._connecting.connect(room),
            connect_s=self._connect_s,
            backoff=self._connecting.backoff,
            hidden=self._hidden,
            hear=hear,
        )

    # its life

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._owner.start()

    def restart(self) -> None:
        """Begin another connection, or process, at once; what is under way on this one loses its answer."""
        before, self._first = self._first, self._processes.room()
        self._processes.leave(before)
        self._owner.start()

    @property
    def state(self) -> State:
        return self._owner.state

    @property
    def last_error(self) -> str | None:
        """Why it is down; None once it is ready."""
        return self._owner.last_error

    @property
    def starts(self) -> int:
        """How often a connection was tried."""
        return self._owner.starts

    @property
    def place(self) -> str:
        """Where it is, without what may not be shown."""
        return place(self.target)

    async def ready(self, timeout_s: float) -> bool:
        """Wait until it is ready; False when the attempt under way fails, or time is up."""
        try:
            async with timeout(timeout_s):
                return await self._owner.turn()
        except TimeoutError:
            return False

    async def close(self) -> None:
        await self._owner.close()
        await self._processes.close()
        if self._door is not None:
            await self._door.close()

    # a call

    async def invoke(self, attempt: Attempt) -> Answer:
        if self._told_nothing and not attempt.credentials:
            return await self._called(attempt, self._owner)
        try:
            room = await self._room(attempt)
        except _FAILURES as error:
            raise judged(self.name, self._cleaned(error)) from None
        async with self._processes.within(room) as owner:
            return await self._called(attempt, owner)

    @property
    def _told_nothing(self) -> bool:
        """Its process gets no secret with its environment."""
        return not isinstance(self.target, StdioTarget) or self.target.secrets is None

    async def _room(self, attempt: Attempt) -> Room:
        """The room for a call, with the secrets as they are now; raises NoEffect where they cannot be had."""
        added = tuple(one for one in attempt.credentials if one.credential.place == "env")
        self._hidden.learn(one.secret.text for one in attempt.credentials)
        if self._door is not None:
            if added:
                raise NoEffect(f"upstream {self.name!r} is no program here, and the contract adds a variable")
            return self._first
        told = marked(await self._connecting.told())
        if added:
            return self._processes.beside(added, told)
        if not self._first.suits(told):
            before, self._first = self._first, self._processes.room()
            self._processes.leave(before)
        return self._first

    async def _called(self, attempt: Attempt, owner: Owner[Connection]) -> Answer:
        peer, over_http = attempt.peer, self._door is not None
        exchange = Exchange(peer, whose(attempt.tenant, attempt.principal) if self.personal else "")
        exchange.hidden = self._hidden
        try:
            connection = owner.present or await owner.usable()
            link = connection.plainly(peer) or await connection.carrier(exchange)
            modern = link.facts.modern
            wanted = asking(attempt, self._mirror.headers if modern and over_http else None)
            if wanted.headers is not None:
                exchange.headers = self._sendable(wanted.headers)
            if attempt.credentials:
                exchange.opening = self._opening(attempt)
            if peer is None or not modern:
                result = await link.request(wanted.method, wanted.params, exchange)
            else:
                result = await self._in_rounds(link, wanted, exchange, peer)
            return answered(wanted.method, self._hidden.purged(result), self._hidden)
        except _FAILURES as error:
            raise judged(self.name, self._cleaned(error)) from None

    def _opening(self, attempt: Attempt) -> InjectedOpening | None:
        headers = [one for one in attempt.credentials if one.credential.place == "header"]
        if headers and self._door is None:
            raise NoEffect(f"upstream {self.name!r} has no headers, and the contract puts a secret into one")
        return InjectedOpening(headers) if headers else None

    def _sendable(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        if self._door is None:
            raise NoEffect(f"upstream {self.name!r} has no headers, and the contract puts the key into one")
        return headers

    async def _in_rounds(self, link: Link, wanted: Asking, exchange: Exchange, peer: Peer) -> dict[str, Any]:
        """With what the client answered before, and what it can be asked now."""
        params = wanted.params
        if (responses := peer.input_responses) is not None:
            params = {**params, "inputResponses": responses}
        if (state := peer.request_state) is not None:
            params = {**params, "requestState": state}
        result = await link.request(wanted.method, params, exchange)
        if peer.modern or not unfinished(result):
            return result

        async def again(more: dict[str, Any]) -> dict[str, Any]:
            return await link.request(wanted.method, more, exchange)

        return await rounds.finished(again, wanted.params, result, peer, self._hidden)

    # what the gateway itself wants to know

    async def request(
        self, method: str, params: dict[str, Any] | None = None, *, timeout_s: float
    ) -> dict[str, Any]:
        """Any request, in the gateway's own name; raises the errors of `errors`, or TimeoutError."""
        try:
            async with timeout(timeout_s):
                found = await (await self._owner.usable()).link.request(method, params)
                return dict(self._hidden.purged(found))
        except _FAILURES as error:
            raise self._cleaned(error) from None

    async def snapshot(self, timeout_s: float) -> Snapshot:
        """Everything it offers; raises like `request`."""
        try:
            async with timeout(timeout_s):
                found = await listing.taken((await self._owner.usable()).link)
                found = listing.without(found, self._hidden)
        except _FAILURES as error:
            raise self._cleaned(error) from None
        self._mirror.learn(found.tools)
        return found

    async def ping(self, timeout_s: float) -> None:
        """Raises when no answer comes. A program that says nothing at all any more is started again."""
        async with timeout(timeout_s):
            connection = await self._owner.usable()
            await self._probed(connection)

    async def _probed(self, connection: Connection) -> None:
        link, heard = connection.link, connection.link.heard
        try:
            await link.request("server/discover" if link.facts.modern else "ping", None)
        except Refused:
            pass  # it is there
        except asyncio.CancelledError:
            self._missed = self._missed + 1 if link.heard == heard else 0
            if self._missed >= defaults.PROBES_TO_UNAVAILABLE and not connection.calls:
                self._missed = 0
                connection.over.tell(f"it did not answer {defaults.PROBES_TO_UNAVAILABLE} probes in a row")
            raise
        except (Unsent, Rejected, Lost, Garbage) as error:
            raise self._cleaned(error) from None
        self._missed = 0

    async def subscribe(self, uri: str) -> None:
        """Hear of changes to a resource, also after a restart."""
        self._connecting.subscribed.add(uri)
        try:
            async with timeout(defaults.CONNECT_S):
                connection = await self._owner.usable()
                await connection.subscribe(uri, frozenset(self._connecting.subscribed))
        except BaseException:
            self._connecting.subscribed.discard(uri)
            raise

    async def unsubscribe(self, uri: str) -> None:
        self._connecting.subscribed.discard(uri)
        async with timeout(defaults.CONNECT_S):
            connection = await self._owner.usable()
            await connection.unsubscribe(uri, frozenset(self._connecting.subscribed))

    async def set_level(self, level: str) -> None:
        """The least a server of the handshake era should log, also after a restart."""
        self._connecting.level = level
        async with timeout(defaults.CONNECT_S):
            await (await self._owner.usable()).set_level(level)

    def _changed(self, change: Change) -> None:
        if self.on_change is None:
            return
        try:
            self.on_change(change)
        except Exception:
            log.exception("upstream %r: whoever listens to its changes failed", self.name)

    def _cleaned(self, error: Exception) -> Exception:
        """The error without what may not be shown."""
        error.args = (self._hidden.out_of(str(error)),)
        if isinstance(error, Refused):
            error.message = self._hidden.out_of(error.message)
            told = self._hidden.purged(error.data)
            error.data = None if self._hidden.shown_in(str(told)) else told
        return error
