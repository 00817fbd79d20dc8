"""Which version of the protocol do both sides speak?

`server/discover` first; whoever does not know it, or names no modern version, is asked by `initialize`. An
outage is never taken for an old server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.upstreams.mcp.errors import UNSUPPORTED_VERSION, Garbage, Mismatch, Refused
from holdfast.upstreams.mcp.protocol import (
    CAPABILITIES,
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    SERVER_INFO_META_KEY,
    Facts,
    enveloped,
)

PROBE_S = 3.0
"""Without an answer to `server/discover` for this long, `initialize` is sent as well."""

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


def probe(info: Mapping[str, Any]) -> dict[str, Any]:
    return enveloped(None, LATEST_MODERN_VERSION, info, None)


def offer(info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": dict(CAPABILITIES),
        "clientInfo": dict(info),
    }


def discovered(raw: Mapping[str, Any]) -> Facts | None:
    """What a server says that answered the probe; None when it names no version of that era."""
    theirs = raw.get("supportedVersions")
    common = [v for v in MODERN_PROTOCOL_VERSIONS if isinstance(theirs, list) and v in theirs]
    if not common:
        return None
    meta = raw.get("_meta")
    info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
    return _facts(common[-1], raw, info)


def initialized(raw: Mapping[str, Any]) -> Facts:
    version = raw.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise mismatch([str(version)])
    return _facts(str(version), raw, raw.get("serverInfo"))


def leave_room(error: Refused) -> None:
    """Raises Mismatch where a refused probe leaves no room for `initialize`."""
    theirs = listed(error)
    if theirs is not None and not any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in theirs):
        raise mismatch(theirs)


def listed(error: Refused) -> list[str] | None:
    """The versions a server speaks that refused ours; None where it refused something else."""
    theirs = error.data.get("supported") if isinstance(error.data, dict) else None
    if error.code != UNSUPPORTED_VERSION or not isinstance(theirs, list):
        return None
    return [str(version) for version in theirs]


def mismatch(theirs: list[str]) -> Mismatch:
    ours = ", ".join((*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS))
    said = ", ".join(theirs[:10]) or "none"
    return Mismatch(f"no protocol version in common: the server speaks {said[:200]!r}, holdfast {ours!r}")


def _facts(version: str, raw: Mapping[str, Any], info: Any) -> Facts:
    capabilities, instructions = raw.get("capabilities"), raw.get("instructions")
    return Facts(
        protocol_version=version,
        server_info=info if isinstance(info, dict) else {},
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )


async def over_one_stream(ask: Ask, info: Mapping[str, Any], patience_s: float = PROBE_S) -> Facts:
    """Negotiate where both questions go down the same pipe and a slow start is no verdict.

    A server that is silent gets both; whichever answer settles the matter first is taken.
    """
    probing = asyncio.ensure_future(_probed(ask, info))
    shaking: asyncio.Future[Facts] | None = None
    try:
        await asyncio.wait({probing}, timeout=patience_s)
        if probing.done() and (facts := probing.result()) is not None:
            return facts
        shaking = asyncio.ensure_future(_shaken(ask, info))
        if not probing.done():
            await asyncio.wait({probing, shaking}, return_when=asyncio.FIRST_COMPLETED)
            if probing.done() and (facts := probing.result()) is not None:
                return facts
        try:
            return await shaking
        except Refused as error:
            # The probe may have settled the era at the server before we heard of it.
            if error.code == UNSUPPORTED_VERSION and (facts := await probing) is not None:
                return facts
            leave_room(error)
            raise
    finally:
        for task in (probing, shaking):
            if task is not None and not task.done():
                task.cancel()
            elif task is not None and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not complain


async def _probed(ask: Ask, info: Mapping[str, Any]) -> Facts | None:
    try:
        return discovered(await ask("server/discover", probe(info)))
    except Refused as error:
        leave_room(error)
        return None
    except Garbage:
        return None


async def _shaken(ask: Ask, info: Mapping[str, Any]) -> Facts:
    return initialized(await ask("initialize", offer(info)))
