"""How was this command called, so that what it tells people to type works where they are?"""

import os
import shutil
import sys
from pathlib import Path


def command() -> str:
    """`holdfast` where that is found, else the path it was started by."""
    started = Path(sys.argv[0])
    if started.name != "holdfast":
        return "holdfast" if shutil.which("holdfast") else "python -m holdfast"
    found = shutil.which("holdfast")
    if found is not None and Path(found).resolve() == started.resolve():
        return "holdfast"
    near = os.path.relpath(started)
    return str(started) if near.startswith("..") else near


def with_config(config: Path) -> str:
    """The option that names this configuration again, where it must be named."""
    if config == Path("holdfast.yaml") or "HOLDFAST_CONFIG" in os.environ:
        return ""
    return f" --config {config}"
