"""Does a process that is stopped inside a transaction keep nobody out for good?"""

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path

from holdfast.ports import Begun
from holdfast.stores.keyring import root_secret
from holdfast.stores.postgres.connection import Patience, connect, hang_up
from holdfast.stores.postgres.lane import Lane
from holdfast.stores.postgres.store import PostgresStore
from holdfast.system import SystemClock
from tests.conflicts.test_kept import HALL, staged
from tests.conflicts.test_laws import PAINT
from tests.polling import FELT_S
from tests.requirements import requirement
from tests.stores.calls import make_call
from tests.stores.test_staged import RATE


@requirement("EXE-7", "IDM-4", "PPL-6")
async def test_what_a_stopped_process_has_locked_is_free_before_long_and_it_finds_out(
    url: str, tmp_path: Path
) -> None:
    """The row of a rate, and something that is being changed."""
    command = ("-m", "tests.stores.postgres.stopped", url, str(tmp_path))
    clock, keys = SystemClock(), partial(root_secret, tmp_path / "ledger.db.keys")
    async with PostgresStore(url, keys, clock) as store:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(3 * FELT_S):
                assert (await process.stdout.readline()).strip() == b"inside"
                os.kill(process.pid, signal.SIGSTOP)
                call = make_call(clock, "other", tool=PAINT, stage=[*staged(HALL), RATE])
                begun = await store.ledger.begin(call)
                assert isinstance(begun, Begun), "nothing that was not committed is in anybody's way"
                os.kill(process.pid, signal.SIGCONT)
                process.stdin.write(b"go on\n")
                assert (await process.stdout.readline()).split() == [b"Conflicting", b"2"]
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@requirement("PPL-6")
async def test_no_transaction_that_writes_lasts_where_the_server_can_see_to_it(url: str) -> None:
    known = await connect(url)
    there = await known.fetchval("SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'")
    await hang_up(known)
    lane = Lane(url, "w_test.0")
    try:
        connection = await lane._connected(Patience(FELT_S))
        found = await connection.fetchval("SELECT current_setting('transaction_timeout', true)")
        assert found == ("30s" if there else None)
        assert await connection.fetchval("SHOW idle_in_transaction_session_timeout") == "5s"
    finally:
        await lane.drop()
