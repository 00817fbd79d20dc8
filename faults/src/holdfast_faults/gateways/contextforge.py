"""ContextForge on SQLite, with sessions kept and nobody asked who they are.

Its limits on rates and on addresses of this machine are lifted, or it would refuse the upstream and the load.
"""

import json
import os
import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from holdfast_faults.adapter import Adapter, Launch, Site, Unavailable
from holdfast_faults.ports import free_port

ADMIN = "admin@example.com"
NAME = "kit"
PATIENCE_S = 60


def prepare(site: Site) -> Launch:
    binaries, port = _binaries(site), free_port()
    variables = _variables(site.folder)
    command = (binaries / "mcpgateway", "mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(port))
    base = f"http://127.0.0.1:{port}"

    def register() -> None:
        token = _token(binaries / "python", variables, site.folder)
        told = {"name": NAME, "url": site.upstream_url, "transport": "STREAMABLEHTTP", "visibility": "public"}
        _post(f"{base}/gateways", token, told)

    return Launch(command=command, url=f"{base}/mcp/", environment=variables, once=register)


def _binaries(site: Site) -> Path:
    if site.home is not None:
        return site.home / "bin"
    if (found := shutil.which("mcpgateway")) is None:
        raise Unavailable("there is no 'mcpgateway' command: install it, or say --home contextforge=FOLDER")
    return Path(found).parent


def _variables(folder: Path) -> dict[str, str]:
    """The secrets are made once: every replica and every restart must know the same."""
    file = folder / "secrets.json"
    if not file.exists():
        made = {
            "JWT_SECRET_KEY": secrets.token_urlsafe(48),
            "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(48),
            "PLATFORM_ADMIN_PASSWORD": f"{secrets.token_urlsafe(24)}aA1!",
        }
        file.write_text(json.dumps(made))
    return {
        **json.loads(file.read_text()),
        "DATABASE_URL": f"sqlite:///{folder / 'contextforge.db'}",
        "HOME": str(folder),
        "PLATFORM_ADMIN_EMAIL": ADMIN,
        "MCP_REQUIRE_AUTH": "false",
        "USE_STATEFUL_SESSIONS": "true",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
        "RATE_LIMITING_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
    }


def _token(python: Path, variables: dict[str, str], folder: Path) -> str:
    command: tuple[str | Path, ...] = (
        *(python, "-m", "mcpgateway.utils.create_jwt_token", "--username", ADMIN, "--admin"),
        *("--exp", "600", f"--secret={variables['JWT_SECRET_KEY']}"),  # it may begin with a dash
    )
    made = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        timeout=PATIENCE_S,
    )
    if made.returncode != 0:
        raise Unavailable(f"no token could be made: {made.stderr.strip()[-300:]}")
    return made.stdout.strip().splitlines()[-1]


def _post(url: str, token: str, body: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()
    except urllib.error.HTTPError as error:
        raise Unavailable(f"it refused the upstream: {error.code} {error.read()[:300]!r}") from None
    except OSError as error:
        raise Unavailable(f"it did not take the upstream: {error}") from None


CONTEXTFORGE = Adapter(
    name="contextforge",
    about="ContextForge on SQLite",
    keys="none; passed on to the upstream",
    prepare=prepare,
    replicas=1,  # several want PostgreSQL and Redis
)
