"""Is what the gates staged written with the claim, or not at all?"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.approval import Approval
from holdfast.model.call import Principal
from holdfast.model.errors import Code
from holdfast.model.limits import Amount, Bucket, Kind, Limit, Per
from holdfast.model.stage import ReserveBudget, Stage, TakeRate, UseGrant, UseRule
from holdfast.model.standing import Rule
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied
from tests.requirements import requirement
from tests.stored import ALL, place, rows, stored
from tests.stores.calls import BOB, LOOK, OTHER_TENANT, PAY_2, make_call, observed
from tests.stores.world import Surroundings, World, ref_of


async def is_used(world: World, granted: Approval) -> bool:
    found = await world.approvals.get(granted.ref.tenant, granted.id)
    assert found is not None
    return found.used


RULE = Rule(
    tenant="default",
    id="rul_1",
    tool="bank.pay",
    upstream="bank",
    contract_digest="d",
    principals="*/*",
    arguments={},
    need={"operator": 1},
    made_by="olga",
    note="",
    at=0.0,
    expires_at=0.0,
    approval_id="",
)
RATE = ("limits", TakeRate("tool:pay", 5, 10.0))


@requirement("DEC-1")
async def test_a_rate_gives_exactly_what_it_promises(world: World) -> None:
    async def proposed(count: int, prefix: str) -> list[Denied]:
        calls = [make_call(world.clock, f"{prefix}{n}", stage=[RATE]) for n in range(count)]
        answers = await asyncio.gather(*map(world.ledger.begin, calls))
        return [answer for answer in answers if isinstance(answer, Denied)]

    denied = await proposed(20, "a")
    assert len(denied) == 15
    assert {(d.gate, d.code, d.retry_after_ms) for d in denied} == {("limits", Code.RATE_LIMITED, 2000)}
    await world.clock.advance(2.0)  # one interval
    assert len(await proposed(5, "b")) == 4
    await world.clock.advance(10.0)
    assert len(await proposed(5, "c")) == 0


@requirement("DEC-1")
async def test_a_peek_takes_nothing_and_says_how_long(world: World) -> None:
    call = make_call(world.clock, tool=LOOK, stage=[RATE])

    async def peek() -> int | None:
        return await world.ledger.peek_rate(call, "tool:pay", 5, 10.0)

    for _ in range(9):
        assert await peek() is None
    for _ in range(5):
        assert isinstance(await world.ledger.begin(call), Begun)
    assert await peek() == 2000
    await world.clock.advance(1.5)
    assert await peek() == 500


@requirement("IDM-8")
async def test_a_clock_set_back_shuts_no_bucket(world: World) -> None:
    call = make_call(world.clock, tool=LOOK, stage=[RATE])

    async def taken(tries: int) -> int:
        return [type(await world.ledger.begin(call)) for _ in range(tries)].count(Begun)

    assert await taken(7) == 5
    world.clock.jump(-3.0)  # a little: at most that much longer
    assert await world.ledger.peek_rate(call, "tool:pay", 5, 10.0) == 5000
    world.clock.jump(-86_400.0)
    assert await taken(7) == 5
    await world.clock.advance(2.0)
    assert await taken(7) == 1


@requirement("AUT-6")
async def test_tenants_share_no_bucket(world: World) -> None:
    for _ in range(5):
        await world.ledger.begin(make_call(world.clock, tool=LOOK, stage=[RATE]))
    theirs = make_call(world.clock, tool=LOOK, stage=[RATE], principal=OTHER_TENANT)
    assert isinstance(await world.ledger.begin(theirs), Begun)


@requirement("DEC-1")
async def test_a_staged_write_that_fails_undoes_the_claim_and_every_other_write(world: World) -> None:
    call = make_call(world.clock, stage=[RATE, ("approval", UseGrant("apr_none"))])
    denied = await world.refused(call)
    assert (denied.gate, denied.code) == ("approval", Code.APPROVAL_DENIED)
    assert await world.ledger.find(ref_of(call)) is None
    assert world.kinds() == []
    for n in range(5):  # the rate is untouched
        await world.claim(make_call(world.clock, f"k{n}", stage=[RATE]))


@requirement("DEC-1")
async def test_a_failing_job_does_not_disturb_its_neighbours_in_the_batch(world: World) -> None:
    good = [make_call(world.clock, f"g{n}") for n in range(20)]
    bad = [make_call(world.clock, f"b{n}", stage=[("approval", UseGrant("none"))]) for n in range(20)]
    mixed = [call for pair in zip(good, bad, strict=True) for call in pair]
    answers = await asyncio.gather(*map(world.ledger.begin, mixed))
    assert [type(answer) for answer in answers] == [Begun, Denied] * 20
    assert sorted(record.call_id for record in world.records()) == sorted(call.id for call in good)


@requirement("APR-4")
async def test_a_grant_is_used_once_and_given_back_by_no_effect(world: World) -> None:
    def proposed() -> tuple[str, UseGrant]:
        return "approval", UseGrant(granted.id)

    granted = await world.grant(make_call(world.clock))
    first = make_call(world.clock, stage=[proposed()])
    await world.claim(first)
    assert await is_used(world, granted)
    assert await world.end(first, State.NO_EFFECT)
    assert not await is_used(world, granted)
    second = make_call(world.clock, stage=[proposed()])
    await world.run(second, State.UNKNOWN)
    assert await is_used(world, granted)
    assert await world.settle(await world.look(second), State.NO_EFFECT)
    third = make_call(world.clock, stage=[proposed()])
    await world.run(third, State.COMMITTED)
    assert await is_used(world, granted)


@requirement("APR-4")
async def test_a_used_grant_serves_nobody_else(world: World) -> None:
    read = make_call(world.clock, tool=LOOK)
    granted = await world.grant(read)
    read.stage("approval", UseGrant(granted.id))
    assert isinstance(await world.ledger.begin(read), Begun)
    assert "it was used before" in (await world.refused(read)).message


@requirement("APR-4")
@pytest.mark.parametrize("changed", ["key", "arguments", "contract", "principal", "tenant"])
async def test_a_grant_is_for_one_call_only(world: World, changed: str) -> None:
    granted = await world.grant(make_call(world.clock, "k-1"))
    stage = [("approval", UseGrant(granted.id))]
    other = {
        "key": make_call(world.clock, "k-2", stage=stage),
        "arguments": make_call(world.clock, "k-1", arguments={"amount": 8}, stage=stage),
        "contract": make_call(world.clock, "k-1", tool=PAY_2, stage=stage),
        "principal": make_call(world.clock, "k-1", principal=BOB, stage=stage),
        "tenant": make_call(world.clock, "k-1", principal=OTHER_TENANT, stage=stage),
    }[changed]
    if changed in ("arguments", "contract"):
        assert (await world.taken(other)).state is State.HELD
    else:
        assert (await world.refused(other)).code is Code.APPROVAL_DENIED
    assert not await is_used(world, granted)


@requirement("APR-3", "APR-4")
async def test_neither_an_unanswered_nor_an_old_question_is_a_grant(world: World) -> None:
    asked = await world.approvals.ask(make_call(world.clock), {"operator": 1}, {})
    call = make_call(world.clock, stage=[("approval", UseGrant(asked.id))])
    assert "its answer is PENDING" in (await world.refused(call)).message
    await world.approvals.decide(asked, Principal(user="olga"), "operator", True, "")
    await world.clock.advance(600.0)
    assert "it has expired" in (await world.refused(call)).message
    assert (await world.look(call)).state is State.HELD


def deadlocks(kind: str, folder: Path) -> int:
    """So far; tests share databases one after the other."""
    if kind != "postgres":
        return 0
    met = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    [(count,)] = rows(kind, folder, met)
    return int(count)


@requirement("APR-9", "POL-4", "DEC-1")
@pytest.mark.parametrize("kind", ALL)
async def test_claims_and_their_ends_do_not_wait_for_each_other_over_a_rule_and_a_budget(
    kind: str, tmp_path: Path
) -> None:
    around = Surroundings()
    clock, bucket = around.clock, Bucket(per=Per.TENANT, kind=Kind.WRITE, subject="default")
    staged: list[tuple[str, Stage]] = [
        ("approval", UseRule("rul_1")),
        ("limits", ReserveBudget(bucket, Amount(1), Limit(calls=100))),
    ]
    async with (
        place(kind, tmp_path),
        stored(kind, tmp_path, clock, boot=around.boot, workers=around.workers) as store,
    ):
        before = deadlocks(kind, tmp_path)
        asked = await store.approvals.ask(make_call(clock, "q"), {"operator": 1}, {"action": "pay"})
        await store.rules.add(replace(RULE, approval_id=asked.id, expires_at=clock.now() + 1e6))

        async def run(n: int) -> None:
            for turn in range(3):
                call = make_call(clock, f"k-{n}-{turn}", stage=staged)
                begun = await store.ledger.begin(call)
                assert isinstance(begun, Begun)
                call.operation = begun.operation
                assert await store.ledger.finish(call, observed(call), State.NO_EFFECT)

        await asyncio.gather(*(run(n) for n in range(16)))
        rule, [account] = await store.rules.get("default", "rul_1"), await store.ledger.budgets("default")
    assert rule is not None
    assert (rule.used, account.taken) == (0, Amount(wall_ms=account.taken.wall_ms))
    assert deadlocks(kind, tmp_path) == before


@requirement("PPL-4")
@pytest.mark.parametrize("target", ["all", "bank", "bank.pay", "alice/bot"])
async def test_a_halt_stops_everything_it_names_until_it_is_resumed(world: World, target: str) -> None:
    await world.controls.halt(target, "olga", "looks wrong")
    denied = await world.refused(make_call(world.clock))
    assert (denied.gate, denied.code) == ("authorize", Code.TOOL_UNAVAILABLE)
    assert denied.message == f"'{target}' is halted by 'olga': looks wrong; ask an operator to resume it"
    assert await world.ledger.find(ref_of(make_call(world.clock))) is None
    read = await world.ledger.begin(make_call(world.clock, tool=LOOK))
    assert isinstance(read, Begun if target == "bank.pay" else Denied)
    assert await world.controls.resume(target, "olga")
    assert not await world.controls.resume(target, "olga")
    await world.claim(make_call(world.clock))


@requirement("PPL-4")
async def test_controls_are_listed_and_on_record(world: World) -> None:
    await world.controls.halt("bank", "olga", "")
    await world.controls.halt("all", "omar", "fire")
    assert await world.controls.halts() == {"all": "by 'omar': fire", "bank": "by 'olga'"}
    await world.controls.request_cancel("default", "call_7", "olga")
    await world.controls.request_cancel("default", "call_7", "olga")
    assert await world.controls.cancellations() == ["call_7"]
    assert world.kinds() == ["control"] * 3
    await world.clock.advance(3601.0)
    await world.ledger.forget()
    assert await world.controls.cancellations() == []
