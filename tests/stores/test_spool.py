"""Do records that belong to no transaction arrive, each once, whoever dies on the way?"""

import asyncio
import os
import resource
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from holdfast.gateway.auditing import Auditing
from holdfast.model.contract import Contract
from holdfast.model.errors import StoreError
from holdfast.model.observation import Status
from holdfast.model.record import Record
from holdfast.model.stage import TakeRate
from holdfast.model.tool import Tool
from holdfast.ports import Begun, Denied
from holdfast.records.chain import first_fault
from holdfast.stores.sql import audit, sequencer
from holdfast.stores.sqlite import spool
from holdfast.stores.sqlite.log import opened
from holdfast.stores.sqlite.migrate import shipped
from holdfast.stores.sqlite.spool import Spool, Spools
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.sqlite.vessel import SqliteVessel, _take_in
from holdfast.stores.worker import LockedWorkers
from holdfast.system import SystemClock
from tests.requirements import requirement
from tests.stores.calls import LOOK, PAY, make_call, observed
from tests.stores.world import read_records, spooled

CLOCK = SystemClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(path, CLOCK, lock_s=0.2) as opened:
        yield opened


async def read(store: SqliteStore, times: int = 1) -> list[str]:
    """Reads from their beginning to their end; their names."""
    calls = [make_call(CLOCK, None, tool=LOOK) for _ in range(times)]
    begun = await asyncio.gather(*(store.ledger.begin(call) for call in calls))
    assert all(isinstance(one, Begun) for one in begun)
    await asyncio.gather(*(store.ledger.finish(call, observed(call), None) for call in calls))
    return [call.id for call in calls]


async def in_tree(store: SqliteStore) -> list[str]:
    found = await store.audit.since("default", 0.0, -1, 10_000)
    return [entry.record.call_id for entry in found if entry.record.kind in ("intent", "outcome")]


def spool_of(store: SqliteStore) -> Spool:
    found = store._writer.spool
    assert found is not None
    return found


def die(store: SqliteStore) -> None:
    """As a killed process does: nothing is folded, and the kernel frees its lock."""
    workers = store.ledger._workers
    assert isinstance(workers, LockedWorkers)
    assert workers._lock is not None
    os.close(workers._lock)
    workers._lock = None


async def left(path: Path, times: int) -> list[str]:
    """What a process read that was killed before it folded anything."""
    dead = SqliteStore(path, CLOCK)
    await dead.open()
    names = await read(dead, times)
    die(dead)
    return names


def files(path: Path) -> list[Path]:
    return sorted(path.with_name(f"{path.name}-workers").glob("*.records"))


# --- one process ------------------------------------------------------------------------------


@requirement("AUD-5")
async def test_a_read_is_on_the_disk_before_it_begins_and_before_it_is_answered(
    store: SqliteStore, path: Path
) -> None:
    call = make_call(CLOCK, None, tool=LOOK)
    await store.ledger.begin(call)
    assert [(one.call_id, one.kind) for one in spooled(path)] == [(call.id, "intent")]
    await store.ledger.finish(call, observed(call), None)
    assert [one.kind for one in spooled(path)] == ["intent", "outcome"]
    assert first_fault(spooled(path)) is None
    assert list(read_records(path)) == []


@requirement("AUD-1")
async def test_what_waits_comes_into_the_tree_once_and_its_file_goes(store: SqliteStore, path: Path) -> None:
    names = await read(store, 40)
    assert await store.audit.sequence() == 80
    assert await store.audit.sequence() == 0
    assert sorted(await in_tree(store)) == sorted(names * 2)
    assert files(path) == []
    more = await read(store)
    assert await store.audit.sequence() == 2
    assert (await in_tree(store))[-2:] == more * 2
    assert first_fault(read_records(path)) is None


@requirement("AUD-5")
async def test_a_refusal_is_written_down_and_a_question_to_people_is_committed(
    store: SqliteStore, path: Path
) -> None:
    refused, held = make_call(CLOCK, "k-1"), make_call(CLOCK, "k-2")
    await store.ledger.refuse(refused, observed(refused, Status.REFUSED), None)
    await store.ledger.refuse(held, observed(held, Status.HELD), None)
    assert [one.kind for one in spooled(path)] == ["refusal"]
    assert [one.kind for one in read_records(path)] == ["hold"]


