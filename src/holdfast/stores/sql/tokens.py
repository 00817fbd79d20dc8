"""Tokens for upstreams. One statement decides each race between processes."""

from holdfast.ports import Secrets
from holdfast.stores.sql.engine import Reader, Transaction, Writer

Owner = tuple[str, str]

KEEP = """
INSERT INTO token VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT (tenant, principal, upstream) DO UPDATE
SET sealed = excluded.sealed, at = excluded.at, busy_until = 0 WHERE excluded.at >= token.at
"""
REPLACE = """
UPDATE token SET sealed = ?, at = ?, busy_until = 0
WHERE tenant = ? AND principal = ? AND upstream = ? AND at <= ?
"""
LEASE = """
UPDATE token SET busy_until = ?
WHERE tenant = ? AND principal = ? AND upstream = ? AND at = ? AND busy_until <= ?
"""
FIND = "SELECT sealed FROM token WHERE tenant = ? AND principal = ? AND upstream = ?"
DROP = "DELETE FROM token WHERE tenant = ? AND principal = ? AND upstream = ?"


class SqlTokens:
    def __init__(self, writer: Writer, reader: Reader, secrets: Secrets) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets

    async def load(self, owner: Owner, upstream: str) -> bytes | None:
        rows = await self._reader.all(owner[0], FIND, (*owner, upstream))
        return self._secrets.unseal(owner[0], rows[0][0]) if rows else None

    async def save(self, owner: Owner, upstream: str, value: bytes, at: float, *, new: bool = False) -> bool:
        await self._secrets.ready(owner[0])
        sealed = self._secrets.seal(owner[0], value)
        if new:
            return await self._writer.submit(owner[0], True, _changed, KEEP, (*owner, upstream, sealed, at))
        return await self._writer.submit(
            owner[0], True, _changed, REPLACE, (sealed, at, *owner, upstream, at)
        )

    async def lease(self, owner: Owner, upstream: str, at: float, now: float, until: float) -> bool:
        return await self._writer.submit(owner[0], False, _changed, LEASE, (until, *owner, upstream, at, now))

    async def drop(self, owner: Owner, upstream: str) -> bool:
        return await self._writer.submit(owner[0], True, _changed, DROP, (*owner, upstream))


async def _changed(transaction: Transaction, statement: str, values: tuple[str | bytes | float, ...]) -> bool:
    return await transaction.run(statement, values) == 1
