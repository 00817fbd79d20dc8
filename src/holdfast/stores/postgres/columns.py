"""How are many rows written by one statement? Each column goes to the server as one array."""

import re
from collections.abc import Sequence

from holdfast.stores.postgres.connection import Connection
from holdfast.stores.postgres.dialect import translated
from holdfast.stores.sql.engine import Values

_INSERT = re.compile(r"\s*(INSERT INTO \w+) VALUES \(([^()]*)\)(.*)", re.DOTALL)
_known: dict[str, str | None] = {}
"""By statement: they are constants, as the types of their columns are."""


async def insert(connection: Connection, statement: str, rows: Sequence[Values]) -> None:
    """A statement that inserts one row, for all of these."""
    if statement not in _known:
        _known[statement] = await _in_columns(connection, statement)
    text = _known[statement]
    if text is None:
        await connection.executemany(translated(statement)[0], rows)
    elif rows:
        await connection.execute(text, *zip(*rows, strict=True))


async def _in_columns(connection: Connection, statement: str) -> str | None:
    """The same with arrays for placeholders; None where it is no plain insert."""
    found = _INSERT.fullmatch(statement)
    if found is None:
        return None
    items = [item.strip() for item in found[2].split(",")]
    prepared = await connection.prepare(translated(statement)[0])
    types = [f"{kind.schema}.{kind.name}" for kind in prepared.get_parameters()]
    if items.count("?") != len(types):
        return None
    names = iter(f"c{n}" for n in range(len(types)))
    columns = ", ".join(f"c{n}" for n in range(len(types)))
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(types, 1))
    values = ", ".join(next(names) if item == "?" else item for item in items)
    return f"{found[1]} SELECT {values} FROM unnest({arrays}) AS c ({columns}){found[3]}"  # noqa: S608 - of a constant