@requirement("AUD-1")
async def test_closing_leaves_nothing_beside_the_database(path: Path) -> None:
    async with SqliteStore(path, CLOCK) as store:
        await read(store, 3)
    assert files(path) == []
    assert len(list(read_records(path))) == 6


@requirement("PPL-6")
async def test_many_records_are_folded_without_being_asked_for_and_file_by_file(
    store: SqliteStore, path: Path
) -> None:
    spool_of(store).recent.many, spool_of(store).segment = 64, 16 * 1024
    await read(store, 50)
    folding = store.audit._folding
    assert folding is not None
    await folding
    assert len(list(read_records(path))) >= 64
    await store.audit.sequence()
    assert len(list(read_records(path))) == 100
    assert files(path) == []


@requirement("AUD-1")
async def test_many_records_of_writes_come_into_the_tree_without_being_asked_for(store: SqliteStore) -> None:
    store._writer.recent.many = 8
    for number in range(9):
        assert isinstance(await store.ledger.begin(make_call(CLOCK, f"k{number}")), Begun)
    folding = store.audit._folding
    assert folding is not None
    await folding
    assert len(await in_tree(store)) >= 8


@requirement("PPL-6")
async def test_where_nothing_can_be_folded_records_go_the_ordinary_way(
    store: SqliteStore, path: Path
) -> None:
    spool_of(store).most = 1
    await read(store)  # the first still fits
    assert len(spooled(path)) == 1
    assert [one.kind for one in read_records(path)] == ["outcome"]
    await store.audit.sequence()
    assert len(await in_tree(store)) == 2


@requirement("AUD-5")
async def test_what_the_disk_did_not_take_is_told_and_leaves_no_trace(store: SqliteStore, path: Path) -> None:
    await read(store)
    [file] = files(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, hard))
    try:
        with pytest.raises(StoreError, match="did not take the write"):
            await store.ledger.begin(make_call(CLOCK, None, tool=LOOK))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await read(store)
    assert first_fault(spooled(path)) is None
    assert len(spooled(path)) == 4
    assert await store.audit.sequence() == 4


