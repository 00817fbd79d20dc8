"""supergateway: stdio made HTTP.

It starts its servers itself: one per session, so all callers share a session; in the modern era one for every
request, which would be no contest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from holdfast_faults.gateways import supergateway

from bench.contestant import Endpoint
from bench.peers.installed import packages
from bench.peers.launched import launched
from bench.peers.program import PROGRAM, UPSTREAM


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    node, modules = packages()
    prepare = partial(supergateway.prepare, node=node)
    with launched(
        prepare, place, upstream, modules.parent, command=PROGRAM, own_upstream=UPSTREAM
    ) as endpoint:
        yield endpoint
