"""Is there one bundle in force, for everybody, from the moment it is promoted?"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Effect, Gateway, HoldfastError, Principal, Status, testing, tool
from holdfast.model.errors import ConfigError, Forbidden
from holdfast.model.function import toolset
from holdfast.policy import Bundle, load
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.lifecycle.conftest import store
from tests.lifecycle.world import ANA, World
from tests.policy.case import bundle_of, written
from tests.requirements import requirement
from tests.stored import DURABLE, Store, durable, records

__all__ = ["store"]

OLGA = Principal(user="olga", agent="local", roles=frozenset({"operator"}))
OPEN = '@id("open") permit (principal, action, resource);\n'
SHUT = OPEN + '@id("shut") @reason("shut for today") forbid (principal, action, resource);\n'
ASKS = '@id("asks") @approval("operator") permit (principal, action, resource);\n'
BAD = '@id("bad") permit (principal, action, resource) when { resource.colour == "red" };\n'

Process = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def process(store: str, tmp_path: Path, world: World) -> Process:
    """Opens one gateway after the other on one store, each as a process of its own would."""
    clock, shared = ManualClock(), MemoryStore(ManualClock())

    @asynccontextmanager
    async def opened(**config: Any) -> AsyncIterator[Gateway]:
        async with AsyncExitStack() as stack:
            kept: Store = shared
            if store != "memory":
                kept = await stack.enter_async_context(durable(store, tmp_path, clock))
            upstreams = {"test": FunctionUpstream(toolset(world))}
            gateway = Gateway.assemble(config, kept, upstreams, clock=clock, ids=CountingIds())
            stack.push_async_callback(gateway.close)
            await gateway.prepare()
            yield gateway

    return opened


@pytest.fixture
def world() -> World:
    return World()


async def look(gateway: Gateway) -> Status:
    return (await gateway.call("test.look", {"thing": "a"}, principal=ANA)).status


def bundle(text: str) -> Bundle:
    return bundle_of(text, "rules")


@requirement("POL-1", "DEC-5", "LIF-6")
async def test_a_promotion_holds_in_every_process_from_the_next_claim_on(process: Process) -> None:
    async with process() as one, process() as other:
        assert (await look(one), await look(other)) == (Status.DONE, Status.DONE)
        assert await one.policies.promote(OLGA, bundle(SHUT), "an incident")
        answer = await other.call("test.look", {"thing": "a"}, principal=ANA)
        assert (answer.status, answer.code) == (Status.REFUSED, Code.POLICY_VIOLATION)
        assert "policy changed and no longer allows this call: shut for today" in (answer.message or "")
        assert (await one.ready())["policy"] == (await other.ready())["policy"] == bundle(SHUT).version
        back = await other.policies.promote(OLGA, bundle(OPEN))
        assert back
        assert (await look(one), await look(other)) == (Status.DONE, Status.DONE)


@requirement("POL-1", "DEC-5")
async def test_a_promotion_drops_what_reads_are_cached() -> None:
    reads: list[str] = []

    @tool(effect=Effect.READ_ONLY, cache_ttl_s=60.0)
    async def rate(pair: str) -> dict[str, int]:
        """Look up a rate."""
        reads.append(pair)
        return {"rate": 1}

    async with testing.gateway(rate) as gateway:
        for _ in range(2):
            await gateway.call("test.rate", {"pair": "eur"}, principal=ANA)
        assert reads == ["eur"]
        await gateway.policies.promote(OLGA, bundle(OPEN))
        await gateway.call("test.rate", {"pair": "eur"}, principal=ANA)
    assert reads == ["eur", "eur"]


@requirement("POL-1")
async def test_housekeeping_notices_a_promotion_without_any_call(process: Process) -> None:
    async with process() as one, process() as other:
        await one.policies.promote(OLGA, bundle(SHUT))
        assert str((await other.ready())["policy"]).startswith("starter/")
        await other.tidy()
        assert (await other.ready())["policy"] == bundle(SHUT).version


@requirement("POL-1")
async def test_rollback_goes_back_one_promotion_at_a_time_and_never_to_nothing(process: Process) -> None:
    texts = (OPEN, SHUT, ASKS)
    async with process() as one, process() as other:
        for text in texts:
            assert await one.policies.promote(OLGA, bundle(text))
        assert not await other.policies.promote(OLGA, bundle(ASKS))  # it is in force already
        assert (await other.policies.rollback(OLGA, "too strict")).version == bundle(SHUT).version
        assert await look(one) is Status.REFUSED
        assert (await one.policies.rollback(OLGA)).version == bundle(OPEN).version
        assert await look(other) is Status.DONE
        with pytest.raises(HoldfastError, match="nothing to go back to"):
            await one.policies.rollback(OLGA)
        listed = [(p.number, p.version, p.ended_by) for p in await one.policies.promotions()]
        assert listed == [
            (3, bundle(ASKS).version, "olga"),
            (2, bundle(SHUT).version, "olga"),
            (1, bundle(OPEN).version, None),
        ]
        assert await one.policies.promote(OLGA, bundle(ASKS))  # what was taken back can be promoted again
        assert (await one.policies.promotions())[0].number == 4


@requirement("POL-1")
async def test_a_bundle_that_does_not_validate_cannot_be_promoted(process: Process) -> None:
    async with process() as gateway:
        await gateway.policies.promote(OLGA, bundle(OPEN))
        with pytest.raises(
            ConfigError, match=r"a\.cedar:1:\d+: attribute `colour` on entity type `Tool` not found"
        ):
            await gateway.policies.promote(OLGA, bundle(BAD + SHUT.replace("shut", "open")))
        assert (await gateway.ready())["policy"] == bundle(OPEN).version
        assert await look(gateway) is Status.DONE


@requirement("POL-1")
async def test_promoting_is_for_operators(process: Process) -> None:
    people = {"people": {"olga": {"roles": ["operator"]}}}
    async with process(auth=people) as gateway:
        with pytest.raises(Forbidden):
            await gateway.policies.promote(ANA, bundle(OPEN))
        with pytest.raises(Forbidden):
            await gateway.policies.rollback(ANA)


@requirement("LIF-6", "DEC-5")
async def test_a_need_that_rises_in_another_process_refuses_and_is_a_security_event(
    process: Process, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with process() as one, process() as other:
        await one.policies.promote(OLGA, bundle(OPEN))
        await other.tidy()
        await one.policies.promote(OLGA, bundle(ASKS))
        with caplog.at_level(logging.WARNING, "holdfast"):
            answer = await other.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert answer.code is Code.POLICY_VIOLATION
    assert "now needs more approval" in (answer.message or "")
    assert "the need for approval rose from nobody to 1 x operator" in caplog.text
    assert world.touched == {}


@requirement("DEC-5", "LIF-6")
async def test_a_promotion_while_calls_run_lets_none_through_that_was_judged_before(
    process: Process, world: World
) -> None:
    async with process() as one, process() as other:
        await one.policies.promote(OLGA, bundle(OPEN))
        calls = [
            asyncio.create_task(other.call("test.touch", {"thing": f"t{i}"}, key=f"k{i}", principal=ANA))
            for i in range(40)
        ]
        await one.policies.promote(OLGA, bundle(SHUT))
        touched = dict(world.touched)  # whatever began before the promotion was durable
        late = await other.call("test.touch", {"thing": "late"}, key="late", principal=ANA)
        answers = await asyncio.gather(*calls)
    assert late.status is Status.REFUSED
    assert "late" not in world.touched
    done = {f"t{i}" for i, answer in enumerate(answers) if answer.status is Status.DONE}
    assert set(world.touched) == done >= set(touched)


@requirement("POL-1", "POL-2")
async def test_the_configured_folder_is_promoted_at_the_first_start_only(
    process: Process, tmp_path: Path
) -> None:
    folder = written(tmp_path / "rules", OPEN)
    async with process(policies=str(folder), environment="prod") as gateway:
        assert (await gateway.ready())["policy"] == load(folder).version
        assert gateway.policies.notes() == []
        assert await look(gateway) is Status.DONE
        [first] = await gateway.policies.promotions()
        assert (first.by, first.note) == ("holdfast", "the configured folder, at the first start")
    before = load(folder).version
    written(folder, SHUT)
    async with process(policies=str(folder), environment="prod") as gateway:
        assert (await gateway.ready())["policy"] == before
        assert await look(gateway) is Status.DONE
        [note] = gateway.policies.notes()
        assert "has changes that are not in force" in note
        await gateway.policies.promote(OLGA, load(folder))
        assert gateway.policies.notes() == []
        assert await look(gateway) is Status.REFUSED


@requirement("POL-1", "POL-2")
async def test_a_configured_folder_that_does_not_validate_keeps_the_gateway_from_starting(
    process: Process, tmp_path: Path
) -> None:
    folder = written(tmp_path / "rules", BAD)
    with pytest.raises(ConfigError, match="cannot be put in force"):
        async with process(policies=str(folder)):
            pass
    with pytest.raises(ConfigError, match="there is no folder"):
        async with process(policies=str(tmp_path / "nowhere")):
            pass


@requirement("POL-1", "AUD-1")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_promotions_and_rollbacks_are_recorded(store: str, tmp_path: Path, world: World) -> None:
    clock = ManualClock()
    async with durable(store, tmp_path, clock) as kept:
        upstreams = {"test": FunctionUpstream(toolset(world))}
        gateway = Gateway.assemble({}, kept, upstreams, clock=clock, ids=CountingIds())
        await gateway.policies.promote(OLGA, bundle(OPEN), "first")
        await gateway.policies.promote(OLGA, bundle(SHUT), "second")
        await gateway.policies.rollback(OLGA, "third")
        await gateway.close()
    told = [json.loads(record.body) for record in records(store, tmp_path) if record.kind == "policy"]
    assert [(said["operation"], said["caller"], said["version"], said["note"]) for said in told] == [
        ("promote", "olga", bundle(OPEN).version, "first"),
        ("promote", "olga", bundle(SHUT).version, "second"),
        ("rollback", "olga", bundle(OPEN).version, "third"),
    ]