@requirement("AUD-5")
async def test_of_a_batch_that_fits_in_part_nothing_is_acknowledged_and_no_number_is_given_twice(
    store: SqliteStore, path: Path
) -> None:
    await read(store)
    [file] = files(path)
    size, line = file.stat().st_size, len(file.read_bytes().splitlines()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(2.5 * line), hard))
    try:
        begun = await asyncio.gather(
            *(store.ledger.begin(make_call(CLOCK, None, tool=LOOK)) for _ in range(4)), return_exceptions=True
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [type(one) for one in begun] == [Begun, StoreError, StoreError, StoreError]
    assert len(spooled(path)) == 4, "a neighbour may have seen what came through whole"
    await read(store)
    assert first_fault(spooled(path)) is None
    assert await store.audit.sequence() == 6


@requirement("AUD-5")
async def test_what_a_labelled_read_begins_is_where_it_will_end(store: SqliteStore, path: Path) -> None:
    said = LOOK.contract.model_dump()
    said["security"]["labels"] = ["pii"]
    call = make_call(CLOCK, None, tool=Tool.compile(Contract.model_validate(said)))
    assert call.tool.contract.labels
    await store.ledger.begin(call)
    assert spooled(path) == []
    assert [one.kind for one in read_records(path)] == ["intent"]


@requirement("AUD-5", "DEC-1")
async def test_one_that_cannot_be_written_takes_no_neighbour_with_it(store: SqliteStore, path: Path) -> None:
    good, bad = make_call(CLOCK, None, tool=LOOK), make_call(CLOCK, None, tool=LOOK)
    bad.id = "call_\ud800"  # half a character, which no bytes stand for
    begun = await asyncio.gather(
        store.ledger.begin(good), store.ledger.begin(bad), *[read(store)], return_exceptions=True
    )
    assert [type(one) for one in begun[:2]] == [Begun, StoreError]
    await read(store)
    await store.audit.sequence()
    assert len(await in_tree(store)) == 5
    assert first_fault(one for one in read_records(path) if one.writer.endswith("spool")) is None


@requirement("DEC-1")
async def test_a_read_given_up_while_it_gathers_takes_nothing(store: SqliteStore, path: Path) -> None:
    limited = make_call(CLOCK, None, tool=LOOK)
    limited.stage("limits", TakeRate("look", 10, 60.0))
    first = asyncio.create_task(store.ledger.begin(make_call(CLOCK, None, tool=LOOK)))
    given_up = asyncio.create_task(store.ledger.begin(limited))
    await asyncio.sleep(0)  # the first is written at once, the second waits for others
    given_up.cancel()
    assert isinstance(await first, Begun)
    await asyncio.wait([given_up])
    await read(store)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM rate").fetchone() == (0,)


@requirement("AUD-5")
async def test_an_outcome_with_an_alarm_is_committed_after_its_intent_is_safe(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between the two must not leave an outcome without its intent."""
    synced = list[tuple[list[str], list[str]]]()
    really = os.fdatasync

    def sync(file: int) -> None:
        really(file)
        synced.append(([one.kind for one in spooled(path)], [one.kind for one in read_records(path)]))

    monkeypatch.setattr(os, "fdatasync", sync)
    call = make_call(CLOCK, None, tool=LOOK)
    await store.ledger.begin(call)
    assert synced == []
    call.alarms.append("it speaks to the model")
    await store.ledger.finish(call, observed(call), None)
    assert synced == [(["intent"], [])]
    assert [one.kind for one in read_records(path)] == ["outcome", "security"]


@requirement("PPL-6")
async def test_whoever_comes_while_it_closes_is_answered(store: SqliteStore, path: Path) -> None:
    await read(store, 3)
    kinds = (("k-7", PAY), (None, LOOK), (None, LOOK))
    calls = [make_call(CLOCK, key, tool=tool) for key, tool in kinds]
    early = [asyncio.create_task(store.ledger.begin(call)) for call in calls]
    await asyncio.sleep(0)
    ending = asyncio.create_task(store._writer.close())
    while not store._writer._closed:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    late = [asyncio.create_task(store.ledger.begin(make_call(CLOCK, *kind))) for kind in (("k-8",), ("k-9",))]
    late += [asyncio.create_task(store.ledger.begin(make_call(CLOCK, None, tool=LOOK)))]
    async with asyncio.timeout(30):
        begun = await asyncio.gather(*early)
        told = await asyncio.gather(*late, return_exceptions=True)
        await ending
    assert {type(one) for one in begun} == {Begun}
    assert [str(one) for one in told] == ["the store is closed; open it again"] * 3
    kept = {one.call_id for one in [*read_records(path), *spooled(path)]}
    assert kept >= {call.id for call in calls}


# --- several processes ------------------------------------------------------------------------


@requirement("PPL-4", "LIF-6")
async def test_a_halt_of_another_process_is_obeyed_by_the_next_read(store: SqliteStore, path: Path) -> None:
    await read(store)
    async with SqliteStore(path, CLOCK) as theirs:
        await theirs.controls.halt("bank", "olga", "look out")
        assert isinstance(await store.ledger.begin(make_call(CLOCK, None, tool=LOOK)), Denied)
        await theirs.controls.resume("bank", "olga")
        await read(store)


@requirement("AUD-5", "AUD-1")
async def test_what_a_killed_process_left_is_taken_in_by_the_next(path: Path) -> None:
    dead = SqliteStore(path, CLOCK)
    await dead.open()
    names = await read(dead, 20)
    with opened(path) as log:
        assert len(list(log.waiting())) == 40
    die(dead)
    async with SqliteStore(path, CLOCK) as store:
        assert await store.audit.sequence() == 40
        assert sorted(await in_tree(store)) == sorted(names * 2)
        assert files(path) == []
        assert await store.audit.sequence() == 0
    with opened(path) as log:
        assert list(log.waiting()) == []


@requirement("AUD-1")
async def test_files_of_others_are_read_beside_the_event_loop(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await left(path, 5)
    readers, really = set[int](), spool._Read.read_on

    def read_on(self: spool._Read) -> None:
        readers.add(threading.get_ident())
        really(self)

    monkeypatch.setattr(spool._Read, "read_on", read_on)
    async with SqliteStore(path, CLOCK) as store:
        assert await store.audit.sequence() == 10
    assert readers
    assert threading.get_ident() not in readers


@requirement("PPL-5")
async def test_before_a_backup_everything_is_gathered_however_much_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await left(path, 20)
    monkeypatch.setattr(sequencer, "BATCH", 4)
    monkeypatch.setattr(audit, "ROUNDS", 2)
    async with SqliteStore(path, CLOCK) as store:
        await Auditing(store.audit, None, CLOCK).gather()
        assert sorted(await in_tree(store)) == sorted(names * 2)


@requirement("AUD-1")
async def test_a_living_neighbour_folds_its_own_unless_somebody_wants_to_see_everything(
    store: SqliteStore, path: Path
) -> None:
    async with SqliteStore(path, CLOCK) as theirs:
        names = await read(theirs, 2)
        assert await store.audit.sequence(others=False) == 0
        assert await store.audit.sequence() == 4
        names += await read(theirs)
        assert await theirs.audit.sequence() == 2  # its own head has moved meanwhile
        assert sorted(await in_tree(store)) == sorted(names * 2)
    assert first_fault(read_records(path)) is None


@requirement("PPL-6")
async def test_what_a_neighbour_folded_makes_room_again(store: SqliteStore, path: Path) -> None:
    spool_of(store).most = 1
    call = make_call(CLOCK, None, tool=LOOK)
    await store.ledger.begin(call)
    async with SqliteStore(path, CLOCK) as theirs:
        assert await theirs.audit.sequence() == 1
    await store.audit.sequence()
    assert files(path) == []
    await store.ledger.finish(call, observed(call), None)
    assert len(spooled(path)) == 1


@requirement("AUD-1")
async def test_two_that_fold_at_once_take_each_record_once(path: Path) -> None:
    names = await left(path, 300)
    async with SqliteStore(path, CLOCK) as one, SqliteStore(path, CLOCK) as other:
        await asyncio.gather(one.audit.sequence(), other.audit.sequence())
        await one.audit.sequence()
        assert sorted(await in_tree(one)) == sorted(names * 2)
    assert files(path) == []


@requirement("AUD-5")
async def test_what_was_cut_off_in_the_middle_was_never_acknowledged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await left(path, 2)
    [file] = files(path)
    file.write_bytes(file.read_bytes()[:-7])
    async with SqliteStore(path, CLOCK) as store:
        assert await store.audit.sequence() == 3
    assert "ends in the middle of a record" in caplog.text
    assert files(path) == []


# --- somebody else's hands --------------------------------------------------------------------

Change = Callable[[list[bytes]], list[bytes]]


@requirement("AUD-1")
@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], lines[1].replace(b"look", b"loot"), *lines[2:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], b"no record at all", *lines[2:]],
        lambda lines: [lines[0], b"[1, 2]", *lines[2:]],
    ],
    ids=["changed", "removed", "reordered", "garbage", "too short"],
)
async def test_a_file_that_was_touched_is_found_out_and_not_taken_into_the_tree(
    path: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    await left(path, 3)
    [file] = files(path)
    file.write_bytes(b"\n".join([*change(file.read_bytes().splitlines()), b""]))
    async with SqliteStore(path, CLOCK) as store:
        await store.audit.sequence()
        assert len(await in_tree(store)) == 1
        alarms = [one for one in read_records(path) if one.kind == "alarm"]
        assert len(alarms) == 1
        assert "run 'holdfast audit verify'" in caplog.text
        assert files(path) == [file], "what was found is kept"
        assert await store.audit.sequence() == 0, "and left alone"


@requirement("AUD-1")
@pytest.mark.parametrize("which", [0, 2], ids=["the first", "one in the middle"])
async def test_a_file_that_was_removed_is_found_out_and_the_others_are_kept(path: Path, which: int) -> None:
    dead = SqliteStore(path, CLOCK)
    await dead.open()
    spool_of(dead).segment = 1
    for _ in range(3):
        await read(dead)
    die(dead)
    left = files(path)
    assert len(left) == 6
    left.pop(which).unlink()
    async with SqliteStore(path, CLOCK) as store:
        await store.audit.sequence()
        await store.audit.sequence()
        assert len(await in_tree(store)) == which
        assert [one.kind for one in read_records(path) if one.kind == "alarm"] == ["alarm"]
    assert files(path) == left


@requirement("AUD-1")
async def test_who_looks_at_the_files_alone_sees_what_was_touched(path: Path) -> None:
    await left(path, 2)
    [file] = files(path)
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], *lines[2:], b""]))
    with opened(path) as log:
        assert first_fault(log.waiting()) is not None


# --- when the database is replaced ------------------------------------------------------------


async def replaced(path: Path) -> Path:
    """A new database in the place of the one that is there; where that is kept."""
    vessel = SqliteVessel(path)
    try:
        await vessel.build(max(shipped()))
        return Path(str(await vessel.launch(2)))
    finally:
        await vessel.abandon()


@requirement("PPL-5")
async def test_what_waits_goes_with_the_database_it_belongs_to(path: Path) -> None:
    dead = SqliteStore(path, CLOCK)
    await dead.open()
    await read(dead, 3)
    await dead.audit.sequence()
    await read(dead, 2)
    die(dead)
    await dead._writer.close()
    await dead._opened.aclose()
    kept = await replaced(path)
    assert files(path) == []
    assert len(list(read_records(kept))) == 10
    assert first_fault(read_records(kept)) is None
    with opened(kept) as log:
        assert len(list(log.waiting())) == 4
    async with SqliteStore(path, CLOCK) as store:
        assert await store.audit.sequence() == 0


@requirement("PPL-5")
async def test_a_restore_that_was_cut_short_leaves_a_store_that_goes_on(path: Path) -> None:
    names = await left(path, 2)
    [file] = files(path)
    waiting = file.read_bytes()
    _take_in(path)
    file.write_bytes(waiting)  # it was killed before they were dropped
    async with SqliteStore(path, CLOCK) as store:
        assert await store.audit.sequence() == 4
        assert sorted(await in_tree(store)) == sorted(names * 2)
        assert files(path) == []


@requirement("PPL-5")
async def test_what_waits_beside_a_file_that_is_no_database_is_put_aside_with_it(path: Path) -> None:
    dead = SqliteStore(path, CLOCK)
    await dead.open()
    await read(dead, 1)
    die(dead)
    [file] = files(path)
    waiting = file.read_bytes()
    await dead.close()
    file.write_bytes(waiting)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.write_bytes(b"no database any more")
    kept = await replaced(path)
    assert files(path) == []
    assert kept.with_name(f"{kept.name}-{file.name}").read_bytes() == waiting


# --- as a database ----------------------------------------------------------------------------


async def test_a_line_is_json_and_says_what_the_record_says(store: SqliteStore, path: Path) -> None:
    [name] = await read(store)
    [file] = files(path)
    first, second = (orjson.loads(line) for line in file.read_bytes().splitlines())
    assert (first[3], first[4], second[4]) == (name, "intent", "outcome")
    assert first[-1]["auth_decision"] == "ALLOW"
    held = Spools(file.parent)
    [writer] = held.writers()
    records = [Record(*row) for row in held.all(writer)]
    await store.audit.sequence()
    assert list(read_records(path)) == records


async def test_nobody_else_can_read_what_waits(store: SqliteStore, path: Path) -> None:
    await read(store)
    [file] = files(path)
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_store_without_lock_files_keeps_every_record_in_a_transaction(path: Path) -> None:
    class Alone:
        id = "w_alone"

        def alive(self, worker: str) -> bool:
            return worker == self.id

        def leads(self) -> bool:
            return True

    async with SqliteStore(path, CLOCK, workers=Alone()) as store:
        await read(store)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM record").fetchone() == (2,)
