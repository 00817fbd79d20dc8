"""FastMCP's proxy, with one connected client for all calls, or as it is by default."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from holdfast_faults.gateways import fastmcp

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.peers.launched import launched


@contextmanager
def connected(place: Path, upstream: str) -> Iterator[Endpoint]:
    prepare = partial(fastmcp.prepare, way="connected")
    with launched(prepare, place, upstream, environment("fastmcp")) as endpoint:
        yield endpoint


@contextmanager
def fresh(place: Path, upstream: str) -> Iterator[Endpoint]:
    with launched(fastmcp.prepare, place, upstream, environment("fastmcp")) as endpoint:
        yield endpoint
