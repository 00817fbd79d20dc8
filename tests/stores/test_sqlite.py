"""Does the SQLite store hold when the disk, the lock or a neighbour does not?"""

import asyncio
import os
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import StoreError
from holdfast.model.observation import Status
from holdfast.model.stage import TakeRate
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Taken
from holdfast.records.chain import first_fault
from holdfast.stores.sql import audit, budgets, outcome, questions, rows
from holdfast.stores.sql.engine import HALTS, AmbiguousCommit, Transaction
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.sqlite.writer import BATCH_PAGES, CHECKPOINT_PAGES, JOB_PAGES, SqliteWriter
from holdfast.system import SystemClock
from holdfast.testing import settle_loop
from tests.requirements import requirement
from tests.stores.calls import LOOK, make_call, observed
from tests.stores.world import read_records, ref_of, spooled

CLOCK = SystemClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "holdfast.db", CLOCK, lock_s=0.2) as opened:
        yield opened


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process in the middle of a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def shut(path: Path) -> Iterator[None]:
    """Another process begins or ends the log: not even the schema can be read."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """No file may grow beyond what the log has now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name(f"{path.name}-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class LostAnswer:
    """A connection whose commits succeed and then report a failure."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = self._connection.execute(statement, *parameters)
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def claimed(store: SqliteStore, key: str) -> None:
    assert isinstance(await store.ledger.begin(make_call(CLOCK, key)), Begun)


@requirement("CON-6")
async def test_nothing_a_caller_sent_or_got_can_be_read_from_the_files(
    store: SqliteStore, tmp_path: Path
) -> None:
    call = make_call(CLOCK, "k-1", arguments={"to": "canary-argument"})
    await store.approvals.ask(call, {"operator": 1}, {"shown": "canary-packet"})
    begun = await store.ledger.begin(call)
    assert isinstance(begun, Begun)
    call.operation = begun.operation
    told = observed(
        call, data={"iban": "canary-result"}, mutations=({"resource": "x", "to": "canary-change"},)
    )
    assert await store.ledger.finish(call, told, State.COMMITTED)
    await store.ledger.refuse(call, observed(call, Status.REFUSED, message="canary-message"), None)
    found = await store.ledger.find(ref_of(call))
    assert found is not None
    assert b"canary-argument" in (found.payload or b"")
    assert b"canary-result" in (found.observation or b"")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"holdfast.db", "holdfast.db-wal", "holdfast.db.keys"} <= {path.name for path in files}
    assert [path.name for path in files if b"canary" in path.read_bytes()] == []


@requirement("IDM-4", "AUD-5")
async def test_a_claim_the_disk_did_not_take_is_no_claim(store: SqliteStore) -> None:
    await claimed(store, "before")
    lost = make_call(CLOCK, "lost")
    with full_disk(store.path), pytest.raises(StoreError):
        await store.ledger.begin(lost)
    assert await store.ledger.find(ref_of(lost)) is None
    await claimed(store, "lost")
    assert first_fault(read_records(store.path)) is None
    assert len(list(read_records(store.path))) == 2


@requirement("AUD-5")
async def test_an_outcome_the_disk_did_not_take_is_reported_and_leaves_the_claim(store: SqliteStore) -> None:
    call = make_call(CLOCK)
    begun = await store.ledger.begin(call)
    assert isinstance(begun, Begun)
    call.operation = begun.operation
    with full_disk(store.path), pytest.raises(StoreError):
        await store.ledger.finish(call, observed(call, data="x" * 100_000), State.COMMITTED)
    found = await store.ledger.find(ref_of(call))
    assert found is not None
    assert found.state is State.DISPATCHED
    assert await store.ledger.finish(call, observed(call), State.COMMITTED)


@requirement("IDM-4")
async def test_a_commit_whose_answer_got_lost_is_looked_up_by_its_nonce(store: SqliteStore) -> None:
    call, read = make_call(CLOCK, "k-1"), make_call(CLOCK, None, tool=LOOK)
    read.stage("limits", TakeRate("look", 10, 60.0))  # so that it is in a transaction
    store._writer._connection = LostAnswer(store._writer._connection)  # type: ignore[assignment]
    begun = await store.ledger.begin(call)
    assert isinstance(begun, Begun)
    assert begun.operation is not None
    assert begun.operation.nonce == call.nonce
    call.operation = begun.operation
    assert await store.ledger.finish(call, observed(call), State.COMMITTED)
    with pytest.raises(AmbiguousCommit):
        await store.ledger.begin(read)
    with pytest.raises(AmbiguousCommit):
        await store.ledger.begin(make_call(CLOCK, "k-1"))
    assert first_fault(read_records(store.path)) is None


@requirement("PPL-6", "IDM-4")
async def test_nobody_waits_for_the_lock_for_ever(store: SqliteStore) -> None:
    await claimed(store, "before")
    call = make_call(CLOCK)
    with locked(store.path), pytest.raises(StoreError, match="locked"):
        await store.ledger.begin(call)
    assert await store.ledger.find(ref_of(call)) is None
    await claimed(store, "k-1")


@requirement("PPL-6")
async def test_the_first_write_of_a_process_waits_for_who_shuts_the_database(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "holdfast.db", CLOCK) as store:
        await claimed(store, "before")
    writer = SqliteWriter(store.path, "w_2")
    writer.open()
    with shut(store.path):
        first = writer.submit("acme", True, tips)
        await settle_loop()
        assert not first.done()
    assert await first
    await writer.close()


async def tips(transaction: Transaction) -> int:
    """In how many chains somebody has written."""
    found = await transaction.one("SELECT count(DISTINCT writer) FROM record", ())
    return 0 if found is None else int(found[0])


@requirement("PPL-1")
async def test_a_store_that_cannot_be_opened_says_so_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "holdfast.db-workers" / "turn").mkdir(parents=True)
    open_before = len(os.listdir("/dev/fd"))
    with pytest.raises(StoreError, match="cannot be opened"):
        async with SqliteStore(tmp_path / "holdfast.db", CLOCK):
            pass
    assert len(os.listdir("/dev/fd")) == open_before


@requirement("IDM-4")
async def test_a_caller_who_leaves_before_the_claim_is_there_leaves_nothing_running(tmp_path: Path) -> None:
    call = make_call(CLOCK)
    async with SqliteStore(tmp_path / "holdfast.db", CLOCK) as store:
        store.secrets.seal("default", b"")  # the tenant has its key before somebody takes the lock
        with locked(store.path):
            leaving = asyncio.create_task(store.ledger.begin(call))
            await settle_loop()
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
    async with SqliteStore(tmp_path / "holdfast.db", CLOCK) as store:
        found = await store.ledger.find(ref_of(call))
        assert found is not None
        assert found.state is State.NO_EFFECT
        assert [r.kind for r in read_records(store.path)] == ["intent", "outcome"]
        await claimed(store, "k-1")


@requirement("AUD-1")
async def test_closing_writes_what_was_submitted_and_then_takes_no_more(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "holdfast.db", CLOCK)
    await store.open()
    pending = [asyncio.create_task(store.ledger.begin(make_call(CLOCK, f"k{n}"))) for n in range(600)]
    await settle_loop(1)
    await store.close()
    assert all(isinstance(answer, Begun) for answer in await asyncio.gather(*pending))
    assert len(list(read_records(store.path))) == 600
    with pytest.raises(StoreError, match="closed"):
        await store.ledger.begin(make_call(CLOCK, "late"))


@requirement("DEC-1")
async def test_a_job_that_breaks_takes_no_neighbour_with_it(store: SqliteStore) -> None:
    async def half(transaction: Transaction) -> None:
        await transaction.run("INSERT INTO rate VALUES ('t', 'half', 1.0)")
        transaction.record("t", "half", "intent", 1.0, "{}")
        raise ZeroDivisionError

    before = asyncio.create_task(store.ledger.begin(make_call(CLOCK, "a")))
    broken = store._writer.submit("t", True, half)
    after = asyncio.create_task(store.ledger.begin(make_call(CLOCK, "b")))
    answers = await asyncio.gather(before, broken, after, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Begun, StoreError, Begun]
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM rate").fetchone() == (0,)
    assert [record.kind for record in read_records(store.path)] == ["intent", "intent"]
    assert first_fault(read_records(store.path)) is None


@requirement("DEC-1", "IDM-4")
async def test_one_of_equal_claims_in_a_batch_wins_and_neighbours_lose_nothing(store: SqliteStore) -> None:
    await claimed(store, "taken")
    calls = [make_call(CLOCK, key) for key in ("a", "same", "same", "taken", "b")]
    looks = [make_call(CLOCK, None, tool=LOOK) for _ in range(2)]
    answers = await asyncio.gather(*(store.ledger.begin(call) for call in (*calls, *looks)))
    assert [type(answer) for answer in answers] == [Begun, Begun, Taken, Taken, Begun, Begun, Begun]
    assert first_fault(read_records(store.path)) is None
    assert len(list(read_records(store.path))) == 4
    assert len(spooled(store.path)) == 2


@requirement("IDM-5")
async def test_an_end_that_comes_too_late_takes_no_neighbour_with_it(store: SqliteStore) -> None:
    calls = [make_call(CLOCK, key) for key in "abc"]
    for call in calls:
        begun = await store.ledger.begin(call)
        assert isinstance(begun, Begun)
        call.operation = begun.operation
    await store.ledger.finish(calls[1], observed(calls[1]), State.COMMITTED)
    ends = [store.ledger.finish(call, observed(call), State.COMMITTED) for call in calls]
    assert await asyncio.gather(*ends) == [True, False, True]
    assert sorted(record.kind for record in read_records(store.path))[3:] == ["late", *["outcome"] * 3]
    assert first_fault(read_records(store.path)) is None


@requirement("PPL-4")
async def test_a_halt_holds_for_what_is_claimed_behind_it_in_the_same_batch(store: SqliteStore) -> None:
    before = asyncio.create_task(store.ledger.begin(make_call(CLOCK, "before")))
    halt = asyncio.create_task(store.controls.halt("bank", "olga", ""))
    after = asyncio.create_task(store.ledger.begin(make_call(CLOCK, "after")))
    assert isinstance(await before, Begun)
    await halt
    assert isinstance(await after, Denied)


@requirement("PPL-4")
async def test_halts_are_read_again_once_anybody_may_have_changed_them(tmp_path: Path) -> None:
    said: list[str] = []

    async def begun(key: str) -> tuple[bool, int]:
        """Whether a call may begin, and how often the halts were read for it."""
        said.clear()
        ended = await ours.ledger.begin(make_call(CLOCK, key))
        return isinstance(ended, Begun), said.count(HALTS)

    path = tmp_path / "holdfast.db"
    async with SqliteStore(path, CLOCK) as ours, SqliteStore(path, CLOCK) as theirs:
        await begun("first")
        ours._writer._connection.set_trace_callback(said.append)
        assert [await begun("a"), await begun("b")] == [(True, 0)] * 2
        await theirs.controls.halt("bank", "olga", "")
        assert [await begun("c"), await begun("d")] == [(False, 1), (False, 0)]
        await ours.controls.resume("bank", "olga")
        assert [await begun("e"), await begun("f")] == [(True, 1), (True, 0)]
        await ours.controls.halt("bank", "olga", "")
        assert [await begun("g"), await begun("h")] == [(False, 1), (False, 0)]


@requirement("PPL-4")
async def test_a_halt_that_was_not_kept_stops_nobody(store: SqliteStore) -> None:
    async def halt_and_fail(transaction: Transaction) -> None:
        await transaction.brake()
        await transaction.run("INSERT INTO halt VALUES ('*', 'bank', 'olga', '', 0)")
        assert "bank" in await transaction.halts(("bank",))
        raise ValueError("no")

    ended = await asyncio.gather(
        store.ledger.begin(make_call(CLOCK, "a")),
        store._writer.submit("*", True, halt_and_fail),
        store.ledger.begin(make_call(CLOCK, "b")),
        return_exceptions=True,
    )
    assert [type(one) for one in ended] == [Begun, StoreError, Begun]
    assert isinstance(await store.ledger.begin(make_call(CLOCK, "c")), Begun)


@requirement("PPL-6")
async def test_the_log_is_folded_back_before_it_grows_large(store: SqliteStore) -> None:
    log = store.path.with_name(f"{store.path.name}-wal")
    before = store.path.stat().st_size
    for turn in range(2 * CHECKPOINT_PAGES // (BATCH_PAGES + JOB_PAGES * 250) + 1):
        await asyncio.gather(*(claimed(store, f"{turn}-{number}") for number in range(250)))
    assert store.path.stat().st_size > 2 * before
    assert log.stat().st_size < 1.5 * 4096 * CHECKPOINT_PAGES


@requirement("AUD-5")
async def test_writes_are_synced_to_the_disk_and_reads_only_written_down(store: SqliteStore) -> None:
    said: list[str] = []
    store._writer._connection.set_trace_callback(said.append)
    await store.ledger.begin(make_call(CLOCK, None, tool=LOOK))
    assert said == []
    assert len(spooled(store.path)) == 1
    limited = make_call(CLOCK, None, tool=LOOK)
    limited.stage("limits", TakeRate("look", 10, 60.0))
    await store.ledger.begin(limited)
    assert said[:2] == ["PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE"]
    said.clear()
    await claimed(store, "k-1")
    assert said[:2] == ["PRAGMA synchronous = FULL", "BEGIN IMMEDIATE"]
    assert said[-1] == "COMMIT"
    said.clear()
    limited = make_call(CLOCK, None, tool=LOOK)
    limited.stage("limits", TakeRate("look", 10, 60.0))
    await asyncio.gather(store.ledger.begin(limited), claimed(store, "k-2"))
    assert "PRAGMA synchronous = NORMAL" not in said, "one write makes the whole batch durable"


@requirement("PPL-6", "PPL-4")
async def test_two_processes_on_one_file_see_each_others_claims_halts_and_deaths(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    async with SqliteStore(path, CLOCK) as ours:
        theirs = SqliteStore(path, CLOCK)
        await theirs.open()
        await claimed(theirs, "k-1")
        taken = await ours.ledger.begin(make_call(CLOCK, "k-1"))
        assert isinstance(taken, Taken)
        assert (taken.operation.owner_alive, taken.operation.orphaned) == (True, False)
        await ours.controls.halt("bank", "olga", "")
        assert isinstance(await theirs.ledger.begin(make_call(CLOCK, "k-2")), Denied)
        await theirs.close()
        async with SqliteStore(path, CLOCK) as later:
            [orphan] = await later.ledger.overdue(10)
            assert (orphan.ref.key, orphan.owner_alive) == ("k-1", False)
        writers = {record.writer for record in read_records(path)}
        for writer in writers:
            assert first_fault(r for r in read_records(path) if r.writer == writer) is None
        assert len(writers) == 2


@requirement("DEC-4")
async def test_a_key_file_of_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    async with SqliteStore(path, CLOCK):
        pass
    (tmp_path / "holdfast.db.keys").unlink()
    with pytest.raises(StoreError, match="does not belong to this database"):
        await SqliteStore(path, CLOCK).open()


@requirement("CON-6")
async def test_an_erased_tenants_payloads_are_gone_and_its_keys_stay_taken(tmp_path: Path) -> None:
    path, call = tmp_path / "holdfast.db", make_call(CLOCK)
    async with SqliteStore(path, CLOCK) as store:
        begun = await store.ledger.begin(call)
        assert isinstance(begun, Begun)
        call.operation = begun.operation
        assert await store.ledger.finish(call, observed(call), State.COMMITTED)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tenant_key WHERE tenant = 'default'")
    async with SqliteStore(path, CLOCK) as store:
        found = await store.ledger.find(ref_of(call))
        assert found is not None
        assert (found.state, found.payload, found.observation) == (State.COMMITTED, None, None)
        assert isinstance(await store.ledger.begin(make_call(CLOCK)), Taken)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (rows.FIND, "sqlite_autoindex_operation_1"),
        (rows.FIND_CALL, "sqlite_autoindex_operation_2"),
        (rows.NEXT_OWNER, "operation_running (boot_id=? AND owner>?)"),
        (rows.NEXT_OWNED_BOOT, "operation_running (boot_id>?)"),
        (rows.FIND_RUNNING, "operation_running (boot_id=? AND owner=? AND lease_boot<?)"),
        (rows.FIND_UNKNOWN, "operation_unknown"),
        (questions.PAST, "approval_waiting (expires_at<?)"),
        (outcome.FORGET_THIS_BOOT, "operation_kept (finished_boot_id=? AND forget_boot<?)"),
        (outcome.FORGET_OTHER_BOOT, "operation_kept (finished_boot_id=?)"),
        (outcome.NEXT_BOOT, "operation_kept (finished_boot_id>?)"),
        (budgets.OF_READS, "reservation_of_reads"),
        (budgets._FORGET_OVER, "budget_over"),
        (audit.TENANTS, "sqlite_autoindex_tree_leaf_1 (tenant>?)"),
    ],
)
async def test_no_statement_reads_the_whole_ledger(store: SqliteStore, statement: str, index: str) -> None:
    parameters = [1] * (statement.count("?") if "?1" not in statement else 3)
    with closing(sqlite3.connect(store.path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    assert any(index in line[3] for line in plan), plan
    tables = ("operation", "reservation", "budget", "tree_leaf", "approval")
    assert not [line[3] for line in plan if line[3] in [f"SCAN {table}" for table in tables]]
