"""Where are results kept, and what is kept with them?

Figures mean nothing without the machine: its description and every version go with them, and nothing of who
ran it. `docs/explanation/performance.md` is filled from these files by `python -m bench.figures`.
"""

import json
import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
PEERS = Path(__file__).parent / "peers"


def keep(name: str, **figures: Any) -> Path:
    """Writes `bench/results/NAME.json`."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    kept = {"at": at, "machine": machine(), "versions": versions(), **figures}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"\nkept in {path.relative_to(ROOT)}")
    return path


def found(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    system = f"{pages * page / 2**30:.0f} GB, {platform.system()} {platform.machine()}"
    return f"{model}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    told = {name: version(name) for name in ("holdfast", "mcp", "uvicorn")}
    for pins in sorted(PEERS.glob("*.in")):
        told.update(re.findall(r"^([\w-]+)==(\S+)$", pins.read_text(), re.MULTILINE))
    told.update(json.loads((PEERS / "package.json").read_text())["dependencies"])
    return told
