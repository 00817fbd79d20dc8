"""A chain is itself a tool: seen, judged, called, waited for and found again as any other; CHN-6."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.catalog.admission import Offer, admit
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import parse
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError, Code, ConfigError
from holdfast.model.observation import Status
from holdfast.model.run import StepState
from holdfast.model.vocabulary import Effect, Floor, Undo
from tests.chains.counter import ANNOUNCE, LOOK, LOST, ORDER, Counter, counter
from tests.chains.world import do, shop
from tests.requirements import requirement


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def here(kind: str, tmp_path: Path) -> AsyncIterator[Counter]:
    async with counter(kind, tmp_path, ORDER, LOOK, ANNOUNCE, LOST) as opened:
        yield opened


def contract(here: Counter, name: str) -> Contract:
    olga = here.caller("olga")
    return next(c for one in here.gateway.catalog(olga) if (c := one.tool.contract).tool == f"chains.{name}")


@requirement("CHN-6")
async def test_it_promises_what_its_steps_promise_together(here: Counter) -> None:
    order, look, announce = (contract(here, name) for name in ("order", "look", "announce"))
    assert (order.effect, order.transactional.undo) == (Effect.LOW_RISK_INTERNAL, Undo.SEMANTIC)
    assert order.security.required_scopes == ("shop:write",)
    assert order.affordance.input_schema["required"] == ["item"]
    assert "charge by shop.uncharge, reserve by shop.unreserve" in order.transactional.rollback_plan
    assert (look.effect, look.transactional.probe) == (Effect.READ_ONLY, None)
    assert (announce.effect, announce.transactional.undo) == (Effect.HIGH_RISK_EXTERNAL, Undo.NONE)
    assert announce.security.required_scopes == ("mail:send", "shop:write")
    assert announce.security.approval_floor is Floor.NONE


@requirement("CHN-6", "NAM-4")
async def test_a_call_gives_what_the_run_gives_and_says_how_far_it_came(here: Counter) -> None:
    seen = await here.call("chains.order", key="k-1")
    assert (seen.status, seen.data) == (Status.DONE, {"charge": "charge-tea"})
    assert seen.steps == {"completed": ["reserve", "charge"], "failed": []}
    again = await here.call("chains.order", key="k-1")
    assert (again.status, again.replayed, here.world.did) == (Status.DONE, True, ["reserve", "charge"])


@requirement("CHN-6", "CHN-7")
async def test_a_run_that_was_begun_otherwise_is_the_one_of_the_key(here: Counter) -> None:
    ada, chain = here.caller("ada"), here.gateway.chains.named("order")
    run = await here.gateway.chains.start(ada, chain, {"item": "tea"}, "k-1")
    await here.gateway.chains.wait(ada, run.id, 30)
    seen = await here.call("chains.order", key="k-1")
    assert (seen.data, here.world.did) == ({"charge": "charge-tea"}, ["reserve", "charge"])


@requirement("CHN-6")
async def test_the_records_of_its_steps_are_found_from_the_run(here: Counter) -> None:
    await here.call("chains.order", key="k-1")
    ada = here.caller("ada")
    [run] = await here.gateway.chains.list(ada)
    shown = await here.gateway.chains.look(ada, run.id)
    calls = [line.call_id for line in shown.lines]
    found = [await here.gateway.find(ada, call) for call in calls]
    assert [one.tool for one in found if one is not None] == ["shop.reserve", "shop.charge"]
    chain = await here.gateway.find(ada, run.call_id)
    assert chain is not None
    assert chain.tool == "chains.order"


@requirement("CHN-6", "AUT-2")
async def test_who_lacks_the_scope_of_a_step_does_not_see_it_and_nothing_runs(here: Counter) -> None:
    bob = here.caller("bob")
    names = {one.tool.contract.tool for one in here.gateway.tools(bob)}
    assert {one for one in names if one.startswith("chains.")} == {"chains.look"}
    refused = await here.call("chains.order", by="bob", key="k-1")
    assert (refused.code, here.world.did) == (Code.TOOL_NOT_FOUND, [])


@requirement("CHN-6")
async def test_what_the_gateway_reads_about_runs_is_in_no_list_and_answers_nobody_else(
    here: Counter,
) -> None:
    everything = {one.tool.contract.identity.name for one in here.gateway.catalog(here.caller("olga"))}
    assert not [name for name in everything if name.startswith("_")]
    arguments = {"chain": "order", "made_of": "x"}
    seen = await here.gateway.call("chains._plan", arguments, principal=here.caller("ada"))
    assert seen.code is Code.TOOL_NOT_FOUND


@requirement("CHN-6", "SAG-1")
async def test_a_run_that_was_taken_back_is_a_failure_that_left_nothing(here: Counter) -> None:
    here.world.failing["charge"] = 1
    seen = await here.call("chains.order", key="k-1")
    assert (seen.status, here.world.did, here.world.standing) == (
        Status.FAILED,
        ["reserve", "unreserve"],
        [],
    )
    assert (seen.code, "charge is away" in str(seen.message)) == (Code.INTERNAL, True)
    assert "nothing of it is left" in str(seen.message)
    assert seen.steps == {"completed": ["reserve"], "failed": ["charge"]}
    again = await here.call("chains.order", key="k-1")
    assert (again.status, here.world.did) == (Status.FAILED, ["reserve", "unreserve"])


@requirement("CHN-5", "CHN-6")
async def test_what_stays_when_a_run_is_aborted_is_told(kind: str, tmp_path: Path) -> None:
    plain = {**ORDER, "chain": "plain", "saga": False}
    async with counter(kind, tmp_path, plain) as here:
        here.world.failing["charge"] = 1
        seen = await here.call("chains.plain", key="k-1")
        assert (seen.status, here.world.standing) == (Status.FAILED, ["reserve"])
        assert "done and not taken back: reserve" in str(seen.message)
        again = await here.call("chains.plain", key="k-1")
        assert (again.replayed, here.world.did) == (True, ["reserve"])


@requirement("CHN-3", "CHN-6")
async def test_branches_that_failed_are_among_the_failed_steps_and_lead_to_their_calls(
    kind: str, tmp_path: Path
) -> None:
    either = {**ORDER, "chain": "either", "saga": False, "output": {"reserve": "=reserve.id"}}
    either["steps"] = [{"parallel": [do("reserve"), do("charge")], "join": {"quorum": 0.5}}, do("pack")]
    both = {**either, "chain": "both", "steps": [{"parallel": [do("reserve"), do("charge")]}]}
    async with counter(kind, tmp_path, either, both) as here:
        olga = here.caller("olga")
        here.world.failing.update({"charge": 1, "reserve": 1})
        lost = await here.call("chains.either", key="k-1")
        assert (lost.status, lost.steps) == (
            Status.FAILED,
            {"completed": [], "failed": ["reserve", "charge"]},
        )
        here.world.failing["charge"] = 1
        seen = await here.call("chains.both", key="k-2")
        assert (seen.status, seen.steps) == (Status.FAILED, {"completed": ["reserve"], "failed": ["charge"]})
        for run in await here.gateway.chains.list(olga):
            shown = await here.gateway.chains.look(olga, run.id)
            for line in [line for line in shown.lines if line.state is StepState.FAILED]:
                call = await here.gateway.find(here.caller("ada"), line.call_id)
                assert call is not None
                assert (call.tool, call.status) == (line.tool, Status.FAILED)


@requirement("CHN-6", "CHN-7")
async def test_a_held_step_makes_it_wait_and_the_same_key_gives_the_result_once_it_is_approved(
    here: Counter,
) -> None:
    seen = await here.call("chains.announce", key="k-1")
    assert (seen.status, seen.code, seen.http_status) == (Status.PARTIAL, None, 200)
    [run] = await here.gateway.chains.list(here.caller("ada"))
    assert seen.pending == {"kind": "run", "id": run.id}
    assert "waits for approval" in str(seen.message)
    assert seen.steps == {"completed": ["reserve"], "failed": []}
    still = await here.call("chains.announce", key="k-1")
    assert (still.status, here.world.did) == (Status.PARTIAL, ["reserve"])
    await here.decided()
    await here.settled("announce")
    found = await here.gateway.find(here.caller("ada"), seen.call_id)
    assert found is not None
    assert (found.status, found.data) == (Status.DONE, {"sent": "tea"})
    done = await here.call("chains.announce", key="k-1")
    assert (done.status, done.data, done.replayed) == (Status.DONE, {"sent": "tea"}, True)
    assert here.world.did == ["reserve", "send"]


@requirement("CHN-6")
async def test_many_that_wait_do_not_count_as_a_tool_that_is_ill(here: Counter) -> None:
    for number in range(7):
        seen = await here.call("chains.announce", f"tea-{number}", key=f"k-{number}")
        assert seen.status is Status.PARTIAL


@requirement("CHN-6")
async def test_a_denied_step_ends_the_call_with_what_stays(here: Counter) -> None:
    seen = await here.call("chains.announce", key="k-1")
    await here.decided(approve=False)
    await here.settled("announce")
    found = await here.gateway.find(here.caller("ada"), seen.call_id)
    assert found is not None
    assert (found.status, found.code) == (Status.FAILED, Code.APPROVAL_DENIED)
    assert found.steps == {"completed": ["reserve"], "failed": ["send"]}
    assert "done and not taken back: reserve" in str(found.message)


@requirement("CHN-6", "IDM-5")
async def test_a_step_whose_outcome_is_unknown_is_waited_for_until_it_is_settled(here: Counter) -> None:
    seen = await here.call("chains.lost", key="k-1")
    assert seen.status is Status.PARTIAL
    olga = here.caller("olga")
    [run] = await here.gateway.chains.list(olga)
    assert run.waits_on
    await here.gateway.settle(olga, run.waits_on, "committed", "it is there")
    await here.gateway.tidy()
    await here.settled("lost")
    done = await here.call("chains.lost", key="k-1")
    assert (done.status, here.world.did) == (Status.DONE, ["reserve", "lose"])


@requirement("CHN-6", "IDM-5")
async def test_an_abandoned_run_settles_its_call(here: Counter) -> None:
    seen = await here.call("chains.announce", key="k-1")
    olga = here.caller("olga")
    [run] = await here.gateway.chains.list(olga)
    await here.gateway.chains.abandon(olga, run.id, "nobody wants it")
    found = await here.gateway.find(here.caller("ada"), seen.call_id)
    assert found is not None
    assert (found.status, "nobody wants it" in str(found.message)) == (Status.FAILED, True)


@requirement("CHN-6", "IDM-5")
async def test_a_call_whose_run_ended_where_nobody_told_is_settled_by_looking(here: Counter) -> None:
    seen = await here.call("chains.announce", key="k-1")
    [run] = await here.gateway.chains.list(here.caller("ada"))
    assert await here.runs.abandon(run.tenant, run.id, "olga", "the process died then")
    await here.gateway.tidy()
    found = await here.gateway.find(here.caller("ada"), seen.call_id)
    assert found is not None
    assert (found.status, "the process died then" in str(found.message)) == (Status.FAILED, True)


@requirement("CHN-6", "IDM-5")
async def test_a_call_that_found_an_older_run_is_settled_with_it(here: Counter) -> None:
    ada, chain = here.caller("ada"), here.gateway.chains.named("announce")
    run = await here.gateway.chains.start(ada, chain, {"item": "tea"}, "k-1")
    await here.gateway.chains.wait(ada, run.id, 30)
    seen = await here.call("chains.announce", key="k-1")
    assert seen.status is Status.PARTIAL
    await here.decided()
    await here.settled("announce")
    found = await here.gateway.find(ada, seen.call_id)
    assert found is not None
    assert (found.status, here.world.did) == (Status.DONE, ["reserve", "send"])


@requirement("CHN-6", "EXE-1")
async def test_a_run_that_takes_longer_than_its_call_may_goes_on_without_it(tmp_path: Path) -> None:
    slow = {**LOOK, "chain": "slow", "steps": [do("reserve"), do("linger")]}
    async with counter("memory", tmp_path, slow) as here:
        seen = await here.call("chains.slow", key="k-1", deadline_ms=300)
        assert (seen.status, "goes on" in str(seen.message)) == (Status.PARTIAL, True)
        here.world.go_on.set()
        await here.settled("slow")
        done = await here.call("chains.slow", key="k-1")
        assert (done.status, done.replayed, here.world.did) == (Status.DONE, True, ["reserve", "linger"])


@requirement("CHN-6")
async def test_a_chain_that_only_reads_is_stopped_where_nobody_could_ask_for_it_again(tmp_path: Path) -> None:
    slow = {**LOOK, "chain": "slow", "steps": [do("stare"), do("look")]}
    async with counter("memory", tmp_path, slow) as here:
        seen = await here.call("chains.slow", deadline_ms=300)
        assert (seen.status, seen.code) == (Status.FAILED, Code.TIMEOUT)
        assert "it is stopped" in str(seen.message)
        here.world.go_on.set()
        await here.settled("slow")
        assert "look" not in here.world.did


@requirement("CHN-6", "DEC-5")
async def test_a_preview_shows_the_steps_and_runs_none(here: Counter) -> None:
    seen = await here.call("chains.order", preview=True)
    assert seen.status is Status.PREVIEW
    assert seen.preview is not None
    impact = seen.preview["impact"]
    assert [(step["name"], step["tool"], step["taken_back_by"]) for step in impact["steps"]] == [
        ("reserve", "shop.reserve", "shop.unreserve"),
        ("charge", "shop.charge", "shop.uncharge"),
    ]
    assert here.world.did == []


@requirement("CHN-6", "CON-4")
async def test_another_contract_of_a_step_makes_it_another_tool(tmp_path: Path) -> None:
    digests = []
    for number, tools in enumerate((shop, shop, _dearer)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with counter("memory", folder, ORDER, tools=tools) as here:
            digests.append(contract(here, "order").digest)
    assert digests[0] == digests[1]
    assert digests[2] not in digests[:2]


def _dearer(world: Any) -> list[Any]:
    """The same tools; charging says another description of itself."""
    made = shop(world)
    for one in made:
        if one.name == "charge":
            one.function.__doc__ = "Charge.\n\nArgs:\n    item: what for\n"
    return made


@requirement("CHN-6", "CHN-1")
async def test_one_that_cannot_be_run_is_not_offered_and_reported(tmp_path: Path) -> None:
    broken = {**ORDER, "chain": "broken", "steps": [do("reserve"), do("gone")]}
    async with counter("memory", tmp_path, ORDER, broken) as here:
        names = {one.tool.contract.tool for one in here.gateway.tools(here.caller("ada"))}
        assert ("chains.order" in names, "chains.broken" in names) == (True, False)
        assert any("chains.broken: not offered" in told for told in here.gateway.findings())


@requirement("CHN-6", "REG-2")
async def test_a_step_that_goes_takes_the_chain_with_it_until_it_is_there_again(here: Counter) -> None:
    catalog = here.gateway._ports.catalog
    assert isinstance(catalog, MemoryCatalog)
    ada, there = here.caller("ada"), [one for one in catalog.list() if one.upstream == "shop"]
    catalog.replace("chains", [])
    rest = [one for one in there if not one.tool.contract.identity.name.endswith("charge")]
    catalog.replace("shop", [Offer(contract=one.tool.contract, upstream="shop") for one in rest])
    await here.gateway.tidy()
    assert not here.gateway.may_use(ada, "chains.order")
    assert here.gateway.may_use(ada, "chains.announce")
    catalog.replace("shop", [Offer(contract=one.tool.contract, upstream="shop") for one in there])
    await here.gateway.tidy()
    assert here.gateway.may_use(ada, "chains.order")


@requirement("CHN-6")
async def test_a_chain_can_be_a_step_of_another_one(tmp_path: Path) -> None:
    outer = {
        "chain": "all",
        "input": ORDER["input"],
        "steps": [
            {"id": "inner", "tool": "chains.announce", "with": {"item": "=input.item"}},
            do("tell"),
        ],
        "output": {"sent": "=inner.sent"},
    }
    async with counter("memory", tmp_path, ANNOUNCE, outer) as here:
        seen = await here.call("chains.all", key="k-1")
        assert seen.status is Status.PARTIAL
        await here.decided()
        await here.settled("announce")
        await here.settled("all")
        done = await here.call("chains.all", key="k-1")
        assert (done.data, here.world.did) == ({"sent": "tea"}, ["reserve", "send", "tell"])


@requirement("CHN-6", "POL-1")
async def test_policy_can_forbid_a_chain_whose_steps_it_permits(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    starter = Path(__file__).parents[2] / "src" / "holdfast" / "policy" / "starter"
    shutil.copytree(starter, folder, dirs_exist_ok=True)
    forbid = 'forbid (principal, action == Action::"chains.order", resource);'
    (folder / "orders.cedar").write_text(f'@id("no-orders") @reason("not today")\n{forbid}\n')
    async with counter("memory", tmp_path, ORDER, policies=str(folder)) as here:
        refused = await here.call("chains.order", key="k-1")
        assert (refused.code, here.world.did) == (Code.POLICY_VIOLATION, [])
        body = {"chain": "order", "input": {"item": "tea"}, "key": "k-1"}
        assert (await here.client("ada").post("/v1/runs", body)).status == 403
        assert here.world.did == []


@requirement("CHN-6")
def test_no_upstream_can_take_the_namespace_of_chains() -> None:
    with pytest.raises(ConfigError, match="'chains' names the gateway's own"):
        parse({"upstreams": {"chains": {"functions": "tests.servers.desk:desk"}}})


@requirement("CHN-6", "CON-3")
async def test_no_other_tool_says_that_people_are_asked_about_its_steps(here: Counter) -> None:
    announce = contract(here, "announce")
    identity = announce.identity.model_copy(update={"namespace": "shop"})
    with pytest.raises(AdmissionError, match="is for chains"):
        admit(announce.model_copy(update={"identity": identity}), lambda _: None)


@requirement("CHN-6", "APR-8")
async def test_a_chain_is_approved_as_a_plan_and_its_steps_use_it(here: Counter) -> None:
    ada, olga = here.caller("ada"), here.caller("olga")
    chain = here.gateway.chains.named("announce")
    planned = await here.gateway.chains.plan(ada, chain, {"item": "tea"})
    assert (planned.status, [step.tool for step in planned.steps]) == (
        "asked",
        ["shop.reserve", "shop.send"],
    )
    [asked] = await here.gateway.approvals(olga)
    await here.gateway.decide(olga, asked.id, approve=True)
    seen = await here.call("chains.announce", key="k-1")
    assert (seen.status, here.world.did) == (Status.DONE, ["reserve", "send"])
    other = await here.call("chains.announce", "coffee", key="k-2")
    assert other.status is Status.PARTIAL
