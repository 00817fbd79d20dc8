"""The least a durable write can cost here: two transactions with full fsync, and nothing else.

One writer thread and group commit, as the ledger has, on bare rows: insert a claim;
update it and append an audit row. Acknowledged only after the commit.
"""

import asyncio
import queue
import sqlite3
import threading
from pathlib import Path

SCHEMA = """
CREATE TABLE claim(tenant TEXT, principal TEXT, tool TEXT, key TEXT, state TEXT, body BLOB,
  PRIMARY KEY(tenant, principal, tool, key)) WITHOUT ROWID;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body BLOB);
"""
CLAIM = "INSERT INTO claim VALUES('t', 'p', 'x', ?, 'dispatched', ?)"
OUTCOME = (
    "UPDATE claim SET state='committed', body=? WHERE tenant='t' AND principal='p' AND tool='x' AND key=?"
)
AUDIT = "INSERT INTO audit(body) VALUES(?)"
BODY = b"x" * 200
Job = tuple[asyncio.Future[None], bool, str]


class Floor:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "floor.db"
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    async def flow(self, key: str) -> None:
        await self._submit(True, key)
        await self._submit(False, key)

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    async def _submit(self, claim: bool, key: str) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((done, claim, key))
        await done

    def _write(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(SCHEMA)
        while (job := self._jobs.get()) is not None:
            batch = [job]
            while not self._jobs.empty() and len(batch) < 256:
                more = self._jobs.get()
                if more is None:
                    return
                batch.append(more)
            connection.execute("BEGIN IMMEDIATE")
            for _, claim, key in batch:
                if claim:
                    connection.execute(CLAIM, (key, BODY))
                else:
                    connection.execute(OUTCOME, (BODY, key))
                    connection.execute(AUDIT, (BODY,))
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, [done for done, _, _ in batch])


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)
