"""A KV store, version 2, that answers as the documentation of Vault's API says.

Statuses and bodies of `GET /v1/:mount/data/:path`: 200, 404 without data, 404 with the metadata of a deleted
or destroyed version, 403 for a token that may not, 503 while it is sealed. Namespaces and versions are kept
apart.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.upstreams.mcp.places import serving

TOKEN = "hvs.vault-token-for-tests"
NEVER = ""


@dataclass
class Version:
    data: dict[str, Any] | None
    deletion_time: str = NEVER
    destroyed: bool = False
    gone: bool = False


@dataclass
class VaultServer:
    """`secrets` by (namespace, mount, path); version 1 is the first of a list."""

    secrets: dict[tuple[str, str, str], list[Version]] = field(default_factory=dict)
    mounts: set[tuple[str, str]] = field(default_factory=lambda: {("", "secret")})
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    sealed: bool = False
    hidden: set[str] = field(default_factory=set)
    """Paths the policy of the token does not allow."""
    asked: list[Request] = field(default_factory=list)

    def put(self, path: str, *, namespace: str = "", mount: str = "secret", **data: Any) -> Version:
        self.mounts.add((namespace, mount))
        made = Version(data)
        self.secrets.setdefault((namespace, mount, path), []).append(made)
        return made

    async def read(self, request: Request) -> Response:
        self.asked.append(request)
        if self.sealed:
            return _errors(503, "Vault is sealed")
        namespace = request.headers.get("x-vault-namespace", "").strip("/")
        mount, path = request.path_params["mount"], request.path_params["path"]
        if request.headers.get("x-vault-token") not in self.tokens or path in self.hidden:
            return _errors(403, "permission denied")
        if (namespace, mount) not in self.mounts:
            return _errors(404, f'no handler for route "{mount}/data/{path}". route entry not found.')
        versions = self.secrets.get((namespace, mount, path), [])
        number = int(request.query_params.get("version", len(versions)) or len(versions))
        if not versions or not 1 <= number <= len(versions):
            return JSONResponse({"errors": []}, 404)
        return self._told(versions[number - 1], number)

    def _told(self, found: Version, number: int) -> Response:
        gone = found.destroyed or found.gone
        about = {
            "created_time": "2026-03-22T02:24:06.945319214Z",
            "custom_metadata": None,
            "deletion_time": found.deletion_time,
            "destroyed": found.destroyed,
            "version": number,
        }
        body = {
            "request_id": "7c1f0ef2-0c5a-2c4c-8f65-0c1f0e5a2c4c",
            "lease_id": "",
            "renewable": False,
            "lease_duration": 0,
            "data": {"data": None if gone else found.data, "metadata": about},
            "wrap_info": None,
            "warnings": None,
            "auth": None,
        }
        return JSONResponse(body, 404 if gone else 200)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        app = Starlette(routes=[Route("/v1/{mount}/data/{path:path}", self.read)])
        async with serving(app) as origin:
            yield origin


def _errors(status: int, *said: str) -> Response:
    return JSONResponse({"errors": list(said)}, status)
