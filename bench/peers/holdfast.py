"""Holdfast as it is served: every gate, the audit log, and SQLite with full fsync."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.contestant import Endpoint
from bench.running import free_port, running

OVERLAY = {
    "version": 1,
    "tools": {
        "read": {"effect": "READ_ONLY"},
        "write": {
            "effect": "LOW_RISK_INTERNAL",
            "undo": "exact",
            "manifest": [["items", "UPDATE", "item"]],
            "idempotency": {"upstream": "meta"},
        },
    },
}
PLENTY = 1_000_000
"""One caller makes all the calls; the limit is checked all the same."""


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    config = {
        "store": f"sqlite:///{place / 'store.db'}",
        "upstreams": {
            "b": {"mcp": {"url": upstream}, "prefix": "", "contracts": "overlay.yaml", "concurrency": 64}
        },
        "limits": {"ingress": {"rate": PLENTY, "burst": PLENTY}},
    }
    (place / "overlay.yaml").write_text(yaml.safe_dump(OVERLAY))
    (place / "holdfast.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = (
        *(sys.executable, "-m", "holdfast", "serve"),
        *("--config", place / "holdfast.yaml", "--port", str(port)),
    )
    with running(command, port, place / "log") as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid)
