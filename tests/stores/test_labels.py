"""Does a store keep what sessions have seen, with the outcome that told them, and let no claim miss it?"""

import asyncio

import pytest

from holdfast.model.call import Call, Principal
from holdfast.model.contract import Affordance, Contract, Identity, Security, Transactional
from holdfast.model.holders import Holders, holders
from holdfast.model.observation import Status
from holdfast.model.stage import SeenLabels
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import DataClass, Effect, State
from holdfast.ports import Begun, Relabelled, Settlement
from tests.requirements import requirement
from tests.stores.calls import ALICE, OTHER_TENANT, PAY, make_call, observed
from tests.stores.world import World

FILES = Tool.compile(
    Contract(
        identity=Identity(namespace="bank", name="files", version="1.0.0"),
        affordance=Affordance(description="reads files", input_schema={"type": "object"}),
        security=Security(data_class=DataClass.CONFIDENTIAL, labels=("files",)),
        transactional=Transactional(effect=Effect.READ_ONLY),
    )
)


def named(call: Call, session: str | None = "s", task: str | None = None) -> Call:
    call.proposal = call.proposal._replace(session=session, task=task)
    return call


def reading(world: World, session: str | None = "s", principal: Principal = ALICE) -> Call:
    return named(make_call(world.clock, None, tool=FILES, principal=principal, arguments={}), session)


def paying(world: World, key: str, seen: frozenset[str], session: str | None = "s") -> Call:
    call = named(make_call(world.clock, key, tool=PAY), session)
    call.staged.append(("policy", SeenLabels(holders(call.proposal), seen)))
    return call


async def tell(world: World, call: Call, status: Status = Status.DONE) -> None:
    assert isinstance(await world.ledger.begin(call), Begun)
    data = {"a": 1} if status is Status.DONE else None
    assert await world.ledger.finish(call, observed(call, status, data=data), None)


@requirement("OBS-6")
async def test_a_result_that_is_told_leaves_its_labels_with_its_holder(world: World) -> None:
    who = holders(reading(world).proposal)
    assert await world.labels.of(who) == frozenset()
    await tell(world, reading(world), Status.FAILED)
    assert await world.labels.of(who) == frozenset()
    await tell(world, reading(world))
    assert await world.labels.of(who) == {"confidential", "files"}
    assert [(one.holder, one.label) for one in await world.labels.list("default")] == [
        ("session:alice/s", "confidential"),
        ("session:alice/s", "files"),
    ]


@requirement("OBS-6", "LIF-6")
async def test_a_claim_that_was_judged_before_is_refused_and_writes_nothing(world: World) -> None:
    await tell(world, reading(world))
    late = paying(world, "k-1", frozenset())
    denied = await world.ledger.begin(late)
    assert isinstance(denied, Relabelled)
    assert await world.ledger.find(late.ref or pytest.fail("no key")) is None
    right = paying(world, "k-2", frozenset({"confidential", "files"}))
    assert isinstance(await world.ledger.begin(right), Begun)


@requirement("OBS-6", "AUT-6")
async def test_tenants_and_principals_share_no_labels(world: World) -> None:
    await tell(world, reading(world))
    for who in (OTHER_TENANT, Principal(user="bob", agent="bot")):
        assert await world.labels.of(holders(reading(world, principal=who).proposal)) == frozenset()
    assert await world.labels.list("acme") == []


@requirement("OBS-6")
async def test_a_write_that_ends_unknown_has_told_nothing(world: World) -> None:
    contract = FILES.contract.model_copy(
        update={"transactional": Transactional(effect=Effect.EPHEMERAL_WRITE)}
    )
    call = named(make_call(world.clock, "k", tool=Tool.compile(contract), arguments={}))
    await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    assert await world.labels.of(holders(call.proposal)) == frozenset()
    assert await world.ledger.finish(call, observed(call, data={"a": 1}), State.COMMITTED)
    assert await world.labels.of(holders(call.proposal)) == {"confidential", "files"}


@requirement("OBS-6", "IDM-5")
@pytest.mark.parametrize("session", ["s", None])
async def test_an_outcome_that_a_probe_finds_brings_its_labels_once_it_is_settled(
    world: World, session: str | None
) -> None:
    call = named(make_call(world.clock, "k"), session)
    await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    lost = await world.look(call)
    found = Settlement(state=State.COMMITTED, observation=b"{}", by="probe", labels=("files", "secret"))
    assert await world.ledger.settle(lost, found)
    assert await world.labels.of(holders(call.proposal)) == {"files", "confidential", "regulated", "secret"}
    kept = [(one.holder, one.call_id) for one in await world.labels.list("default")]
    assert kept == [(holder, call.id) for holder in holders(call.proposal).gaining for _ in found.labels]


@requirement("OBS-6", "IDM-5")
async def test_a_settlement_that_comes_too_late_brings_nothing(world: World) -> None:
    call = named(make_call(world.clock, "k"))
    await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    lost = await world.look(call)
    assert await world.settle(lost, State.NO_EFFECT)
    found = Settlement(state=State.COMMITTED, observation=b"{}", by="probe", labels=("files",))
    assert not await world.ledger.settle(lost, found)
    assert await world.labels.list("default") == []


@requirement("OBS-6")
async def test_a_fault_that_quotes_an_answer_brings_what_the_answer_would(world: World) -> None:
    call = reading(world)
    call.misfit = True
    await tell(world, call, Status.FAILED)
    assert await world.labels.of(holders(call.proposal)) == {"confidential", "files"}


@requirement("OBS-6")
async def test_a_label_is_lifted_once_and_kept_as_history(world: World) -> None:
    await tell(world, reading(world))
    name = ("default", "session:alice/s", "files")
    lifting = asyncio.ensure_future(world.labels.lift(*name, "olga", "a drill"))
    await world.clock.drive(lifting)
    assert lifting.result() == 1
    assert await world.labels.of(holders(reading(world).proposal)) == {"confidential"}
    assert await world.labels.lift(*name, "olga", "again") == 0
    await tell(world, reading(world))
    kept = [(one.label, one.lifted_by, one.note) for one in await world.labels.list("default")]
    assert kept == [("confidential", None, ""), ("files", "olga", "a drill"), ("files", None, "")]


@requirement("OBS-6")
async def test_whoever_names_nothing_has_seen_all_that_the_principal_has(world: World) -> None:
    await tell(world, reading(world, "one"))
    unnamed = Holders("default", ALICE.id, ())
    assert await world.labels.of(unnamed) == {"confidential", "files"}
    await tell(world, reading(world, None))
    elsewhere = holders(reading(world, "another").proposal)
    assert await world.labels.of(elsewhere) == {"confidential", "files"}


@requirement("OBS-6")
async def test_what_was_not_brought_again_for_long_is_dropped(world: World) -> None:
    await tell(world, reading(world))
    await world.clock.advance(100.0)
    await tell(world, reading(world, "new"))
    assert await world.labels.forget(world.clock.now() - 50.0) == 2
    assert {one.holder for one in await world.labels.list("default")} == {"session:alice/new"}
