"""Who sent this MCP request, in which era, and what may be asked of them?

Everything the handlers need to know about one request, taken from the SDK's context in one place. No header
of the client goes further than this: what upstreams see never comes from here (AUT-1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    ServerNotification,
    ServerRequest,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict

from holdfast.model.call import Principal
from holdfast.servers.mcp import keys
from holdfast.servers.mcp.errors import wrong

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from holdfast.servers.mcp.delivery import Delivery


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    principal: Principal
    session: str
    """The connection it came by, by an opaque name; AUT-7."""
    delivery: "Delivery"
    modern: bool
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    request_id: str | int | None
    line: "Line" = field(repr=False)
    asks: bool = True
    """Whether an answer of the client would reach this process."""
    raw: bool = False
    """Whether its result is written as it is, and may hold what the SDK could not write."""
    whole: dict[str, Any] | None = None
    """The finished result, with every member it has."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared; with every request in the modern era, once before."""
        if self.modern:
            declared = self.meta.get(CLIENT_CAPABILITIES_META_KEY)
            return declared if type(declared) is dict or isinstance(declared, Mapping) else {}
        said = self.line.capabilities
        return said if self.asks else {name: one for name, one in said.items() if name not in ASKED}

    @property
    def client(self) -> str | None:
        """The name the client gives itself. It proves nothing."""
        if self.modern:
            info = self.meta.get(CLIENT_INFO_META_KEY)
            name = info.get("name") if isinstance(info, Mapping) else None
            return name if isinstance(name, str) else None
        return self.line.client

    @property
    def log_level(self) -> str | None:
        level = self.meta.get(LOG_LEVEL_META_KEY) if self.modern else self.line.connection.state.get(LEVEL)
        return level if isinstance(level, str) else None

    @property
    def progress_token(self) -> str | int | None:
        token = self.meta.get("progressToken")
        if token is None:
            return None
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    def said(self) -> dict[str, Any]:
        """What `_meta` says about a call that has no arguments of its own to look at."""
        said = keys.read({}, self.meta, None)
        if said.faults:
            raise wrong(said.faults[0].message)
        return dict(said.members)

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Ask a client that can be asked; its answer as it came."""
        return await self.line.request(method, params)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell the client something on this request's own stream."""
        await self.line.notify(method, params)


class Line(Protocol):
    """How the client of one request is reached, and what it said when it connected."""

    @property
    def connection(self) -> "Connection":
        """What outlives a request, and how its end is heard of."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]: ...

    @property
    def client(self) -> str | None: ...

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]: ...

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None: ...


class SdkLine:
    """By way of the SDK, which keeps the connection."""

    def __init__(self, context: "ServerRequestContext[Any, Any]") -> None:
        self._context = context

    @property
    def connection(self) -> "Connection":
        return connection(self._context)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return declared(self.connection)

    @property
    def client(self) -> str | None:
        return called(self.connection)

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        asked = _Message(method=method, params=None if params is None else dict(params))
        related = ServerMessageMetadata(related_request_id=self._context.request_id)
        said = await self._context.session.send_request(cast(ServerRequest, asked), _Said, metadata=related)
        return said.model_dump()

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        told = _Message(method=method, params=None if params is None else dict(params))
        await self._context.session.send_notification(
            cast(ServerNotification, told), self._context.request_id
        )


def exchanged(
    context: "ServerRequestContext[Any, Any]", principal: Principal, delivery: "Delivery"
) -> Exchange:
    """A request as the SDK hands it over; its session is not named yet."""
    params = context.params or {}
    meta = params.get("_meta")
    return Exchange(
        principal=principal,
        session="",
        delivery=delivery,
        modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
        params=params,
        meta=meta if isinstance(meta, Mapping) else {},
        request_id=context.request_id,
        line=SdkLine(context),
    )


ASKED = ("elicitation", "sampling", "roots")
"""What a client declares that is of use only to somebody who can ask it."""
LEVEL = "holdfast/level"
"""Where a connection keeps the log level its client asked for."""


def connection(context: "ServerRequestContext[Any, Any]") -> "Connection":
    """The client's connection: what outlives a request, and how its end is heard of.

    The SDK documents it for handlers (`Connection.state`, `Connection.exit_stack`) and gives their context no
    way to it in 2.3, so this one place takes it from the session.
    """
    return context.session._connection


def declared(one: "Connection") -> dict[str, Any]:
    """What a client of the older era said it can do."""
    known = one.client_capabilities
    return {} if known is None else known.model_dump(by_alias=True, mode="json", exclude_none=True)


def called(one: "Connection") -> str | None:
    """What a client of the older era calls itself."""
    return None if one.client_params is None else one.client_params.client_info.name


class _Message(BaseModel):
    """A request or notification that is passed on as it is, whatever members it has."""

    method: str
    params: dict[str, Any] | None = None


class _Said(BaseModel):
    """An answer, with everything in it."""

    model_config = ConfigDict(extra="allow")
