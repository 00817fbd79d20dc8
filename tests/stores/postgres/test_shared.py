"""What is one thing, when several processes have the same database open?"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Taken
from holdfast.records.chain import Record, first_fault
from holdfast.records.merkle import is_consistent
from holdfast.stores.keyring import Keyring, root_secret
from holdfast.stores.postgres import store as opening
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.postgres.tenant_keys import PostgresTenantKeys
from holdfast.system import SystemClock
from tests.polling import until
from tests.postgres import ROLE, server
from tests.requirements import requirement
from tests.stored import asked
from tests.stores.calls import make_call, observed
from tests.stores.postgres.wire import Wire

CLOCK = SystemClock()
HEARTBEAT_S = 0.05

Stores = tuple[PostgresStore, PostgresStore]


def process(url: str, folder: Path) -> PostgresStore:
    keys = partial(root_secret, folder / "keys")
    return PostgresStore(url, keys, CLOCK, heartbeat_s=HEARTBEAT_S)


@pytest.fixture
async def stores(url: str, tmp_path: Path) -> AsyncIterator[Stores]:
    async with process(url, tmp_path) as one, process(url, tmp_path) as two:
        yield one, two


def leading(stores: Stores) -> list[bool]:
    return [store.ledger._workers.leads() for store in stores]


async def until_led(stores: Stores) -> list[bool]:
    """Who leads, once everybody has heard of everybody."""
    await until(lambda: sum(leading(stores)) == 1)
    return leading(stores)


@requirement("IDM-4")
@pytest.mark.parametrize("round_", range(3))
async def test_of_many_claims_of_one_key_in_two_processes_one_is_granted(stores: Stores, round_: int) -> None:
    calls = [make_call(CLOCK, "k-1") for _ in range(20)]
    answers = await asyncio.gather(
        *(stores[number % 2].ledger.begin(call) for number, call in enumerate(calls))
    )
    [won] = [answer for answer in answers if isinstance(answer, Begun)]
    lost = [answer.operation for answer in answers if isinstance(answer, Taken)]
    assert len(lost) == 19
    assert won.operation is not None
    assert {operation.nonce for operation in lost} == {won.operation.nonce}


@requirement("IDM-4", "AUD-1")
async def test_many_claims_and_outcomes_from_two_processes_are_each_written_once(
    stores: Stores, url: str
) -> None:
    async def run(number: int) -> None:
        store, call = stores[number % 2], make_call(CLOCK, f"k-{number}")
        begun = await store.ledger.begin(call)
        assert isinstance(begun, Begun)
        call.operation = begun.operation
        assert await store.ledger.finish(call, observed(call, data={"n": number}), State.COMMITTED)

    await asyncio.gather(*(run(number) for number in range(60)))
    states = asked(url, "SELECT state, epoch, count(*) FROM holdfast.operation GROUP BY state, epoch")
    assert states == [("committed", 1, 60)]
    rows = [Record(*row) for row in asked(url, "SELECT * FROM holdfast.record ORDER BY writer, seq")]
    assert sorted(row.kind for row in rows) == ["intent"] * 60 + ["outcome"] * 60
    for writer in {row.writer for row in rows}:
        assert first_fault(row for row in rows if row.writer == writer) is None


@requirement("IDM-5", "PPL-4")
async def test_one_of_the_processes_sweeps_and_the_other_takes_over_when_it_is_gone(
    url: str, tmp_path: Path
) -> None:
    first, second = process(url, tmp_path), process(url, tmp_path)
    await first.open()
    await second.open()
    led = await until_led((first, second))
    leader, other = (first, second) if led[0] else (second, first)
    assert not other.ledger._workers.leads()
    assert await other.ledger.overdue(10) == ()
    await leader.close()
    await until(other.ledger._workers.leads)
    await other.close()


@requirement("IDM-5", "IDM-8")
async def test_what_a_process_left_behind_is_found_once_it_is_known_to_be_gone(
    url: str, tmp_path: Path
) -> None:
    async with process(url, tmp_path) as survivor:
        gone = process(url, tmp_path)
        await gone.open()
        begun = await gone.ledger.begin(make_call(CLOCK, "k-1", seconds=600.0))
        assert isinstance(begun, Begun)
        assert await survivor.ledger.overdue(10) in ((), [])
        await gone.close()
        owner = begun.operation.owner if begun.operation is not None else ""
        await until(lambda: not survivor.ledger._workers.alive(owner) and survivor.ledger._workers.leads())
        found = await survivor.ledger.overdue(10)
    assert [operation.ref.key for operation in found] == ["k-1"]
    assert found[0].orphaned


@requirement("AUD-1", "PPL-4")
async def test_sequencing_from_both_at_once_grows_one_tree(stores: Stores) -> None:
    heads = [await stores[0].audit.head()]
    for round_ in range(5):
        await asyncio.gather(
            *(store.audit.note("acme", f"note-{round_}", "olga") for store in stores for _ in range(5)),
            *(store.audit.sequence() for store in stores for _ in range(3)),
        )
        await asyncio.gather(*(store.audit.sequence() for store in stores))
        seen = [await store.audit.head() for store in stores]
        assert seen[0] == seen[1]
        heads.append(seen[0])
    size, root = heads[-1]
    assert size == 50
    for earlier, then in heads[1:]:
        assert is_consistent(earlier, then, size, root, await stores[1].audit.consistency(earlier, size))


@requirement("CON-6")
async def test_processes_that_seal_for_a_new_tenant_at_once_agree_on_its_key(url: str) -> None:
    root = os.urandom(32)
    kept = [await asyncio.to_thread(PostgresTenantKeys, url) for _ in range(4)]
    rings = [Keyring(root, keys) for keys in kept]
    sealed = await asyncio.gather(*(asyncio.to_thread(ring.seal, "acme", b"words") for ring in rings))
    assert {ring.unseal("acme", one) for ring in rings for one in sealed} == {b"words"}
    assert len({keys.find("acme") for keys in kept}) == 1
    assert kept[0].find("nobody") is None
    for keys in kept:
        await asyncio.to_thread(keys.close)


@requirement("CON-6")
def test_a_key_is_asked_for_again_after_the_connection_was_lost(wire: Wire) -> None:
    keys = PostgresTenantKeys(wire.url)
    kept = keys.keep("acme", b"wrapped")
    wire.break_at(b"acme", after=False)
    with pytest.raises(StoreError, match="the key of tenant 'acme' cannot be read"):
        keys.find("acme")
    assert keys.find("acme") == kept
    keys.close()


# -- opening -----------------------------------------------------------------------------


@requirement("AUT-6")
@pytest.mark.parametrize(("role", "warned"), [("postgres", True), (ROLE, False)])
async def test_a_role_that_sees_every_tenant_is_warned_about(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, role: str, warned: bool
) -> None:
    name = url.rpartition("?")[0].rpartition("/")[2]
    async with process(server().url_of(name, role), tmp_path):
        pass
    assert ("bypasses row-level security" in caplog.text) is warned


@requirement("DEC-1")
async def test_a_server_that_is_away_at_the_start_is_waited_for_and_then_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_S", 0.3)
    nowhere = f"postgresql://{ROLE}@/holdfast?host={tmp_path}"
    with pytest.raises(StoreError, match=r"the database was not to be had for 0\.3 s"):
        await process(nowhere, tmp_path).open()


async def test_a_database_that_is_not_there_is_told_of_at_once(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match='cannot be opened: database "nothing" does not exist'):
        await process(server().url_of("nothing"), tmp_path).open()


@requirement("CON-6")
async def test_a_process_with_another_root_key_does_not_start(url: str, tmp_path: Path) -> None:
    async with process(url, tmp_path):
        pass
    (tmp_path / "other").mkdir()
    with pytest.raises(StoreError, match="key"):
        await process(url, tmp_path / "other").open()


WITHOUT_DRIVER = """
import sys
sys.modules["asyncpg"] = None
from holdfast.config import parse
from holdfast.gateway.storing import store_of
from holdfast.model.errors import ConfigError
from holdfast.system import SystemClock
from pathlib import Path
try:
    store_of(parse({"store": "postgresql://db/holdfast"}, folder=Path(".")), SystemClock())
except ConfigError as error:
    print(error)
store_of(parse({}, folder=Path(".")), SystemClock())
print("sqlite")
"""


def test_without_the_driver_it_says_what_to_install_and_sqlite_needs_none(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.splitlines()
    assert said == [
        "store: PostgreSQL needs the driver 'asyncpg'; install 'holdfast[postgres]'",
        "sqlite",
    ]
