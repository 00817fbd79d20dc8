"""mcp-airlock, as its readme starts it: a policy of two tools, its audit file, callers named by a header."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.contestant import Endpoint
from bench.peers.installed import environment
from bench.running import free_port, running

PLENTY = 1_000_000_000
POLICY = {
    "version": 1,
    "environment": "dev",
    "blast_radius": {"max_per_call": 50, "max_per_principal": PLENTY, "window_s": 3600},
    "tools": {
        "read": {"tiers": {"dev": "L0"}},
        "write": {"tiers": {"dev": "L3"}, "description": "mark an item in a colour"},
    },
}


@contextmanager
def opened(place: Path, upstream: str) -> Iterator[Endpoint]:
    policy, port = place / "policy.yaml", free_port()
    policy.write_text(yaml.safe_dump(POLICY))
    command = (
        *(environment("airlock") / "bin" / "mcp-airlock", "--policy", policy, "--upstream", upstream),
        *("--audit", place / "audit.jsonl", "--port", str(port)),
    )
    variables = {"AIRLOCK_TRUST_PRINCIPAL_HEADER": "1"}
    with running(command, port, place / "log", variables) as pid:
        headers = {"X-Airlock-Principal": "ana"}
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp", pid=pid, headers=headers)
