"""Is this plainly a `tools/call`, right in every header and every member?

Each question here is one the SDK asks too, and it answers whoever fails one. So a no means "let the SDK
look", and a yes must be certain.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from holdfast.servers.front import Headers

CALL = "tools/call"
MODERN = {version.encode(): version for version in MODERN_PROTOCOL_VERSIONS}
OLDER = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS = frozenset({"name", "arguments", "_meta"})
_ENVELOPE = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY})
_KEPT = "io.modelcontextprotocol/"
_MOST = 1024
"""Findings remembered of each kind; what a client sends is the same every time, and is its to make up."""
_LONGEST = 4096
"""Bytes of what a client says of itself that are worth remembering."""

_Found = TypeVar("_Found")

Asked = tuple[str | int, dict[str, Any]]
"""The id of a request and its params."""


def asked(message: Any) -> Asked | None:
    """A request with exactly the members of a plain call."""
    if type(message) is not dict or len(message) != 4 or not _REQUEST.issuperset(message):
        return None
    request_id, params = message["id"], message["params"]
    if message["method"] != CALL or message["jsonrpc"] != "2.0":
        return None
    if type(request_id) is not int and type(request_id) is not str:
        return None
    if type(params) is not dict or not _PARAMS.issuperset(params) or type(params.get("name")) is not str:
        return None
    if "arguments" in params and type(params["arguments"]) is not dict:
        return None
    if "_meta" in params and type(params["_meta"]) is not dict:
        return None
    return request_id, params


class Forms:
    """What was looked at before, and found to be right or not."""

    def __init__(self) -> None:
        self._media: dict[tuple[bytes | None, bytes | None], bool] = {}
        self._clients: dict[tuple[str, bytes], bool] = {}
        self._alone: dict[bytes, str] = {}
        """Envelopes with nothing beside them that were right, and in which version."""

    def takes_both(self, headers: Headers) -> bool:
        """JSON comes in, and both JSON and a stream may go out."""
        said = headers.get(b"accept"), headers.get(b"content-type")
        known = self._media.get(said)
        if known is None:
            known = _kept(self._media, said, _media(*said))
        return known

    def names_itself(self, headers: Headers, asked: Asked) -> bool:
        """A modern request: what its headers and its envelope say is there, agrees, and is well-formed."""
        params = asked[1]
        version, meta = MODERN.get(headers.get(b"mcp-protocol-version", b"")), params.get("_meta")
        name = headers.get(b"mcp-name", b"=?")
        if version is None or meta is None or headers.get(b"mcp-method") != b"tools/call":
            return False
        if name[:2] == b"=?" or name != params["name"].encode():  # what is no ASCII comes encoded
            return False
        if not _ENVELOPE.issuperset(meta):  # it says something that is not the same every time
            return self._right(version, meta)
        try:
            said = orjson.dumps(meta)
        except TypeError:
            return False
        if self._alone.get(said) == version:
            return True
        right = self._right(version, meta)
        if right and len(said) <= _LONGEST:
            _kept(self._alone, said, version)
        return right

    def _right(self, version: str, meta: Mapping[str, Any]) -> bool:
        if meta.get(PROTOCOL_VERSION_META_KEY) != version or CLIENT_CAPABILITIES_META_KEY not in meta:
            return False
        return plain_meta(meta) and self._well_formed(version, meta)

    def _well_formed(self, version: str, meta: Mapping[str, Any]) -> bool:
        envelope = {
            CLIENT_INFO_META_KEY: meta.get(CLIENT_INFO_META_KEY),
            CLIENT_CAPABILITIES_META_KEY: meta[CLIENT_CAPABILITIES_META_KEY],
        }
        try:
            said = version, orjson.dumps(envelope)
        except TypeError:
            return False
        known = self._clients.get(said)
        if known is None:
            known = len(said[1]) <= _LONGEST and _valid(version, envelope)
            _kept(self._clients, said, known)
        return known


def plain_meta(meta: Mapping[str, Any]) -> bool:
    """Nothing in it but the envelope, a token for progress, and what the protocol leaves to others."""
    for name, value in meta.items():
        if name in _ENVELOPE:
            continue
        if name.startswith(_KEPT):
            return False
        if name == "progressToken" and type(value) is not str and type(value) is not int:
            return False
    return True


def mirrors(schema: Any) -> bool:
    """Whether arguments by this schema must be repeated in headers."""
    return find_invalid_x_mcp_header(schema) is None and bool(x_mcp_header_map(schema))


def _media(accept: bytes | None, content: bytes | None) -> bool:
    if content is None or content.split(b";")[0].strip() != b"application/json":
        return False
    said = [] if accept is None else [(b"accept", accept)]
    return all(check_accept_headers(Request({"type": "http", "headers": said})))


def _valid(version: str, envelope: Mapping[str, Any]) -> bool:
    meta = {PROTOCOL_VERSION_META_KEY: version, **envelope}
    try:
        validate_client_request(CALL, version, {"name": "a", "_meta": meta})
    except ValidationError:
        return False
    return True


def _kept(known: dict[Any, _Found], said: Any, found: _Found) -> _Found:
    if len(known) >= _MOST:
        known.clear()
    known[said] = found
    return found
