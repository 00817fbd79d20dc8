"""Who is signed in to the console. Every process asks here: what one of them ends is over in all."""

import orjson

from holdfast.model.people import SignedIn
from holdfast.ports import Clock, Secrets
from holdfast.stores.sql.engine import Reader, Transaction, Values, Writer

EVERYWHERE = "*"
"""Whose a session is is known once it is opened."""
ADD = """
INSERT INTO console_session (tenant, hash, person, sealed, at, seen_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
FIND = """
SELECT person, sealed, at, seen_at, expires_at FROM console_session
WHERE tenant = ? AND hash = ? AND expires_at > ?
"""
SEEN = "UPDATE console_session SET seen_at = ?, expires_at = ? WHERE tenant = ? AND hash = ? AND seen_at <= ?"
END = "DELETE FROM console_session WHERE tenant = ? AND hash = ?"
FORGET = "DELETE FROM console_session WHERE expires_at <= ?"


class SqlSessions:
    def __init__(self, writer: Writer, reader: Reader, secrets: Secrets, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock

    async def add(self, session: SignedIn) -> None:
        sealed = self._secrets.seal(EVERYWHERE, orjson.dumps(dict(session.credential)))
        times = (session.at, session.seen_at, session.expires_at)
        await self._run(True, ADD, (EVERYWHERE, session.hash, session.person, sealed, *times))

    async def find(self, hash: str) -> SignedIn | None:
        rows = await self._reader.all(EVERYWHERE, FIND, (EVERYWHERE, hash, self._clock.now()))
        if not rows:
            return None
        person, sealed, at, seen_at, expires_at = rows[0]
        return SignedIn(
            hash=hash,
            person=person,
            credential=orjson.loads(self._secrets.unseal(EVERYWHERE, sealed)),
            at=at,
            seen_at=seen_at,
            expires_at=expires_at,
        )

    async def seen(self, hash: str, at: float, expires_at: float) -> None:
        await self._run(False, SEEN, (at, expires_at, EVERYWHERE, hash, at))

    async def end(self, hash: str) -> bool:
        return await self._run(True, END, (EVERYWHERE, hash)) > 0

    async def forget(self) -> int:
        return await self._writer.submit_long(EVERYWHERE, _changed, FORGET, (self._clock.now(),))

    async def _run(self, durable: bool, statement: str, values: Values) -> int:
        return await self._writer.submit(EVERYWHERE, durable, _changed, statement, values)


async def _changed(transaction: Transaction, statement: str, values: Values) -> int:
    return await transaction.run(statement, values)
