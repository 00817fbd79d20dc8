"""Does the bundle decide every case as its data file says, however it is cut up?"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cedarpy import is_authorized

from holdfast import Gateway
from holdfast.policy.facts import context, principal_entities
from holdfast.policy.schema import NOWHERE, schema, tool_entity
from holdfast.policy.shard import ALL_FACTS
from tests.policy.case import Case, bank, cases, cedar, judged
from tests.requirements import requirement

CASES = cases()


def name_of(case: Case) -> str:
    return case.case.replace(" ", "-")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[Gateway]:
    async with bank() as opened:
        yield opened


@requirement("POL-1", "POL-7")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_a_case_is_decided_as_it_says(gateway: Gateway, case: Case) -> None:
    decision = (await judged(gateway, case)).decision
    assert ("allow" if decision.allow else "deny", list(decision.policies)) == (case.decision, case.policies)
    assert (dict(decision.need), decision.floor) == (case.need, case.floor)
    assert case.says in "; ".join(decision.reasons)
    assert decision.id.startswith("pd_")
    assert decision.reasons


@requirement("DEC-6")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_the_policies_of_a_tool_decide_as_the_whole_bundle_would(gateway: Gateway, case: Case) -> None:
    facts = (await judged(gateway, case)).decision.facts
    assert facts is not None
    policy = cedar(gateway)
    cut = policy.judge(facts)
    if facts["left_out"]:
        assert not cut.allow  # the whole bundle could not even be asked: an argument is missing
        return
    listing = gateway._ports.catalog.exact(facts["tool"], facts["version"])
    assert listing is not None
    request = {
        "principal": {"type": "Agent", "id": facts["principal"]},
        "action": {"type": "Action", "id": case.tool},
        "resource": {"type": "Tool", "id": case.tool},
        "context": context(facts, ALL_FACTS),
    }
    entities = [*principal_entities(facts), tool_entity(listing.tool.contract, listing.upstream, NOWHERE)]
    text = "".join(statement.text for statement in policy.bundle.statements)
    whole = is_authorized(request, text, entities, schema(policy.subjects))  # which checks every type too
    assert whole.diagnostics.errors == []
    named = sorted(whole.diagnostics.id_annotations_by_reason.values())
    assert (whole.allowed, named) == (cut.allow, [p.id for p in cut.policies])


@requirement("DEC-6")
@pytest.mark.asyncio(loop_scope="module")
async def test_a_tool_is_judged_by_the_policies_that_can_cover_it_alone(gateway: Gateway) -> None:
    policy = cedar(gateway)
    everywhere = {"reads", "exports.weekend", "night", "little_trust", "guests", "eve", "last_day"}
    assert set(policy.shard("bank.note").policies) == everywhere | {"notes"}
    assert set(policy.shard("bank.export").policies) == everywhere | {"exports.analysts"}
    assert not any(id.startswith("transfers") for id in policy.shard("bank.close").policies)


def test_there_are_at_least_fifty_cases_and_each_policy_decides_one() -> None:
    assert len(CASES) >= 50
    assert len({case.case for case in CASES}) == len(CASES)
    deciding = {id for case in CASES for id in case.policies}
    assert deciding >= {"reads", "closing", "notes", "eve", "guests", "last_day", "little_trust", "night"}
    assert len(deciding) == 15
