"""Does no tenant learn of another's runs, or touch them, whatever its people may do at home?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.observation import Status
from holdfast.model.run import RunState
from tests.chains.counter import ANNOUNCE, LOOK, ORDER, PEOPLE, Counter, counter
from tests.chains.ledger import person, proving
from tests.chains.test_prove import CHARGE, RESERVE, saga
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.stored import ALL

TEA = {"item": "tea"}
ACME: dict[str, Any] = {
    "mia": {"tenant": "acme", "scopes": ["**"], "trust": 90},
    "xena": {"tenant": "acme", "roles": ["operator", "compliance"], "scopes": ["**"], "trust": 90},
}


@pytest.fixture(params=ALL)
async def here(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Counter]:
    auth = {"mode": "local", "people": {**PEOPLE, **ACME}}
    async with counter(request.param, tmp_path, ORDER, LOOK, ANNOUNCE, auth=auth) as opened:
        yield opened


async def waiting(here: Counter) -> str:
    """A run of ada's that waits for an operator of hers."""
    held = await here.call("chains.announce", key="k-1")
    assert "waits for approval" in str(held.message)
    [run] = await here.gateway.chains.list(here.caller("ada"))
    return run.id


@requirement("CHN-6", "AUT-6")
async def test_a_run_is_not_there_for_the_operator_of_another_tenant(here: Counter) -> None:
    run, xena = await waiting(here), here.client("xena")
    assert (await here.client("olga").get(f"/v1/runs/{run}")).status == 200
    assert (await xena.get("/v1/runs")).json() == {"runs": []}
    path = f"/v1/runs/{run}"
    asked = [
        await xena.get(path),
        await xena.post(f"{path}/resume", {}),
        await xena.post(f"{path}/abandon", {"note": "mine"}),
        await xena.post(f"{path}/cancel", {}),
        await xena.post(f"{path}/choose", {"step": "send", "case": "a"}),
    ]
    nowhere = await xena.get("/v1/runs/run_000000000000000000000000")
    assert [one.status for one in asked] == [404] * len(asked)
    assert asked[0].json()["error"].replace(run, "") == nowhere.json()["error"].replace("run_" + "0" * 24, "")
    [now] = await here.gateway.chains.list(here.caller("ada"))
    assert (now.state, now.cancelled_by, here.world.did) == (RunState.RUNNING, "", ["reserve"])


@requirement("CHN-6", "AUT-6", "PPL-2")
async def test_the_console_of_another_tenant_shows_no_run_and_has_no_button_for_it(here: Counter) -> None:
    run, xena = await waiting(here), Visitor(here.app)
    await xena.sign_in("xena")
    listed = await xena.get("/chains")
    assert (listed.status, run in text(listed)) == (200, False)
    assert (await xena.get(f"/chains/{run}")).status == 404
    for act in ("resume", "cancel"):
        assert (await xena.post(f"/chains/{run}/{act}")).status == 404
    assert (await xena.post(f"/chains/{run}/abandon", {"note": "mine"})).status == 404
    olga = Visitor(here.app)
    await olga.sign_in("olga")
    assert run in text(await olga.get(f"/chains/{run}"))


@requirement("CHN-6", "AUT-6", "IDM-2")
async def test_one_key_in_two_tenants_names_two_runs(here: Counter) -> None:
    ours = await here.call("chains.order", key="k-1")
    theirs = await here.call("chains.order", "coffee", by="mia", key="k-1")
    assert (ours.status, theirs.status) == (Status.DONE, Status.DONE)
    assert (ours.data, theirs.data) == ({"charge": "charge-tea"}, {"charge": "charge-coffee"})
    runs = [[run.id for run in await here.gateway.chains.list(here.caller(name))] for name in ("ada", "mia")]
    assert [len(found) for found in runs] == [1, 1]
    assert runs[0] != runs[1]


@requirement("CHN-6", "AUT-6", "APR-1")
async def test_only_the_operators_of_its_tenant_are_asked_about_a_step_and_let_its_run_go_on(
    here: Counter,
) -> None:
    await waiting(here)
    assert await here.gateway.approvals(here.caller("xena")) == []
    theirs = await here.call("chains.announce", by="mia", key="k-1")
    assert "waits for approval" in str(theirs.message)
    await here.decided()
    await here.settled("announce")
    [ours], [other] = [await here.gateway.chains.list(here.caller(name)) for name in ("ada", "mia")]
    assert (ours.state, other.state) == (RunState.COMPLETED, RunState.RUNNING)
    assert here.world.did == ["reserve", "reserve", "send"]


@requirement("CHN-6", "AUT-2")
async def test_a_chain_is_there_for_whoever_holds_its_scopes_in_whatever_tenant(tmp_path: Path) -> None:
    people = {**PEOPLE, **ACME, "noa": {"tenant": "acme", "scopes": ["shop:read"]}}
    auth = {"mode": "local", "people": people}
    async with counter("memory", tmp_path, ORDER, LOOK, auth=auth) as here:
        told = {name: (await here.client(name).get("/v1/chains")).json() for name in ("mia", "noa")}
        names = {name: {one["chain"] for one in said["chains"]} for name, said in told.items()}
        assert names == {"mia": {"order", "look"}, "noa": {"look"}}
        assert (await here.client("noa").get("/v1/chains/order")).status == 404


@requirement("SAG-4", "AUT-6")
async def test_what_one_tenant_has_shown_or_accepted_lets_no_other_tenant_start(tmp_path: Path) -> None:
    people = {
        "ada": {"scopes": ["shop:*"], "trust": 90},
        "ola": {"roles": ["operator"], "scopes": ["shop:*"]},
        **ACME,
    }
    async with proving(tmp_path, auth={"mode": "local", "people": people}) as gateway:
        chain, inversions = saga(RESERVE, CHARGE), gateway.chains.inversions
        await inversions.prove(person(gateway, "ola"), chain, TEA)
        await inversions.accept(person(gateway, "ola"), chain, "looked at")
        missing = {name: await inversions.open(name, chain) for name in ("default", "acme")}
        assert (missing["default"], len(missing["acme"])) == ([], 2)
