"""ContextForge at its fastest: SQLite, caches in memory, sessions kept, and nobody asked who they are.

Its limits on rates and on addresses of this machine are lifted, or it would refuse the upstream and the load.
"""

import json
import os
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.running import Unstarted, free_port, running

ADMIN = "admin@example.com"
PATIENCE_S = 60


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    home, port, secret = environment("contextforge"), free_port(), secrets.token_urlsafe(48)
    variables = {
        "DATABASE_URL": f"sqlite:///{place / 'contextforge.db'}",
        "HOME": str(place),
        "JWT_SECRET_KEY": secret,
        "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(48),
        "PLATFORM_ADMIN_EMAIL": ADMIN,
        "PLATFORM_ADMIN_PASSWORD": f"{secrets.token_urlsafe(24)}aA1!",
        "MCP_REQUIRE_AUTH": "false",
        "USE_STATEFUL_SESSIONS": "true",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
        "RATE_LIMITING_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
    }
    command = (home / "bin" / "mcpgateway", "mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(port))
    base = f"http://127.0.0.1:{port}"
    with running(command, port, place / "log", variables) as pid:
        token = _token(home, variables, secret, place)
        told = {"name": "bench", "url": upstream, "transport": "STREAMABLEHTTP", "visibility": "public"}
        _post(f"{base}/gateways", token, told)
        yield Endpoint(url=f"{base}/mcp/", pid=pid, prefix="bench-")


def _token(home: Path, variables: dict[str, str], secret: str, place: Path) -> str:
    command: tuple[str | Path, ...] = (
        *(home / "bin" / "python", "-m", "mcpgateway.utils.create_jwt_token"),
        *("--username", ADMIN, "--admin", "--exp", "600", "--secret", secret),
    )
    made = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, **variables},
        timeout=PATIENCE_S,
    )
    if made.returncode != 0:
        raise Unstarted(f"no token could be made: {made.stderr.strip()[-300:]}")
    return made.stdout.strip().splitlines()[-1]


def _post(url: str, token: str, body: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()
    except urllib.error.HTTPError as error:
        raise Unstarted(f"it refused the upstream: {error.code} {error.read()[:300]!r}") from None
    except OSError as error:
        raise Unstarted(f"it did not take the upstream: {error}") from None
