"""mcp-proxy: stdio made HTTP, all sessions in front of the one server it starts."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.peers.supergateway import UPSTREAM
from bench.running import ROOT, free_port, running


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    port = free_port()
    program = environment("mcp_proxy") / "bin" / "mcp-proxy"
    server = (sys.executable, "-P", str(ROOT / UPSTREAM), "stdio")
    command = (program, "--port", str(port), "--log-level", "ERROR", "--", *server)
    with running(command, port, place / "log") as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid, own_upstream=UPSTREAM)
