"""How does Holdfast come through faults beside other gateways? The public kit, with the peers as locked.

    python -m bench.faults                           all of it, some minutes
    python -m bench.faults --gateway holdfast        what `holdfast-faults run` takes

The kit is in `faults/`; this only installs the peers, starts a PostgreSQL and tells the kit where they are.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast_faults.cli import main as faults
from holdfast_faults.gateways.holdfast import on_postgresql

from bench.peers.installed import environment, packages
from tests.postgres_server import Postgres


def installed() -> dict[str, Path]:
    """Where each peer is, once it is there. Raises Uninstalled."""
    node, modules = packages()
    os.environ["HOLDFAST_FAULTS_NODE"] = str(node)
    return {
        "fastmcp": environment("fastmcp"),
        "contextforge": environment("contextforge"),
        "supergateway": modules.parent,
    }


def main(arguments: Sequence[str]) -> None:
    homes = [word for name, home in installed().items() for word in ("--home", f"{name}={home}")]
    with Postgres() as server:
        faults(["run", *homes, *arguments], more=[on_postgresql(server.url, server.restart_immediate)])


if __name__ == "__main__":
    main(sys.argv[1:])
