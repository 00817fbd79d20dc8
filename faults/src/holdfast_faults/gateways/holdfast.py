"""Holdfast: one key, one effect, and `unknown` where nobody can tell.

The overlay says what a good operator would: what writes, what can be looked up afterwards, what a person must
approve. It takes keys in `_meta`. Its store is a SQLite file, or what `HOLDFAST_FAULTS_STORE` says.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from holdfast_faults.adapter import Adapter, Json, Launch, Site, Told, Unavailable
from holdfast_faults.ports import free_port

PLENTY: Final = 1_000_000
TIMEOUT_MS: Final = 5000
"""Below what clients wait, so that a call whose upstream hangs is told as unknown."""
SETTLE_AFTER_S: Final = 15.0
"""How late the kit's upstream may still act: it is held until a gateway that was asked to leave has left."""
WRITE: Final[Json] = {
    "effect": "LOW_RISK_INTERNAL",
    "undo": "exact",
    "manifest": [["book", "CREATE", "line"]],
    "idempotency": "none",
    "timeout_ms": TIMEOUT_MS,
}
PROBE: Final[Json] = {
    "read": {"tool": "seen", "arguments": {"item": "=args.item"}},
    "committed": "size(state.lines) > 0",
    "result": "{'line': state.lines[0]}",
    "settle_after_s": SETTLE_AFTER_S,
}
CONTRACTS: Final[dict[str, Json]] = {
    "write": WRITE,
    "checked": {**WRITE, "probe": PROBE},
    "confirmed": WRITE,
    "guarded": {**WRITE, "floor": "user"},
    "seen": {"effect": "READ_ONLY"},
}


def prepare(site: Site, store: str | None = None, restart: Callable[[], None] | None = None) -> Launch:
    config = site.folder / "holdfast.yaml"
    if site.replica == 0:
        overlay = {"version": 1, "tools": {name: CONTRACTS[kind] for name, kind in site.tools.items()}}
        (site.folder / "overlay.yaml").write_text(json.dumps(overlay))  # JSON is YAML
        config.write_text(json.dumps(_config(site, store)))
    port = free_port()
    command = (*_program(site), "serve", "--config", config, "--port", str(port))
    return Launch(command=command, url=f"http://127.0.0.1:{port}/mcp", restart_store=restart)


def _config(site: Site, store: str | None) -> Json:
    upstream = {"mcp": {"url": site.upstream_url}, "contracts": "overlay.yaml", "concurrency": 512}
    return {
        "store": store
        or os.environ.get("HOLDFAST_FAULTS_STORE")
        or f"sqlite:///{site.folder / 'holdfast.db'}",
        "upstreams": {"kit": upstream},
        "mcp": {"lazy_above": 10_000},
        "limits": {"ingress": {"rate": PLENTY, "burst": PLENTY}},
    }


def _program(site: Site) -> tuple[str | Path, ...]:
    """Where it was said to be; else beside this Python, or on the PATH."""
    beside = Path(sys.executable).parent
    for folder in (site.home / "bin",) if site.home else (beside, *os.get_exec_path()):
        if found := shutil.which("holdfast", path=str(folder)):
            return (found,)
    raise Unavailable("there is no 'holdfast' command: install it, or say --home holdfast=FOLDER")


def read(result: Json) -> Told:
    said = (result.get("_meta") or {}).get("holdfast/observation") or {}
    retryable = (said.get("remedy") or {}).get("retryable") is True
    match said.get("status"):
        case "done":
            return Told.DONE
        case "unknown":
            return Told.UNKNOWN
        case _ if retryable:
            return Told.AGAIN
        case "held" | "refused" | "failed":
            return Told.REFUSED
    return Told.ERROR


HOLDFAST = Adapter(
    name="holdfast",
    about="Holdfast on SQLite",
    keys='`_meta["holdfast/key"]`',
    prepare=prepare,
    read=read,
    approves=True,
)


def on_postgresql(url: str, restart: Callable[[], None]) -> Adapter:
    """Holdfast on a database with nothing else in it; `restart` cuts its server short and starts it again."""
    return replace(
        HOLDFAST,
        name="holdfast-postgresql",
        about="Holdfast on PostgreSQL",
        prepare=lambda site: prepare(site, url, restart),
    )
