"""The demo as tests use it: its own files, with both databases somewhere else."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from holdfast.config import Config, load
from holdfast.model.call import Principal
from tests.docs.pages import ROOT

FOLDER = ROOT / "examples" / "demo"
AGENT = Principal(user="kim", agent="assistant", scopes=frozenset({"**"}), trust=50)
"""Somebody's agent, with every scope and no role."""
KIM = Principal(user="kim", agent="local", roles=frozenset({"user"}), scopes=frozenset({"**"}), trust=50)
"""The same person, at a terminal."""


def config(folder: Path) -> Config:
    """The demo's configuration, with the gateway's store in `folder`."""
    return load(FOLDER / "holdfast.yaml").model_copy(update={"store": f"sqlite:///{folder / 'demo.db'}"})


def rows(shop_db: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the shop itself says, past the gateway."""
    with closing(sqlite3.connect(shop_db)) as connection:
        return connection.execute(query, values).fetchall()


@contextmanager
def unimported() -> Iterator[None]:
    """What the demo put on the path and among the modules is gone afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in {"shop", "shop_db"} - modules:
            sys.modules.pop(name, None)
