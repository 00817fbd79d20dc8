"""Are jobs that are written together each written as if they were alone?"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg
import pytest

from holdfast.model.call import Call
from holdfast.model.errors import StoreError
from holdfast.model.stage import PolicyVersion
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Taken
from holdfast.records.chain import Record, first_fault
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.store import OneBoot
from holdfast.stores.postgres.reader import PostgresReader
from holdfast.stores.postgres.writer import PostgresWriter
from holdfast.stores.sql.ledger import SqlLedger
from holdfast.stores.watch import Watch
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import asked
from tests.stores.calls import LOOK, OTHER_TENANT, make_call, observed
from tests.stores.postgres.wire import Wire
from tests.stores.world import ManualWorkers, ref_of

CLOCK = ManualClock()
MANY = 12
ANOTHER = """
INSERT INTO holdfast.operation SELECT (made).* FROM (
  SELECT jsonb_populate_record(o, '{"key": "many-2", "call_id": "theirs"}') AS made FROM holdfast.operation o
  WHERE key = 'first-0') theirs
"""


@asynccontextmanager
async def ledger(url: str, lanes: int = 1) -> AsyncIterator[SqlLedger]:
    """A lane that has begun its chain: from then on there is a short way."""
    reader, writer = PostgresReader(url), PostgresWriter(url, "w_test", lanes)
    try:
        store = SqlLedger(writer, reader, Keyring(), CLOCK, OneBoot(CLOCK), ManualWorkers(), Watch(CLOCK))
        for number in range(lanes):
            await store.begin(make_call(CLOCK, f"first-{number}"))
        yield store
    finally:
        await writer.close()
        await reader.close()


def calls(count: int = MANY, name: str = "many") -> list[Call]:
    return [make_call(CLOCK, f"{name}-{number}") for number in range(count)]


async def begun(store: SqlLedger, made: Sequence[Call]) -> list[Begun | Taken | Denied]:
    """All of them are asked for before any is looked at."""
    return await asyncio.gather(*(store.begin(call) for call in made))


async def finished(store: SqlLedger, made: Sequence[Call]) -> list[bool]:
    return await asyncio.gather(
        *(store.finish(call, observed(call, data={"ok": True}), State.COMMITTED) for call in made)
    )


def took(made: Sequence[Call], answers: Sequence[object]) -> list[Call]:
    """Those that may act, with the operation that is theirs."""
    found = []
    for call, answer in zip(made, answers, strict=True):
        if isinstance(answer, Begun):
            assert answer.operation is not None
            assert answer.operation.nonce == call.nonce
            call.operation = answer.operation
            found.append(call)
    return found


def operations(url: str, what: str = "key, call_id, state") -> list[tuple[object, ...]]:
    return asked(url, f"SELECT {what} FROM holdfast.operation WHERE key LIKE 'many-%' ORDER BY key")


def records(url: str) -> list[Record]:
    """What the log says of them; every chain is without fault."""
    found = [Record(*row) for row in asked(url, "SELECT * FROM holdfast.record ORDER BY writer, seq")]
    for writer in {record.writer for record in found}:
        assert first_fault(record for record in found if record.writer == writer) is None
    return found


def said_of(url: str, made: Sequence[Call]) -> list[tuple[str, str]]:
    wanted = {call.id for call in made}
    return sorted((r.call_id, r.kind) for r in records(url) if r.call_id in wanted)


@requirement("IDM-4", "AUD-5")
async def test_claims_and_outcomes_that_wait_together_are_one_transaction_each(url: str) -> None:
    made = calls()
    async with ledger(url) as store:
        assert took(made, await begun(store, made)) == made
        assert len(set(operations(url, "xmin::text"))) == 1
        assert all(await finished(store, made))
        assert len(set(operations(url, "xmin::text"))) == 1
    assert operations(url) == sorted((call.key, call.id, "committed") for call in made)
    assert said_of(url, made) == sorted((c.id, kind) for c in made for kind in ("intent", "outcome"))


@requirement("IDM-1", "IDM-4")
async def test_whose_key_is_taken_is_told_so_and_its_neighbours_act(url: str) -> None:
    made = calls()
    async with ledger(url) as store:
        taken = [make_call(CLOCK, f"many-{number}") for number in (3, 7, 8)]
        assert took(taken, await begun(store, taken)) == taken
        answers = await begun(store, made)
        late = [number for number, answer in enumerate(answers) if isinstance(answer, Taken)]
        assert late == [3, 7, 8]
        acting = took(made, answers)
        assert len(acting) == MANY - 3
    assert said_of(url, made) == sorted((call.id, "intent") for call in acting)


@requirement("IDM-1")
async def test_of_many_with_one_key_one_acts(url: str) -> None:
    made = [make_call(CLOCK, "many-same") for _ in range(MANY)]
    async with ledger(url, lanes=3) as store:
        answers = await begun(store, made)
    assert len(took(made, answers)) == 1
    assert sum(isinstance(answer, Taken) for answer in answers) == MANY - 1


@requirement("IDM-5")
async def test_an_outcome_that_comes_too_late_is_recorded_as_late_and_its_neighbours_are_taken(
    url: str,
) -> None:
    made = calls()
    async with ledger(url) as store:
        took(made, await begun(store, made))
        assert await store.finish(made[4], observed(made[4]), State.COMMITTED)
        answers = await finished(store, made)
    assert [number for number, taken in enumerate(answers) if not taken] == [4]
    again = [(made[4].id, kind) for kind in ("intent", "late", "outcome")]
    rest = [(c.id, kind) for c in made if c is not made[4] for kind in ("intent", "outcome")]
    assert said_of(url, made) == sorted(again + rest)


@requirement("PPL-4")
async def test_a_halted_call_is_refused_and_its_neighbours_act(url: str) -> None:
    made = [make_call(CLOCK, f"many-{n}", principal=OTHER_TENANT) for n in range(2)]
    reads = [make_call(CLOCK, None, tool=LOOK, principal=OTHER_TENANT) for _ in range(4)]
    asked(url, "INSERT INTO holdfast.halt VALUES ('*', 'bank.pay', 'olga', 'stop', 0)")
    async with ledger(url) as store:
        answers = await begun(store, [*made, *reads])
    assert [type(answer) for answer in answers] == [Denied] * 2 + [Begun] * 4


@requirement("POL-1")
async def test_a_call_judged_by_old_policies_is_refused_and_its_neighbours_act(url: str) -> None:
    judged = [("policy", PolicyVersion(promoted=None))]
    made = [make_call(CLOCK, f"many-{number}", stage=judged) for number in range(4)]
    made[2].staged = [("policy", PolicyVersion(promoted="old"))]
    async with ledger(url) as store:
        answers = await begun(store, made)
    assert took(made, answers) == [made[0], made[1], made[3]]
    assert isinstance(answers[2], Denied)


@requirement("AUT-6")
async def test_what_is_written_together_is_of_one_tenant(url: str) -> None:
    made = calls(6)
    theirs = [make_call(CLOCK, f"many-{n}", principal=OTHER_TENANT) for n in range(6)]
    mixed = [call for pair in zip(made, theirs, strict=True) for call in pair]
    async with ledger(url) as store:
        assert took(mixed, await begun(store, mixed)) == mixed
        assert all(await finished(store, mixed))
    rows = operations(url, "tenant, call_id")
    assert sorted(rows) == sorted((call.principal.tenant, call.id) for call in mixed)
    assert {(r.tenant, r.call_id) for r in records(url)} >= set(rows)


@requirement("IDM-4")
async def test_nobody_waits_for_whom_a_neighbour_waits(url: str) -> None:
    """Somebody else is about to take one of the keys, and is in no hurry."""
    made = calls()
    async with ledger(url, lanes=2) as store:
        other = await asyncpg.connect(url)
        try:
            await other.execute("SET holdfast.tenant = '*'; BEGIN")
            await other.execute(ANOTHER)
            asking = [asyncio.ensure_future(store.begin(call)) for call in made]
            stuck = asking.pop(2)
            acting = [call for call in made if call is not made[2]]
            assert took(acting, await asyncio.gather(*asking)) == acting
            assert not stuck.done()
            await other.execute("COMMIT")
            assert isinstance(await stuck, Taken)
        finally:
            await other.close()


@requirement("IDM-4", "AUD-5")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_many_whose_connection_breaks_are_each_written_once(wire: Wire, after: bool) -> None:
    made = calls()
    async with ledger(wire.url) as store:
        wire.break_at(b"many-5", after=after)
        assert took(made, await begun(store, made)) == made
        assert wire.broke
        wire.break_at(b"many-5", after=after)
        assert all(await finished(store, made))
        assert wire.broke
        for call in made:
            found = await store.find(ref_of(call))
            assert found is not None
            assert (found.state, found.epoch, found.nonce) == (State.COMMITTED, 1, call.nonce)
    assert said_of(wire.direct, made) == sorted((c.id, kind) for c in made for kind in ("intent", "outcome"))


@requirement("IDM-4")
async def test_one_that_cannot_be_stored_fails_alone(url: str) -> None:
    made = calls(4)
    made[1].trace_id = "no text of a database: \0"
    async with ledger(url) as store:
        answers = await asyncio.gather(*(store.begin(call) for call in made), return_exceptions=True)
    assert isinstance(answers[1], StoreError)
    assert [type(answer) for number, answer in enumerate(answers) if number != 1] == [Begun] * 3
