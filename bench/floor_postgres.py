"""The least a durable write can cost on PostgreSQL: two commits with fsync, each in one trip.

Rows are as large as Holdfast's: a claim and its intent, then its outcome and the record of it. Beside it a
sequencer gives every record its place in the log, in batches, as Holdfast's does, and hashes nothing. Each
flow has two commits of its own here; Holdfast writes those that wait at the same time in one.
"""

import asyncio

import asyncpg

LANES = 8
"""Connections per process, as many as the store has lanes."""
SEQUENCE_S = 0.5

SCHEMA = """
CREATE SCHEMA floor;
CREATE TABLE floor.claim (tenant text, principal text, tool text, key text, state text, call_id text,
  digest text, fingerprint text, nonce text, owner text, trace text, made float8, lease float8, payload bytea,
  outcome bytea, PRIMARY KEY (tenant, principal, tool, key), UNIQUE (tenant, call_id));
CREATE TABLE floor.record (tenant text, writer text, seq bigint, call_id text, kind text, at float8,
  body text, prev bytea, hash bytea, PRIMARY KEY (tenant, writer, seq));
CREATE TABLE floor.leaf (place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text, writer text,
  seq bigint, call_id text, at float8, hash bytea, UNIQUE (writer, seq));
CREATE TABLE floor.head (writer text PRIMARY KEY, seq bigint);
"""
BEGIN = """
WITH claim AS (INSERT INTO floor.claim VALUES ('default', 'ana/bench', 'b.mark', $1, 'dispatched', $1, $2, $2,
  $3, $3, $3, 1.0, 1.0, $4))
INSERT INTO floor.record VALUES ('default', $5, $6, $1, 'intent', 1.0, $7, $8, $8)
"""
FINISH = """
WITH claim AS (UPDATE floor.claim SET state = 'committed', outcome = $2
  WHERE tenant = 'default' AND principal = 'ana/bench' AND tool = 'b.mark' AND key = $1 AND nonce = $3)
INSERT INTO floor.record VALUES ('default', $4, $5, $1, 'outcome', 1.0, $6, $7, $7)
"""
SEQUENCE = """
WITH waiting AS (SELECT r.* FROM floor.record r WHERE r.writer = $1 AND r.seq > $2 ORDER BY r.seq LIMIT 500),
  placed AS (INSERT INTO floor.leaf (tenant, writer, seq, call_id, at, hash)
    SELECT tenant, writer, seq, call_id, at, hash FROM waiting RETURNING seq)
INSERT INTO floor.head SELECT $1, max(seq) FROM placed HAVING max(seq) IS NOT NULL
ON CONFLICT (writer) DO UPDATE SET seq = excluded.seq RETURNING seq
"""


class Sizes:
    """How long the variable parts of Holdfast's rows are, measured on its own rows."""

    def __init__(self, payload: int, outcome: int, intent: int, result: int) -> None:
        self.payload, self.outcome = b"\x01" * payload, b"\x02" * outcome
        self.intent, self.result = "i" * intent, "r" * result


class PostgresFloor:
    def __init__(self, url: str, name: str, sizes: Sizes) -> None:
        self._url = url
        self._name = name
        self._sizes = sizes
        self._free: asyncio.Queue[tuple[asyncpg.Connection[asyncpg.Record], str]] = asyncio.Queue()
        self._seq: dict[str, int] = {}
        self._sequencing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        for lane in range(LANES):
            writer = f"{self._name}.{lane}"
            self._seq[writer] = 0
            self._free.put_nowait((await asyncpg.connect(self._url), writer))
        self._sequencing = asyncio.create_task(self._sequence())

    async def flow(self, key: str) -> None:
        digest, nonce, sizes = "d" * 64, f"n-{key:>22}"[:24], self._sizes
        connection, writer = await self._free.get()
        values = (digest, nonce, sizes.payload, writer, self._next(writer), sizes.intent, bytes(32))
        await connection.execute(BEGIN, key, *values)
        self._free.put_nowait((connection, writer))
        connection, writer = await self._free.get()
        ended = (sizes.outcome, nonce, writer, self._next(writer), sizes.result, bytes(32))
        await connection.execute(FINISH, key, *ended)
        self._free.put_nowait((connection, writer))

    async def close(self) -> None:
        if self._sequencing is not None:
            self._sequencing.cancel()
        while not self._free.empty():
            await self._free.get_nowait()[0].close()

    def _next(self, writer: str) -> int:
        self._seq[writer] += 1
        return self._seq[writer]

    async def _sequence(self) -> None:
        connection, heads = await asyncpg.connect(self._url), dict.fromkeys(self._seq, 0)
        while True:
            await asyncio.sleep(SEQUENCE_S)
            for writer in heads:
                while (seen := await connection.fetchval(SEQUENCE, writer, heads[writer])) is not None:
                    heads[writer] = seen
