"""Is a job written exactly once, wherever the connection to the server breaks?"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from holdfast.model.errors import StoreError
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Taken
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.store import OneBoot
from holdfast.stores.postgres.connection import PATIENCE_S
from holdfast.stores.postgres.lane import TRIES
from holdfast.stores.postgres.reader import PostgresReader
from holdfast.stores.postgres.writer import PostgresWriter
from holdfast.stores.sql.engine import AmbiguousCommit, Transaction
from holdfast.stores.sql.ledger import SqlLedger
from holdfast.stores.watch import Watch
from holdfast.testing import ManualClock
from tests.polling import until
from tests.requirements import requirement
from tests.stored import asked
from tests.stores.calls import LOOK, make_call, observed
from tests.stores.postgres.wire import COMMIT, Wire
from tests.stores.world import ManualWorkers, ref_of

CLOCK = ManualClock()


async def note(transaction: Transaction, name: str) -> str:
    transaction.record("t", name, "outcome", 1.0, "{}")
    return name


async def lock(transaction: Transaction, target: str) -> None:
    """A job without a record."""
    await transaction.run("INSERT INTO halt VALUES ('*', ?, 'olga', '', 0)", (target,))


@asynccontextmanager
async def writing(url: str, patience_s: float = PATIENCE_S, lanes: int = 1) -> AsyncIterator[PostgresWriter]:
    writer = PostgresWriter(url, "w_test", lanes, patience_s)
    try:
        yield writer
    finally:
        await writer.close()


@asynccontextmanager
async def ledger(wire: Wire) -> AsyncIterator[SqlLedger]:
    reader = PostgresReader(wire.url)
    try:
        async with writing(wire.url) as writer:
            watch, boot = Watch(CLOCK), OneBoot(CLOCK)
            yield SqlLedger(writer, reader, Keyring(), CLOCK, boot, ManualWorkers(), watch)
    finally:
        await reader.close()


def kinds(wire: Wire) -> list[tuple[str, str]]:
    return [(record.call_id, record.kind) for record in wire.records()]


# -- a wire that breaks once ------------------------------------------------------------

LONG = (b"BEGIN;", b"INSERT INTO operation", b"INSERT INTO record", COMMIT)
"""The first claim of a lane takes the long way."""


@requirement("IDM-4", "AUD-5")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("said", LONG)
async def test_a_claim_whose_connection_breaks_anywhere_is_made_once(
    wire: Wire, said: bytes, after: bool
) -> None:
    async with ledger(wire) as store:
        call = make_call(CLOCK, "k-broken")
        wire.break_at(said, after=after)
        begun = await store.begin(call)
        assert wire.broke
        assert isinstance(begun, Begun)
        assert begun.operation is not None
        assert (begun.operation.nonce, begun.operation.epoch) == (call.nonce, 1)
        assert isinstance(await store.begin(make_call(CLOCK, "k-broken")), Taken)
    assert kinds(wire) == [(call.id, "intent")]


@requirement("IDM-4", "AUD-5")
@pytest.mark.parametrize("by", ["lane", "ledger"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_claim_and_an_outcome_in_one_trip_that_break_are_written_once(
    wire: Wire, after: bool, by: str, request: pytest.FixtureRequest
) -> None:
    """Whoever finds out: the lane by the place of its last record, or the ledger by the nonce."""
    if by == "ledger":
        request.getfixturevalue("hurried")
    async with ledger(wire) as store:
        first, call = make_call(CLOCK, "k-first"), make_call(CLOCK, "k-broken")
        await store.begin(first)  # from here on there is a short way
        wire.break_at(b"k-broken", after=after)
        begun = await store.begin(call)
        assert wire.broke
        assert isinstance(begun, Begun)
        assert begun.operation is not None
        assert (begun.operation.nonce, begun.operation.epoch) == (call.nonce, 1)
        call.operation = begun.operation
        wire.break_at(b"k-broken", after=after)
        assert await store.finish(call, observed(call, data={"ok": True}), State.COMMITTED)
        assert wire.broke
        found = await store.find(ref_of(call))
        assert found is not None
        assert (found.state, found.epoch, found.nonce) == (State.COMMITTED, 1, call.nonce)
    assert kinds(wire) == [(first.id, "intent"), (call.id, "intent"), (call.id, "outcome")]


@requirement("IDM-4", "AUD-5")
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_claim_that_nobody_could_look_up_is_resolved_by_its_nonce(wire: Wire, after: bool) -> None:
    async with ledger(wire) as store:
        call = make_call(CLOCK, "k-broken")
        wire.break_at(COMMIT, after=after)
        begun = await store.begin(call)
        assert wire.broke
        assert isinstance(begun, Begun)
        assert begun.operation is not None
        assert begun.operation.nonce == call.nonce
    assert kinds(wire) == [(call.id, "intent")]


@requirement("IDM-4")
@pytest.mark.usefixtures("hurried")
async def test_a_read_whose_intent_is_in_doubt_is_not_run(wire: Wire) -> None:
    async with ledger(wire) as store:
        wire.break_at(COMMIT, after=True)
        with pytest.raises(AmbiguousCommit, match="nothing ran"):
            await store.begin(make_call(CLOCK, None, tool=LOOK))


# -- a wire that stays broken ------------------------------------------------------------


@requirement("IDM-4")
async def test_what_was_lost_before_its_commit_is_given_up_when_its_time_is_over(wire: Wire) -> None:
    async with writing(wire.url, 0.5) as writer:
        wire.break_at(b"BEGIN;", after=True, for_good=True)
        with pytest.raises(StoreError, match=r"was not to be had for 0\.5 s") as failed:
            await writer.submit("t", True, note, "lost")
        assert not isinstance(failed.value, AmbiguousCommit)
        wire.mend()
    async with writing(wire.url) as writer:
        assert await writer.submit("t", True, note, "next") == "next"
    assert kinds(wire) == [("next", "outcome")]


@requirement("IDM-4", "AUD-1")
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("after", "written"), [(False, ["next"]), (True, ["doubtful", "next"])])
async def test_a_commit_in_doubt_is_told_as_such_and_the_chain_goes_on_where_it_really_ends(
    wire: Wire, after: bool, written: list[str]
) -> None:
    async with writing(wire.url) as writer:
        wire.break_at(COMMIT, after=after, for_good=True)
        with pytest.raises(AmbiguousCommit, match="may not have taken the write"):
            await writer.submit("t", True, note, "doubtful")
        wire.mend()
        await writer.submit("t", True, note, "next")
    assert [record.call_id for record in wire.records()] == written


@requirement("IDM-4")
async def test_a_commit_in_doubt_that_left_no_record_is_for_whoever_asked_to_find_out(wire: Wire) -> None:
    async with writing(wire.url) as writer:
        wire.break_at(COMMIT, after=True)
        with pytest.raises(AmbiguousCommit):
            await writer.submit("*", True, lock, "all")
    # The server goes on with it in its own time.
    await until(lambda: asked(wire.direct, "SELECT target FROM holdfast.halt") == [("all",)])


# -- others ------------------------------------------------------------------------------


@requirement("AUD-1")
async def test_a_lane_whose_place_in_the_chain_is_taken_looks_where_the_chain_ends(url: str) -> None:
    async with writing(url) as one, writing(url) as same_name:
        await one.submit("t", True, note, "one")
        await same_name.submit("t", True, note, "two")
        await one.submit("t", True, note, "three")
    rows = asked(url, "SELECT seq, call_id FROM holdfast.record ORDER BY seq")
    assert rows == [(1, "one"), (2, "two"), (3, "three")]


@requirement("IDM-4")
async def test_of_two_that_wait_for_each_other_both_are_written(url: str) -> None:
    runs, met = [0], asyncio.Barrier(2)

    async def both(transaction: Transaction, first: str, second: str) -> None:
        runs[0] += 1
        if runs[0] > 2:  # or it may take its first row again before the other one wakes, and they meet anew
            await asyncio.wait({jobs[second]})
        await transaction.run("UPDATE halt SET note = note || ? WHERE target = ?", (first, first))
        if runs[0] <= 2:
            await met.wait()
        await transaction.run("UPDATE halt SET note = note || ? WHERE target = ?", (first, second))
        transaction.record("t", first, "outcome", 1.0, "{}")

    async with writing(url, lanes=2) as writer:
        await writer.submit("*", True, lock, "a")
        await writer.submit("*", True, lock, "b")
        jobs = {"a": writer.submit("*", True, both, "a", "b"), "b": writer.submit("*", True, both, "b", "a")}
        await asyncio.gather(*jobs.values())
    assert runs == [3]
    rows = asked(url, "SELECT target, length(note) FROM holdfast.halt ORDER BY target")
    assert rows == [("a", 2), ("b", 2)]
    assert asked(url, "SELECT count(*) FROM holdfast.record") == [(2,)]


@requirement("IDM-4")
async def test_who_finds_its_row_taken_looks_again(url: str) -> None:
    seen: list[bool] = []

    async def look_and_lock(transaction: Transaction) -> str:
        found = await transaction.one("SELECT 1 FROM halt WHERE target = 'all'")
        seen.append(found is not None)
        if found is not None:
            return "taken"
        asked(url, "INSERT INTO holdfast.halt VALUES ('*', 'all', 'ben', '', 0)")
        await lock(transaction, "all")
        return "got it"

    async with writing(url) as writer:
        assert await writer.submit("*", True, look_and_lock) == "taken"
    assert seen == [False, True]


async def test_a_job_that_never_fits_is_given_up(url: str) -> None:
    runs: list[int] = []

    async def lock_again(transaction: Transaction) -> None:
        runs.append(1)
        await lock(transaction, "all")

    async with writing(url) as writer:
        await writer.submit("*", True, lock, "all")
        with pytest.raises(StoreError, match="did not take the write: duplicate key"):
            await writer.submit("*", True, lock_again)
    assert len(runs) == TRIES


@requirement("AUD-1")
async def test_a_job_that_breaks_takes_no_neighbour_with_it_and_leaves_no_trace(url: str) -> None:
    async def breaks(transaction: Transaction) -> None:
        transaction.record("t", "broken", "outcome", 1.0, "{}")
        await transaction.run("UPDATE nothing SET nobody = 1")

    async with writing(url) as writer:
        before = writer.submit("t", True, note, "before")
        broken = writer.submit("t", True, breaks)
        behind = writer.submit("t", True, note, "behind")
        with pytest.raises(StoreError, match="did not take the write"):
            await broken
        assert (await before, await behind) == ("before", "behind")
    rows = asked(url, "SELECT seq, call_id FROM holdfast.record ORDER BY seq")
    assert rows == [(1, "before"), (2, "behind")]


@requirement("AUD-5")
async def test_closing_writes_everything_that_was_submitted(url: str) -> None:
    async with writing(url, lanes=3) as writer:
        submitted = [writer.submit("t", True, note, f"n-{number}") for number in range(60)]
    assert all(future.done() for future in submitted)
    assert asked(url, "SELECT count(DISTINCT call_id) FROM holdfast.record") == [(60,)]
    with pytest.raises(StoreError, match="closed"):
        await writer.submit("t", True, note, "late")


async def test_a_job_that_nobody_waits_for_any_more_is_not_begun(url: str) -> None:
    async with writing(url) as writer:
        kept, unwanted = (writer.submit("t", True, note, name) for name in ("kept", "unwanted"))
        unwanted.cancel()
        await kept
    assert asked(url, "SELECT call_id FROM holdfast.record") == [("kept",)]


@requirement("AUT-6")
async def test_a_job_sees_the_rows_of_its_tenant_only(url: str) -> None:
    async def count(transaction: Transaction) -> object:
        return await transaction.all("SELECT tenant, call_id FROM record ORDER BY call_id")

    async with writing(url) as writer:
        for tenant in ("acme", "zeta"):
            await writer.submit(tenant, True, _note_of(tenant), tenant)
        assert await writer.submit("acme", True, count) == [("acme", "acme")]
        assert await writer.submit("zeta", True, count) == [("zeta", "zeta")]
        assert await writer.submit("'", True, count) == []
        with pytest.raises(StoreError, match="row-level security"):
            await writer.submit("acme", True, _note_of("zeta"), "smuggled")


def _note_of(tenant: str) -> Callable[[Transaction, str], Awaitable[None]]:
    async def note_it(transaction: Transaction, name: str) -> None:
        transaction.record(tenant, name, "outcome", 1.0, "{}")

    return note_it
