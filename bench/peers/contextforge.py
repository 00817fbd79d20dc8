"""ContextForge at its fastest: SQLite, caches in memory, sessions kept, and nobody asked who they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast_faults.gateways import contextforge

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.peers.launched import launched


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    home, prefix = environment("contextforge"), f"{contextforge.NAME}-"
    with launched(contextforge.prepare, place, upstream, home, prefix=prefix) as endpoint:
        yield endpoint
