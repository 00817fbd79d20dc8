"""supergateway: stdio made HTTP.

It starts its servers itself: one per session, so all callers share a session; in the modern era one for every
request, which would be no contest.
"""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contestant import Endpoint
from bench.peers.installed import packages
from bench.running import ROOT, free_port, running

UPSTREAM = "bench/upstream.py"


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    node, modules = packages()
    port = free_port()
    server = shlex.join((sys.executable, "-P", str(ROOT / UPSTREAM), "stdio"))
    command = (
        *(node, modules / "supergateway" / "dist" / "index.js", "--stdio", server, "--stateful"),
        *("--outputTransport", "streamableHttp", "--port", str(port), "--logLevel", "none"),
    )
    variables = {"PATH": os.environ.get("PATH", os.defpath)}
    with running(command, port, place / "log", variables) as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid, own_upstream=UPSTREAM)
