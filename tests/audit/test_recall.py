"""Is a past decision rebuilt from its records, and does it come out the same? AUD-3."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Gateway, Undo, tool
from holdfast.gateway.recall import Recalled
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.model.observation import Status
from holdfast.model.vocabulary import Floor
from holdfast.policy import Bundle
from tests.audit.world import ACME, ANA
from tests.lifecycle.world import opened
from tests.requirements import requirement
from tests.stored import ALL, place

BEN = Principal(user="ben", agent="cli", roles=frozenset({"operator"}), scopes=frozenset({"**"}), trust=60)
EVE = Principal(user="eve", agent="bot", scopes=frozenset({"things:*"}), trust=60)
PEOPLE = {"ana": {"roles": ["operator"], "scopes": ["**"]}, "ben": {"roles": ["operator"], "scopes": ["**"]}}
FORBID = """@id("reads")
permit(principal, action, resource);
@id("nothing-today")
forbid(principal, action, resource);
"""


@tool(
    effect=Effect.MEDIUM_RISK_WRITE,
    undo=Undo.EXACT,
    manifest=[("things", "UPDATE", "one")],
    idempotency={},
    floor=Floor.OPERATOR,
)
async def send(thing: str) -> dict[str, str]:
    """Send a thing away."""
    return {"thing": thing}


@tool(effect=Effect.READ_ONLY)
async def look(thing: str) -> dict[str, str]:
    """Look at a thing."""
    return {"thing": thing}


@pytest.fixture(params=ALL)
async def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with place(request.param, tmp_path), _opened(request.param, tmp_path) as ready:
        yield ready


@asynccontextmanager
async def _opened(store: str, folder: Path) -> AsyncIterator[Gateway]:
    config: dict[str, Any] = {"auth": {"people": PEOPLE}}
    async with opened(store, folder, [send, look], config=config) as ready:
        await ready.prepare()
        yield ready


def checks(found: Recalled) -> dict[str, bool | None]:
    return {check.what: check.same for check in found.checks}


@requirement("AUD-3")
async def test_a_call_that_ran_is_rebuilt_and_comes_out_the_same(gateway: Gateway) -> None:
    done = await gateway.call("test.look", {"thing": "t"}, principal=ANA)
    found = await gateway.log.recall(ANA, done.call_id)
    assert [step["kind"] for step in found.steps] == ["intent", "outcome"]
    assert (found.steps[0]["by"], found.steps[1]["status"]) == ("ana", "done")
    assert found.facts is not None
    assert found.facts["arguments"] == {"thing": "t"}
    assert checks(found) | {"arguments": None} == {
        "records": True,
        "contract": True,
        "arguments": None,
        "policy then": True,
        "policy now": True,
    }


@requirement("AUD-3", "AUD-2")
async def test_an_approved_call_is_rebuilt_with_who_said_yes(gateway: Gateway) -> None:
    held = await gateway.call("test.send", {"thing": "t"}, key="k", principal=ANA)
    assert held.status is Status.HELD
    assert held.approval is not None
    await gateway.decide(BEN, held.approval.id, True, "fine")
    done = await gateway.call("test.send", {"thing": "t"}, key="k", principal=ANA)
    assert done.status is Status.DONE
    found = await gateway.log.recall(ANA, done.call_id)
    kinds = [step["kind"] for step in found.steps]
    assert [kind for kind in kinds if kind != "hold"] == ["ask", "vote", "intent", "outcome"]
    vote = next(step for step in found.steps if step["kind"] == "vote")
    assert (vote["by"], vote["approve"]) == ("ben", True)
    assert checks(found)["approval"] is True
    assert found.same is True


@requirement("AUD-3", "AUD-2")
async def test_a_decision_is_judged_as_then_and_as_now(gateway: Gateway) -> None:
    done = await gateway.call("test.look", {"thing": "t"}, principal=ANA)
    bundle = Bundle(name="strict", files={"all.cedar": FORBID})
    assert await gateway.policies.promote(ANA, bundle)
    refused = await gateway.call("test.look", {"thing": "t"}, principal=ANA)
    assert refused.status is Status.REFUSED
    before = checks(await gateway.log.recall(ANA, done.call_id))
    assert (before["policy then"], before["policy now"]) == (True, False)
    after = await gateway.log.recall(ANA, refused.call_id)
    assert (checks(after)["policy then"], checks(after)["policy now"]) == (True, True)
    assert after.decision is not None
    assert after.decision["allow"] is False
    promotions = [entry.record.body for entry in await gateway._auditing.since("*", 0.0, -1, 100)]
    assert any("promote" in body and bundle.version in body for body in promotions)


@requirement("AUD-3", "CON-6", "AUD-4")
async def test_after_an_erasure_the_decision_stands_and_what_it_was_about_is_gone(gateway: Gateway) -> None:
    done = await gateway.call("test.look", {"thing": "t"}, principal=ACME)
    assert await gateway.log.erase(ANA, "acme")
    auditor = Principal(tenant="acme", user="zoe", agent="bot", scopes=frozenset({"holdfast:audit"}))
    found = await gateway.log.recall(auditor, done.call_id)
    assert found.facts is None
    assert found.decision is not None
    assert found.decision["allow"] is True
    assert (checks(found)["records"], checks(found)["policy then"], found.same) == (True, None, None)


@requirement("AUT-6")
async def test_the_log_is_for_operators_and_auditors_and_for_their_tenant_only(gateway: Gateway) -> None:
    done = await gateway.call("test.look", {"thing": "t"}, principal=ANA)
    for refused in (
        gateway.log.recall(EVE, done.call_id),
        gateway.log.prove(EVE, "w:1"),
        gateway.log.erase(EVE, "default"),
    ):
        with pytest.raises(Forbidden):
            await refused
    with pytest.raises(NotFound):
        await gateway.log.recall(ACME, done.call_id)
    entries = await gateway.log.of_call(ANA, done.call_id, -1, 10)
    with pytest.raises(NotFound):
        await gateway.log.prove(ACME, entries[0].record.id)
    assert (await gateway.log.prove(ANA, entries[0].record.id)).entry == entries[0]


@requirement("AUD-1", "CON-6")
async def test_no_argument_or_result_is_in_a_record(gateway: Gateway) -> None:
    await gateway.call("test.look", {"thing": "canary-argument"}, principal=ANA)
    for entry in await gateway.log.since(ANA, 0.0, -1, 100):
        assert "canary-argument" not in entry.record.body
