"""mcp-hub, called the way its own editors call it: its MCP endpoint answers on an event stream only."""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.contestant import Endpoint
from bench.peers.installed import packages
from bench.running import Unstarted, free_port, running

CONNECTING_S = 30.0


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    node, modules = packages()
    port, servers = free_port(), place / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"b": {"url": upstream}}}))
    program = modules / "mcp-hub" / "dist" / "cli.js"
    command = (node, program, "--port", str(port), "--config", servers)
    homes = {f"XDG_{kind}_HOME": str(place) for kind in ("STATE", "DATA", "CONFIG", "CACHE")}
    with running(command, port, place / "log", {**homes, "NODE_ENV": "production"}) as pid:
        _connected(f"http://127.0.0.1:{port}/api/servers")
        yield Endpoint(url=f"http://127.0.0.1:{port}/api/servers/tools", pid=pid)


def _connected(url: str) -> None:
    """It listens before it knows its servers, and fails to say so."""
    until = time.monotonic() + CONNECTING_S
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(url, timeout=CONNECTING_S) as said:
            found = json.load(said).get("servers", [])
            if any(server.get("status") == "connected" for server in found):
                return
        time.sleep(0.1)
    raise Unstarted(f"it did not connect to its server within {CONNECTING_S:.0f} s")
