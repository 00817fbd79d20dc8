"""What does a backup say about itself?"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

FORMAT = "holdfast-backup.1"
NAME = "manifest.json"
SEAL = "manifest.seal"
PURPOSE = "backup"
"""What the manifest's seal is for: made with the store's root secret, so only its own key file opens it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One table in the file."""

    columns: list[str]
    rows: int
    sha256: str

    @property
    def insert(self) -> str:
        return f"({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    engine: str
    shape: int
    life: int
    life_id: str
    taken_at: float
    tree_size: int
    tree_root: str
    tables: dict[str, Member]

    @property
    def rows(self) -> int:
        return sum(member.rows for member in self.tables.values())

    @property
    def taken(self) -> str:
        return moment(self.taken_at)

    def to_json(self) -> bytes:
        said = {"format": FORMAT, **asdict(self)}
        return orjson.dumps(said, option=orjson.OPT_INDENT_2)

    @classmethod
    def from_json(cls, raw: bytes) -> "Manifest":
        """Raises ValueError, KeyError or TypeError for what is none."""
        said: dict[str, Any] = orjson.loads(raw)
        if said.pop("format") != FORMAT:
            raise ValueError(f"it is not in the format {FORMAT!r}")
        tables = {name: Member(**member) for name, member in said.pop("tables").items()}
        return cls(tables=tables, **said)


def moment(at: float) -> str:
    """A time for people and records alike."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
