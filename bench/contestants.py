"""Who is measured? The upstream itself, Holdfast in several settings, and others' gateways."""

from collections.abc import Sequence
from typing import Any

from bench.contestant import Contestant, Open
from bench.peers import airlock, contextforge, fastmcp, holdfast, mcp_hub, mcp_proxy, supergateway


def _ours(name: str, *, speech: str = "modern", open: Open = holdfast.opened, **more: Any) -> Contestant:
    return Contestant(name=f"holdfast {name}", open=open, speech=speech, **more)


def _theirs(name: str, open: Open, *, speech: str = "legacy", **more: Any) -> Contestant:
    return Contestant(name=name, open=open, speech=speech, peer=True, **more)


READ: dict[str, Any] = {"tool": "b.read"}  # as it is called where there is no MCP server's name to keep
WRITE: dict[str, Any] = {"tool": "write", "keyed": True}
CACHED: dict[str, Any] = {"tool": "cached", "cached": True}

DIRECT = Contestant(name="direct", open=None, speech="modern")
OURS = (
    _ours("read"),
    _ours("read, MCP legacy", speech="legacy"),
    _ours("read, REST", speech="rest", **READ),
    _ours("read, JSON-RPC", speech="jsonrpc", **READ),
    _ours("cached read", **CACHED),
    _ours("durable write", **WRITE),
    _ours("durable write, PostgreSQL", open=holdfast.on_postgres, **WRITE),
    _ours("read, over stdio", open=holdfast.over_stdio),
    _ours("durable write, over stdio", open=holdfast.over_stdio, **WRITE),
    _ours("read, two workers", open=holdfast.two_workers),
    _ours("durable write, two workers", open=holdfast.two_workers, **WRITE),
    _ours("read, two workers over stdio", open=holdfast.two_over_stdio),
    _ours("durable write, two workers over stdio", open=holdfast.two_over_stdio, **WRITE),
)
PEERS = (
    _theirs("supergateway", supergateway.opened, shared=True),
    _theirs("mcp-hub", mcp_hub.opened, speech="hub"),
    _theirs("mcp-proxy", mcp_proxy.opened),
    _theirs("fastmcp proxy", fastmcp.connected),
    _theirs("fastmcp by default", fastmcp.fresh),
    _theirs("contextforge", contextforge.opened),
    _theirs("mcp-airlock", airlock.opened, speech="modern"),
)
EXTRAS = (
    Contestant(name="direct, MCP legacy", open=None, speech="legacy"),
    _ours("durable write, MCP legacy", speech="legacy", **WRITE),
    _ours("durable write, REST", speech="rest", **WRITE | {"tool": "b.write"}),
    _ours("durable write, JSON-RPC", speech="jsonrpc", **WRITE | {"tool": "b.write"}),
    _theirs("mcp-airlock write", airlock.opened, speech="modern", tool="write"),
    _theirs("fastmcp, modern", fastmcp.connected, speech="modern"),
    _theirs("supergateway, own session", supergateway.opened),
)
ALL = (DIRECT, *OURS, *PEERS, *EXTRAS)


def chosen(only: str | None, *, peers: bool, extras: bool) -> Sequence[Contestant]:
    """`only` has words of which one must be in a name; the direct call is always measured."""
    every = [who for who in (DIRECT, *OURS, *PEERS, *(EXTRAS if extras else ())) if peers or not who.peer]
    words = ("",) if only is None else only.split(",")
    return [who for who in every if who is DIRECT or any(word in who.name for word in words)]
