"""How does one ask for a call, and know a right answer, in each protocol?

A request is a template into which the item's name and the request's number are put: the load must cost less
than what it measures.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
INFO = {"name": "bench", "version": "1"}
ITEM, NUMBER = b"@item@", b'"@number@"'


@dataclass(frozen=True, kw_only=True)
class Speech:
    body: Callable[[str, bool], dict[str, Any]]
    """What is sent for a tool, with the operation's name or without; the item is `@item@`."""
    right: bytes
    """What every good answer has in it, without spaces."""
    path: str = ""
    """Where it is sent to; as the endpoint says if not said here."""
    headers: Callable[[str], dict[str, str]] = field(default=lambda tool: {})
    session: bool = False
    """Whether a session must be opened first."""

    def template(self, tool: str, *, keyed: bool) -> bytes:
        return json.dumps(self.body(tool, keyed), separators=(",", ":")).encode()


def filled(template: bytes, item: bytes, number: int) -> bytes:
    return template.replace(ITEM, item).replace(NUMBER, b"%d" % number)


_ASKED = {"item": ITEM.decode()}
_MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _mcp(meta: dict[str, Any]) -> Callable[[str, bool], dict[str, Any]]:
    def body(tool: str, keyed: bool) -> dict[str, Any]:
        said = {**meta, **({"holdfast/key": "@item@"} if keyed else {})}
        params = {"name": tool, "arguments": _ASKED, **({"_meta": said} if said else {})}
        return {"jsonrpc": "2.0", "id": "@number@", "method": "tools/call", "params": params}

    return body


def _named(tool: str, keyed: bool) -> dict[str, Any]:
    return {"tool": tool, "arguments": _ASKED, **({"key": "@item@"} if keyed else {})}


def _rpc(tool: str, keyed: bool) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "@number@", "method": "tools.call", "params": _named(tool, keyed)}


def _hub(tool: str, keyed: bool) -> dict[str, Any]:
    return {"server_name": "b", "tool": tool, "arguments": _ASKED}


def _modern_headers(tool: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}


SPEECHES = {
    "modern": Speech(body=_mcp(_MODERN_META), right=b'"result"', headers=_modern_headers),
    "legacy": Speech(body=_mcp({}), right=b'"result"', session=True),
    "rest": Speech(body=_named, right=b'"status":"done"', path="/v1/calls"),
    "jsonrpc": Speech(body=_rpc, right=b'"result"', path="/rpc"),
    "hub": Speech(body=_hub, right=b'"result"'),  # mcp-hub's own way: its MCP endpoint is an event stream
}
