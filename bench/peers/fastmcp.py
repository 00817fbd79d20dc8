"""FastMCP's proxy, with one connected client for all calls, or as it is by default."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestant import Endpoint
from bench.peers.installed import HERE, environment
from bench.running import free_port, running


@contextmanager
def connected(place: Path, upstream: str) -> Iterator[Endpoint]:
    with _opened(place, upstream, "connected") as endpoint:
        yield endpoint


@contextmanager
def fresh(place: Path, upstream: str) -> Iterator[Endpoint]:
    with _opened(place, upstream, "fresh") as endpoint:
        yield endpoint


@contextmanager
def _opened(place: Path, upstream: str, way: str) -> Iterator[Endpoint]:
    port = free_port()
    python = environment("fastmcp") / "bin" / "python"
    command = (python, "-P", HERE / "fastmcp_proxy.py", upstream, str(port), way)
    with running(command, port, place / "log") as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid)
