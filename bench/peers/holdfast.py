"""Holdfast as it is served: every gate, the audit log, and a store with full fsync."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from bench.contestant import Endpoint
from bench.peers.program import PROGRAM, UPSTREAM
from bench.running import free_port, running

OVERLAY = {
    "version": 1,
    "tools": {
        "read": {"effect": "READ_ONLY"},
        "cached": {"effect": "READ_ONLY", "cache_ttl_s": 3600},
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
SERVE = (sys.executable, "-m", "holdfast", "serve")
TWO = (*SERVE, "--workers", "2")


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    """One process, SQLite."""
    with served(place, configured(place, upstream), SERVE) as endpoint:
        yield endpoint


@contextmanager
def over_stdio(place: Path, upstream: str, command: Sequence[str] = SERVE) -> Iterator[Endpoint]:
    """The server as a program that the gateway starts, as supergateway does."""
    program, *args = PROGRAM
    with served(place, _written(place, {"command": program, "args": args}), command) as endpoint:
        yield replace(endpoint, own_upstream=UPSTREAM)


@contextmanager
def two_workers(place: Path, upstream: str) -> Iterator[Endpoint]:
    with served(place, configured(place, upstream), TWO) as endpoint:
        yield endpoint


@contextmanager
def two_over_stdio(place: Path, upstream: str) -> Iterator[Endpoint]:
    """Each worker starts a program of its own."""
    with over_stdio(place, upstream, TWO) as endpoint:
        yield endpoint


@contextmanager
def on_postgres(place: Path, upstream: str) -> Iterator[Endpoint]:
    """One process; the database server beside it is not counted as the gateway, but runs here too."""
    from tests.postgres_server import Postgres  # where there is one, it is the one the tests use

    with (
        Postgres(durable=True) as server,
        served(place, configured(place, upstream, server.url), SERVE) as endpoint,
    ):
        yield replace(endpoint, database=server.pid)


def configured(place: Path, upstream: str, store: str | None = None) -> Path:
    return _written(place, {"url": upstream}, store)


def _written(place: Path, server: dict[str, Any], store: str | None = None) -> Path:
    config = {
        "store": store or f"sqlite:///{place / 'store.db'}",
        "upstreams": {"b": {"mcp": server, "prefix": "", "contracts": "overlay.yaml", "concurrency": 64}},
        "limits": {"ingress": {"rate": PLENTY, "burst": PLENTY}},
    }
    (place / "overlay.yaml").write_text(yaml.safe_dump(OVERLAY))
    path = place / "holdfast.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def served(
    place: Path, config: Path, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> Iterator[Endpoint]:
    port = free_port()
    whole: tuple[str | Path, ...] = (*command, "--config", config, "--port", str(port))
    with running(whole, port, place / "log", variables) as pid:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid)
