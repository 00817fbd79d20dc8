"""Is it on the disk? A file or a folder, whose names are only safe once it is synced itself."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
