"""mcp-proxy: stdio made HTTP, all sessions in front of the one server it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.peers.program import PROGRAM, UPSTREAM
from bench.running import free_port, running


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    port = free_port()
    program = environment("mcp_proxy") / "bin" / "mcp-proxy"
    command = (program, "--port", str(port), "--log-level", "ERROR", "--", *PROGRAM)
    with running(command, port, place / "log") as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid, own_upstream=UPSTREAM)
