"""Which words do both eras of MCP use, and what do we say of ourselves?

They are written out: the SDK takes a second to import, and whoever only looks at a store talks to no server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.peer import Peer

PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_META_KEY = "io.modelcontextprotocol/subscriptionId"
HANDSHAKE_PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_PROTOCOL_VERSIONS = ("2026-07-28",)
LATEST_HANDSHAKE_VERSION = HANDSHAKE_PROTOCOL_VERSIONS[-1]
LATEST_MODERN_VERSION = MODERN_PROTOCOL_VERSIONS[-1]
NAME_BEARING_METHODS: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""Which parameter 2026-07-28 wants repeated in the header `Mcp-Name`."""

CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""What can be asked of the clients behind us, where a connection is shared by many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server says of itself."""

    protocol_version: str
    server_info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None

    modern: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "modern", self.protocol_version in MODERN_PROTOCOL_VERSIONS)


def client(version: str) -> dict[str, Any]:
    return {"name": "holdfast", "version": version}


def enveloped(
    params: dict[str, Any] | None, version: str, info: Mapping[str, Any], peer: Peer | None
) -> dict[str, Any]:
    """The parameters as 2026-07-28 wants them: each request says who asks, and what can be asked back."""
    whole = {} if params is None else dict(params)
    meta: dict[str, Any] = dict(whole.get("_meta", ()))
    meta[PROTOCOL_VERSION_META_KEY] = version
    meta[CLIENT_INFO_META_KEY] = info
    meta[CLIENT_CAPABILITIES_META_KEY] = {} if peer is None else _askable(peer.capabilities)
    if peer is not None and peer.log_level is not None:
        meta[LOG_LEVEL_META_KEY] = peer.log_level
    whole["_meta"] = meta
    return whole


def _askable(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What the client declared, of what goes through us."""
    return {name: declared[name] for name in CAPABILITIES if name in declared} if declared else {}
