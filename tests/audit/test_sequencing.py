"""Does every record get its place in the tree, once, whoever puts it there?"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import StoreError
from holdfast.model.vocabulary import State
from holdfast.records.chain import record_hash
from holdfast.records.merkle import Frontier, is_consistent, is_included, leaf_hash
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory import MemoryStore
from holdfast.stores.postgres.log import PostgresLog
from holdfast.stores.postgres.log import opened as in_postgres
from holdfast.stores.sql.sequencer import BATCH
from holdfast.stores.sqlite.log import SqliteLog
from holdfast.stores.sqlite.log import opened as in_sqlite
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, Durable, durable, place, rows, stored, url_of
from tests.stores.calls import OTHER_TENANT, make_call, observed
from tests.stores.world import ManualWorkers

CLOCK = ManualClock()
Store = Any
Process = Callable[..., AbstractAsyncContextManager[Durable]]
"""Opens the one store there is, as a process of its own would."""


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with place(request.param, tmp_path), stored(request.param, tmp_path, CLOCK) as kept:
        yield kept


@pytest.fixture(params=DURABLE)
async def kind(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with place(request.param, tmp_path) as kept:
        yield kept


@pytest.fixture
def process(kind: str, tmp_path: Path) -> Process:
    return partial(durable, kind, tmp_path, CLOCK)


async def run(store: Store, key: str, **more: Any) -> str:
    call = make_call(CLOCK, key, **more)
    begun = await store.ledger.begin(call)
    call.operation, call.id = begun.operation, begun.operation.call_id
    await store.ledger.finish(call, observed(call, data={"ok": True}), State.COMMITTED)
    return call.id


@requirement("AUD-1")
async def test_records_are_appended_once_in_the_order_they_were_written(store: Store) -> None:
    first = await run(store, "a")
    assert await store.audit.sequence() == 2
    assert await store.audit.sequence() == 0
    second = await run(store, "b")
    assert await store.audit.sequence() == 2
    entries = await store.audit.since("default", 0.0, -1, 10)
    assert [(e.leaf, e.record.call_id, e.record.kind) for e in entries] == [
        (0, first, "intent"),
        (1, first, "outcome"),
        (2, second, "intent"),
        (3, second, "outcome"),
    ]


@requirement("AUD-1")
async def test_every_record_is_proved_and_the_tree_only_grows(store: Store) -> None:
    heads = []
    for key in "abcdefg":
        await run(store, key)
        await store.audit.sequence()
        heads.append(await store.audit.head())
    size, root = heads[-1]
    for entry in await store.audit.since("default", 0.0, -1, 100):
        path = await store.audit.inclusion(entry.leaf, size)
        assert entry.record.hash == record_hash(*entry.record[:-1])
        assert is_included(leaf_hash(entry.record.hash), entry.leaf, size, path, root)
    for earlier, then in heads:
        proof = await store.audit.consistency(earlier, size)
        assert is_consistent(earlier, then, size, root, proof)


@requirement("AUT-6", "AUD-4")
async def test_a_tenant_sees_its_own_records_and_proves_them_among_others(store: Store) -> None:
    await run(store, "a")
    theirs = await run(store, "b", principal=OTHER_TENANT)
    await run(store, "c")
    await store.audit.sequence()
    size, root = await store.audit.head()
    mine = await store.audit.since("acme", 0.0, -1, 100)
    assert {entry.record.call_id for entry in mine} == {theirs}
    assert await store.audit.of_call("default", theirs, -1, 10) == []
    assert [e.leaf for e in await store.audit.of_call("acme", theirs, -1, 10)] == [2, 3]
    record = mine[0].record
    assert await store.audit.find("default", record.writer, record.seq) is None
    found = await store.audit.find("acme", record.writer, record.seq)
    assert found is not None
    path = await store.audit.inclusion(found.leaf, size)
    assert is_included(leaf_hash(found.record.hash), found.leaf, size, path, root)


@requirement("AUD-4")
async def test_records_are_listed_page_by_page_in_the_order_of_time(store: Store) -> None:
    for key in "abcde":
        await run(store, key)
        await CLOCK.advance(1.0)
    await store.audit.sequence()
    every = await store.audit.since("default", 0.0, -1, 100)
    seen: list[Any] = []
    while page := await store.audit.since("default", *_after(seen), 3):
        seen += page
    assert seen == list(every)
    late = await store.audit.since("default", every[6].record.at, -1, 100)
    assert late == every[6:]


def _after(seen: list[Any]) -> tuple[float, int]:
    return (seen[-1].record.at, seen[-1].leaf) if seen else (0.0, -1)


@requirement("AUD-4")
async def test_old_records_go_and_the_proofs_of_the_rest_still_hold(store: Store) -> None:
    await run(store, "old")
    theirs = await run(store, "b", principal=OTHER_TENANT)
    await CLOCK.advance(100.0)
    young = await run(store, "young")
    await store.audit.sequence()
    size, root = await store.audit.head()
    assert await store.audit.prune("default", CLOCK.now() - 50, 0) == 0  # nothing is behind a checkpoint
    assert await store.audit.prune("default", CLOCK.now() - 50, size) == 2
    assert await store.audit.prune("default", CLOCK.now() - 50, size) == 0
    left = await store.audit.since("default", 0.0, -1, 100)
    assert {entry.record.call_id for entry in left} == {young}
    assert len(await store.audit.of_call("acme", theirs, -1, 10)) == 2
    for entry in left:
        path = await store.audit.inclusion(entry.leaf, size)
        assert is_included(leaf_hash(entry.record.hash), entry.leaf, size, path, root)
    await store.audit.sequence()
    (told,) = [
        e.record for e in await store.audit.since("default", 0.0, -1, 100) if e.record.kind == "control"
    ]
    assert '"operation":"prune"' in told.body
    assert '"through":1' in told.body


@requirement("CON-6", "AUD-4")
async def test_an_erased_tenant_cannot_be_read_any_more_and_its_proofs_hold(store: Store) -> None:
    mine = await run(store, "a")
    theirs = await run(store, "b", principal=OTHER_TENANT)
    await store.audit.sequence()
    size, root = await store.audit.head()
    committed = store.secrets.commitment("acme", b"data")
    assert await store.audit.erase("acme", "olga")
    assert not await store.audit.erase("nobody", "olga")
    found = await store.ledger.find_call("acme", theirs)
    assert found is not None
    if not isinstance(store, MemoryStore):  # in memory nothing is sealed
        assert (found.payload, found.observation) == (None, None)
    kept = await store.ledger.find_call("default", mine)
    assert kept is not None
    assert kept.payload is not None
    assert store.secrets.commitment("acme", b"data") != committed  # nobody can try values against it
    for entry in await store.audit.of_call("acme", theirs, -1, 10):
        path = await store.audit.inclusion(entry.leaf, size)
        assert is_included(leaf_hash(entry.record.hash), entry.leaf, size, path, root)
    await store.audit.sequence()
    told = [e.record.body for e in await store.audit.since("acme", 0.0, -1, 10) if e.record.kind == "control"]
    assert '"operation":"erase","caller":"olga"' in told[0]


@requirement("CON-6", "AUD-4")
async def test_an_erasure_is_noticed_by_every_process(process: Process) -> None:
    async with process() as one, process() as other:
        sealed = one.secrets.seal("acme", b"words")
        assert other.secrets.unseal("acme", sealed) == b"words"
        await one.audit.erase("acme", "olga")
        await other.audit.notice_erasures()
        for store in (one, other):
            with pytest.raises(StoreError, match="its key is gone"):
                store.secrets.unseal("acme", sealed)
        again = one.secrets.seal("acme", b"new words")  # the tenant may go on, with a key of its own
        await other.audit.notice_erasures()
        assert other.secrets.unseal("acme", again) == b"new words"


@requirement("CON-6")
async def test_nothing_of_an_erased_key_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    async with SqliteStore(path, CLOCK) as store:
        await run(store, "b", principal=OTHER_TENANT)
        with closing(sqlite3.connect(path)) as connection:
            (wrapped,) = connection.execute("SELECT wrapped FROM tenant_key WHERE tenant = 'acme'").fetchone()
        await store.audit.erase("acme", "olga")
        left = [
            file.name
            for file in tmp_path.glob("holdfast.db*")
            if file.is_file() and wrapped in file.read_bytes()
        ]
    assert left == []


@requirement("CON-6")
def test_commitments_are_made_with_a_key_that_can_be_erased() -> None:
    keyring = Keyring()
    before = keyring.commitment("acme", b"4111")
    assert keyring.commitment("acme", b"4111") == before
    keyring._tenant_keys.pop("acme")  # type: ignore[attr-defined]
    keyring.forget_but({})
    assert keyring.commitment("acme", b"4111") != before


@requirement("AUD-1", "PPL-6")
async def test_several_processes_build_one_tree(process: Process, kind: str, tmp_path: Path) -> None:
    async with process() as one, process() as two, process() as three:
        stores = (one, two, three)
        await asyncio.gather(
            *(run(store, f"{n}-{k}") for n, store in enumerate(stores) for k in range(20)),
            *(store.audit.sequence() for store in stores * 5),
        )
        await asyncio.gather(*(store.audit.sequence() for store in stores))
        size, root = await one.audit.head()
    frontier, heads = Frontier(), dict[str, int]()
    with log_of(kind, tmp_path) as log:
        for leaf in log.leaves():
            frontier.append(leaf_hash(leaf.hash))
            assert leaf.seq == heads.get(leaf.writer, 0) + 1
            heads[leaf.writer] = leaf.seq
    assert (frontier.size, frontier.root()) == (size, root)
    assert size == 120


def log_of(kind: str, folder: Path) -> AbstractContextManager[SqliteLog | PostgresLog]:
    if kind == "postgres":
        return in_postgres(url_of(kind, folder))
    return in_sqlite(folder / "ledger.db")


@requirement("AUD-1")
async def test_a_long_backlog_is_taken_in_batches(process: Process) -> None:
    async with process() as store:
        await asyncio.gather(*(store.audit.note("default", "try", "olga") for _ in range(BATCH + 10)))
        assert await store.audit.sequence() == BATCH + 10
        assert (await store.audit.head())[0] == BATCH + 10


@requirement("AUD-1")
@pytest.mark.parametrize(
    ("touch", "fault"),
    [
        ("DELETE FROM {}record WHERE seq = 3", "record 3 of writer '{}' is missing"),
        ("UPDATE {}record SET body = '' WHERE seq = 3", "record 3 of writer '{}' was changed"),
        ("UPDATE {}record SET prev = hash WHERE seq = 3", "does not follow the one before it"),
    ],
)
async def test_a_broken_chain_is_not_taken_further_and_everybody_is_told(
    process: Process, kind: str, tmp_path: Path, touch: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with process(workers=ManualWorkers("w_broken")) as store:
        await run(store, "a")
        await store.audit.sequence()
        await run(store, "b")
    rows(kind, tmp_path, touch)
    async with process(workers=ManualWorkers("w_other")) as store:
        await store.audit.sequence()
        await run(store, "c")
        await store.audit.sequence()
        entries = await store.audit.since("default", 0.0, -1, 100)
        alarms = await store.audit.since("*", 0.0, -1, 100)
    broken, other = {"sqlite": ("w_broken", "w_other"), "postgres": ("w_broken.0", "w_other.0")}[kind]
    fault = fault.format(broken)
    assert [e.record.writer for e in entries] == [broken] * 2 + [other] * 2
    assert [e.record.kind for e in alarms] == ["alarm"]
    assert fault in alarms[0].record.body
    assert fault in caplog.text


@requirement("AUD-1")
@pytest.mark.parametrize(
    "touch",
    [
        "DELETE FROM {}record WHERE seq = 2",
        "UPDATE {}record SET tenant = 'acme' WHERE seq = 2",
        "UPDATE {}record SET call_id = 'other' WHERE seq = 2",
        "UPDATE {}record SET kind = 'control' WHERE seq = 2",
        "UPDATE {}record SET at = at + 0.000001 WHERE seq = 2",
        "UPDATE {}record SET body = body || ' ' WHERE seq = 2",
        "UPDATE {}record SET prev = hash WHERE seq = 2",
        "UPDATE {}record SET hash = prev WHERE seq = 2",
    ],
)
async def test_a_process_does_not_take_its_own_records_on_trust(
    process: Process, kind: str, tmp_path: Path, touch: str
) -> None:
    async with process() as store:
        await run(store, "a")
        await run(store, "b")
        rows(kind, tmp_path, touch)
        await store.audit.sequence()
        entries = await store.audit.since("default", 0.0, -1, 100)
    assert [entry.record.seq for entry in entries] == [1]
    [(fault,)] = rows(kind, tmp_path, "SELECT fault FROM {}chain_head")
    assert fault.startswith("record 2 of writer")


@requirement("AUD-1")
async def test_a_process_goes_on_where_another_has_put_its_records_into_the_tree(process: Process) -> None:
    async with process() as one, process() as two:
        for first, second in [(one, two), (two, one), (two, two), (one, one)] * 2:
            await run(first, f"{id(first)}-{(await one.audit.head())[0]}")
            await run(second, f"{id(second)}-{(await one.audit.head())[0]}-again")
            assert await first.audit.sequence() == 4
            assert await second.audit.sequence() == 0
        assert (await one.audit.head())[0] == 32


@requirement("AUD-1")
async def test_dead_writers_are_not_asked_after_for_ever(process: Process, kind: str, tmp_path: Path) -> None:
    around = ManualWorkers()
    for name in ("w_1", "w_2", "w_3"):
        async with process(workers=ManualWorkers(name)) as store:
            await store.audit.note("default", "try", "olga")
        around.dead |= {name, f"{name}.0"}
    async with process(workers=around) as store:
        await store.audit.sequence()
    assert rows(kind, tmp_path, "SELECT count(*) FROM {}chain_head WHERE open = 1") == [(0,)]
