"""What really happened?

The MCP server writes down every effect in a file of its own before it answers or fails to. The gateway knows
nothing of it, so what is in it is true whatever anybody was told.
"""

import sqlite3
from collections import Counter
from pathlib import Path


class Book:
    def __init__(self, file: Path) -> None:
        self._file = sqlite3.connect(file, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")  # outlives the process, which is all that dies here
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS effect "
            "(line INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL)"
        )
        self._file.execute("CREATE INDEX IF NOT EXISTS by_name ON effect (name)")
        self._file.execute("CREATE INDEX IF NOT EXISTS by_key ON effect (key)")

    def act(self, name: str, key: str) -> int:
        """Do it, once more if it was done before; the number of the line that says so."""
        line = self._file.execute("INSERT INTO effect (name, key) VALUES (?, ?)", (name, key)).lastrowid
        assert line is not None
        return line

    def asked(self, tool: str, name: str, key: str) -> tuple[int, bool]:
        """Do it, `honoured-…` only once for a key; its line, and whether it was never done before."""
        before = self.lines(key) if tool.startswith("honoured") else []
        first = not self._file.execute("SELECT 1 FROM effect WHERE name = ?", (name,)).fetchone()
        return before[0] if before else self.act(name, key), first

    def lines(self, key: str) -> list[int]:
        found = self._file.execute("SELECT line FROM effect WHERE key = ? ORDER BY line", (key,))
        return [line for (line,) in found]

    def effects(self) -> Counter[str]:
        """How often each thing was done."""
        return Counter(name for (name,) in self._file.execute("SELECT name FROM effect"))

    def line_of(self, name: str) -> int:
        """The line of something that was done exactly once."""
        [(line,)] = self._file.execute("SELECT line FROM effect WHERE name = ?", (name,)).fetchall()
        assert isinstance(line, int)
        return line

    def close(self) -> None:
        self._file.close()
