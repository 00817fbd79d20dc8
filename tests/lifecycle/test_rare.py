"""The refusals and failures that need a special world: standing, stores, dead workers, changed policies."""

import asyncio
from dataclasses import replace
from typing import Any

from holdfast import Code, Effect, Floor, Observation, Principal, Status, tool
from holdfast.execution.runtime import Runtime
from holdfast.model import defaults
from holdfast.model.call import Call, Decision
from holdfast.model.errors import StoreError
from holdfast.model.vocabulary import DataClass, State, ToolStatus
from holdfast.ports import Ports
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, WRITE, World
from tests.requirements import requirement


@requirement("REG-1", "LIF-2")
async def test_what_is_wrong_with_a_tool_is_told_to_those_who_may_use_it(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        codes = {}
        for status in ToolStatus:
            gateway._ports.catalog.set_status("test.look", "1.0.0", status)  # type: ignore[attr-defined]
            codes[status] = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
    assert codes[ToolStatus.QUARANTINED].code is Code.TOOL_QUARANTINED
    assert codes[ToolStatus.UNAVAILABLE].code is Code.TOOL_UNAVAILABLE
    assert codes[ToolStatus.SUNSET].code is Code.VERSION_INCOMPATIBLE
    assert codes[ToolStatus.REVOKED].code is Code.VERSION_INCOMPATIBLE
    assert codes[ToolStatus.ACTIVE].status is Status.DONE
    assert codes[ToolStatus.DEPRECATED].status is Status.DONE
    assert "deprecated" in codes[ToolStatus.DEPRECATED].warnings[0]


class Failing:
    """A ledger whose named method fails, as one on a full disk does."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner = inner
        self._method = method

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._inner, name)

        async def fail(*_: Any) -> Any:
            raise StoreError("database or disk is full")

        return fail


def failing(method: str) -> Any:
    def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        return replace(ports, ledger=Failing(ports.ledger, method)), runtime

    return adapt


@requirement("AUD-5", "IDM-4")
async def test_what_cannot_be_claimed_is_not_run(open_gateway: Open, world: World) -> None:
    async with open_gateway(world, adapt=failing("begin")) as gateway:
        write = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        read = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
    assert (write.status, write.code) == (Status.REFUSED, Code.RESOURCE_EXHAUSTED)
    assert (read.status, read.code) == (Status.REFUSED, Code.RESOURCE_EXHAUSTED)
    assert (world.touched, world.reads) == ({}, 0)


@requirement("AUD-5")
async def test_what_cannot_be_written_down_is_unknown_and_never_done(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world, adapt=failing("finish")) as gateway:
        write = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        read = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
    assert (write.status, write.code) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert (read.status, read.code) == (Status.FAILED, Code.RESOURCE_EXHAUSTED)


@requirement("AUD-5", "OBS-6")
async def test_a_replay_that_cannot_be_remembered_is_not_told_where_somebody_must_remember_it(
    open_gateway: Open, world: World
) -> None:
    @tool(**WRITE, data_class=DataClass.CONFIDENTIAL)
    async def raise_pay(thing: str) -> str:
        """Raise what somebody earns."""
        return thing

    async with open_gateway(world, [raise_pay], adapt=failing("refuse")) as gateway:
        for name in ("raise_pay", "touch"):
            assert (await gateway.call(f"test.{name}", {"thing": "a"}, key="k", principal=ANA)).data
        kept = await gateway.call("test.raise_pay", {"thing": "a"}, key="k", principal=ANA, session="s")
        told = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA, session="s")
    assert (kept.status, kept.code, kept.data) == (Status.REFUSED, Code.RESOURCE_EXHAUSTED, None)
    assert (told.status, told.replayed) == (Status.DONE, True)


@requirement("OBS-6", "IDM-5")
async def test_an_answer_that_a_probe_gives_in_place_of_the_tool_is_remembered_too(
    open_gateway: Open, world: World
) -> None:
    seen = {"read": {"tool": "look", "arguments": {"thing": "=args.thing"}}, "committed": "true"}

    @tool(**WRITE, data_class=DataClass.CONFIDENTIAL, probe={**seen, "result": "{'pay': 7}"})
    async def raise_pay(thing: str) -> dict[str, int]:
        """Raise what somebody earns."""
        raise RuntimeError("it broke off")

    async with open_gateway(world, [raise_pay]) as gateway:
        done = await gateway.call("test.raise_pay", {"thing": "a"}, key="k", principal=ANA, session="s")
        assert gateway._ports.labels is not None
        held = await gateway._ports.labels.list("default")
    assert (done.status, done.data) == (Status.DONE, {"pay": 7})
    assert [(one.holder, one.label) for one in held] == [("session:ana/s", "confidential")]


@requirement("OBS-6", "APR-6")
async def test_what_a_preview_or_a_refusal_shows_of_the_target_is_remembered(
    open_gateway: Open, world: World
) -> None:
    reads = {"tool": "pay_of", "arguments": {"thing": "=args.thing"}}

    @tool(effect=Effect.READ_ONLY, data_class=DataClass.CONFIDENTIAL)
    async def pay_of(thing: str) -> dict[str, int]:
        """Read what somebody earns."""
        return {"pay": 7}

    @tool(**WRITE, state={"read": reads, "version": "string(state.pay)"}, preview={"read": reads})
    async def greet(thing: str) -> str:
        """Greet somebody."""
        return thing

    async with open_gateway(world, [pay_of, greet]) as gateway:
        assert gateway._ports.labels is not None
        await gateway.call("test.greet", {"thing": "a"}, key="k", principal=ANA, session="done")
        shown = await gateway.call("test.greet", {"thing": "a"}, principal=ANA, session="look", preview=True)
        stale: dict[str, Any] = {"principal": ANA, "session": "stale", "if_match": "6"}
        told = await gateway.call("test.greet", {"thing": "a"}, key="l", **stale)
        held = await gateway._ports.labels.list("default")
    assert (shown.status, told.code) == (Status.PREVIEW, Code.STALE_STATE)
    mine = {one.holder: one.label for one in held if one.principal == ANA.id}
    assert mine == {"session:ana/look": "confidential", "session:ana/stale": "confidential"}


@requirement("VER-4")
async def test_a_failed_postcondition_that_can_be_compensated_says_so(
    open_gateway: Open, world: World
) -> None:
    @tool(
        **WRITE,
        postconditions=[
            {
                "read": {"tool": "look", "arguments": {"thing": "=args.thing"}},
                "holds": "false",
                "on_failure": "compensate",
            }
        ],
        compensation={"tool": "touch", "arguments": {"thing": "=args.thing"}},
    )
    async def break_it(thing: str) -> str:
        """Break a thing."""
        return thing

    async with open_gateway(world, [break_it]) as gateway:
        answer = await gateway.call("test.break_it", {"thing": "a"}, key="k", principal=ANA)
    assert (answer.status, answer.code) == (Status.FAILED, Code.COMPENSATION_REQUIRED)


class Dying:
    """Workers that are alive until the test says otherwise."""

    def __init__(self, name: str, dead: set[str]) -> None:
        self.id = name
        self._dead = dead

    def leads(self) -> bool:
        return True

    def alive(self, worker: str) -> bool:
        return worker == self.id and worker not in self._dead


@requirement("IDM-5", "IDM-4")
async def test_a_dead_workers_operation_is_unknown_until_a_probe_or_a_person_settles_it(
    open_gateway: Open, world: World
) -> None:
    clock, dead = ManualClock(), set[str]()
    world.mood = "wait"
    async with open_gateway(world, clock=clock, workers=Dying("w1", dead)) as gateway:
        tasks = []
        for name, thing in (("test.touch", "a"), ("test.touch_probed", "b")):
            world.entered.clear()
            call = gateway.call(name, {"thing": thing}, key=thing, principal=ANA)
            tasks.append(asyncio.create_task(call))
            await world.entered.wait()
        assert await gateway.tidy() == 0
        dead.add("w1")  # as if it had been killed with both calls under way
        assert await gateway.tidy() == 2
        lost = await gateway.call("test.touch", {"thing": "a"}, key="a", principal=ANA)
        early = await gateway.call("test.touch_probed", {"thing": "b"}, key="b", principal=ANA)
        await clock.advance(defaults.STANDARD_S + 1.5)  # past the deadline and the contract's settling time
        await asyncio.wait(tasks)
        await gateway.tidy()
        states = [
            found.state
            for answer in (lost, early)
            if (found := await gateway._ports.ledger.find_call("default", answer.call_id))
        ]
    assert (lost.status, lost.replayed) == (Status.UNKNOWN, True)
    assert early.status is Status.UNKNOWN  # the probe saw nothing, but the attempt might still have acted
    assert states == [State.UNKNOWN, State.NO_EFFECT]


class Changing:
    """A policy that asks for more from its second version on."""

    def __init__(self, later: Decision) -> None:
        self.version = "1"
        self.later = later

    def decide(self, call: Call) -> Decision:
        decision = Decision(id="pd_1", allow=True, version="1") if self.version == "1" else self.later
        self.version = "2"  # promoted while the call is on its way
        return decision


@requirement("LIF-6", "DEC-5")
async def test_a_policy_that_changed_on_the_way_is_asked_again_at_the_claim(
    open_gateway: Open, world: World
) -> None:
    refusals: list[Observation] = []
    for later in (
        Decision(id="pd_2", allow=False, reasons=("frozen",), version="2"),
        Decision(id="pd_2", allow=True, floor=Floor.OPERATOR, version="2"),
        Decision(id="pd_2", allow=True, version="2"),
    ):
        async with open_gateway(world, policy=Changing(later)) as gateway:
            key = f"k{len(refusals)}"
            refusals.append(await gateway.call("test.touch", {"thing": "a"}, key=key, principal=ANA))
    denied, raised, same = refusals
    assert denied.code is Code.POLICY_VIOLATION
    assert "frozen" in (denied.message or "")
    assert raised.code is Code.POLICY_VIOLATION
    assert "more approval" in (raised.message or "")
    assert same.status is Status.DONE
    assert world.touched == {"a": 1}


@requirement("EXE-1")
async def test_a_cancelled_read_says_so(open_gateway: Open) -> None:
    started = asyncio.Event()

    @tool(effect=Effect.READ_ONLY)
    async def long(thing: str) -> str:
        """Takes its time."""
        started.set()
        await asyncio.Event().wait()
        return thing

    async with open_gateway([long]) as gateway:
        call = asyncio.create_task(gateway.call("test.long", {"thing": "a"}, principal=ANA))
        await started.wait()
        [running] = gateway._under_way
        assert await gateway.cancel(ANA, running.id) == "cancelled"
        answer = await call
    assert (answer.status, answer.code, answer.http_status) == (Status.FAILED, Code.CANCELLED, 499)


@requirement("AUT-6")
async def test_a_call_is_seen_by_its_caller_and_operators_of_its_tenant_only(
    open_gateway: Open, world: World
) -> None:
    boss = Principal(user="root", agent="local", roles=frozenset({"operator"}))
    foreign = Principal(tenant="acme", user="root", agent="local", roles=frozenset({"operator"}))
    other = Principal(user="eve", agent="bot")
    async with open_gateway(world) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        seen = {p.tenant + p.id: await gateway.find(p, done.call_id) for p in (ANA, boss, foreign, other)}
    assert seen["default" + ANA.id] is not None
    assert seen["default" + boss.id] is not None
    assert seen["acme" + foreign.id] is None
    assert seen["default" + other.id] is None


@requirement("LIF-2")
async def test_a_flood_of_proposals_is_turned_away_before_anything_is_looked_at(
    open_gateway: Open, world: World
) -> None:
    config = {"limits": {"ingress": {"rate": 0.001, "burst": 3}}}
    async with open_gateway(world, config=config) as gateway:
        answers = [await gateway.call("test.look", {"thing": "a"}, principal=ANA) for _ in range(5)]
    assert [a.status for a in answers] == [Status.DONE] * 3 + [Status.REFUSED] * 2
    assert answers[-1].code is Code.RATE_LIMITED
    assert answers[-1].remedy.retry_after_ms
