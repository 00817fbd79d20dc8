"""Builds what fronts MCP servers; imported only where a configuration names some."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import Config, Upstream
from holdfast.config.upstream import McpServer
from holdfast.gateway import secrets
from holdfast.gateway.discovery import Discovery, Note
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.secrets import Proofs, standing
from holdfast.ports import Clock
from holdfast.ports import Upstream as UpstreamPort
from holdfast.system import SystemClock
from holdfast.upstreams.mcp.target import HttpTarget, StdioTarget, Target
from holdfast.upstreams.mcp.upstream import McpUpstream

if TYPE_CHECKING:
    from holdfast.upstreams.mcp.auth import Authorizer
    from holdfast.upstreams.mcp.oauth_grant import TokenStore


def mcp_upstream(
    name: str,
    settings: Upstream,
    config: Config,
    tokens: "TokenStore | None" = None,
    egress: Egress | None = None,
    proofs: Proofs | None = None,
) -> McpUpstream:
    egress = egress or Egress(config)
    proofs = proofs or Proofs(secrets.wallet(config, SystemClock(), egress))
    aim = target(name, settings, config, tokens, egress, proofs)
    return McpUpstream(name, aim, concurrency=settings.concurrency)


def target(
    name: str,
    settings: Upstream,
    config: Config,
    tokens: "TokenStore | None",
    egress: Egress,
    proofs: Proofs,
) -> Target:
    """Without a store of tokens nobody can sign in; such an upstream is only looked at."""
    server = settings.mcp
    assert server is not None  # noqa: S101  # whoever asks has looked
    if server.command is not None:
        cwd = config.folder if server.cwd is None else config.folder / server.cwd
        env, secret = standing(server.env, proofs.wallet)
        return StdioTarget(server.command, server.args, {"PATH": _path(), **env}, str(cwd), secret)
    headers, secret = standing(server.headers, proofs.wallet)
    return HttpTarget(
        server.url or "",
        headers,
        transport=server.transport,
        auth=None if tokens is None else _signing(name, server, tokens, egress, proofs),
        guard=egress.of_upstream(name),
        secrets=secret,
    )


def _signing(
    name: str, server: McpServer, tokens: "TokenStore", egress: Egress, proofs: Proofs
) -> "Authorizer | None":
    if server.auth is None:
        return None
    from holdfast.gateway.egress import signing  # signing in takes the SDK, which takes a second to import

    return signing(name, server, tokens, egress, proofs)


def _path() -> str:
    """Programs beside the gateway's own Python are found first: `python` is the one that runs here."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def discovery(
    config: Config, upstreams: Mapping[str, UpstreamPort], catalog: MemoryCatalog, clock: Clock, note: Note
) -> Discovery:
    return Discovery(config, cast(Mapping[str, McpUpstream], upstreams), catalog, clock, note)
