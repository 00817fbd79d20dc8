"""What holds before anybody has written a policy, and what holds whatever they write?"""

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Principal, Status
from holdfast.model.approval import needed
from tests.policy.case import Case, bank, cedar, judged, written
from tests.requirements import requirement

OPEN = '@id("open") permit (principal, action, resource);\n'
NOTE = {"tool": "bank.note", "arguments": {"account": "a", "text": "b"}}
CLOSE = {"tool": "bank.close", "arguments": {"account": "a"}, "task": "t"}
LOOK = {"tool": "bank.balance", "arguments": {"account": "a"}}


async def need(gateway: Any, **said: Any) -> dict[str, int] | None:
    """Who must approve; None when it is not allowed at all."""
    call = await judged(gateway, Case(case="x", decision="", policies=[], **said))
    if not call.decision.allow:
        return None
    return needed(call.tool.contract.security.approval_floor, call.decision)


@requirement("POL-2", "POL-3")
async def test_the_starter_allows_reads_and_undoable_writes_and_asks_for_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        async with bank(None) as gateway:
            assert cedar(gateway).version.startswith("starter/")
            assert await need(gateway, **LOOK, trust=0) == {}
            assert await need(gateway, **NOTE, trust=50) == {}
            assert await need(gateway, **NOTE, trust=49) == {"user": 1}
            assert await need(gateway, **CLOSE, trust=100) == {"operator": 1}
            assert await need(gateway, **CLOSE, trust=0) == {"operator": 1}
    assert "the starter policy is in force" in caplog.text


@requirement("POL-2")
@pytest.mark.parametrize(
    "config",
    [
        {"environment": "staging"},
        {"environment": "prod"},
        {
            "auth": {
                "mode": "api_key",
                "people": {"ana": {}},
                "keys": [{"id": "abcd", "hash": "sha256:" + "0" * 64, "user": "ana"}],
            }
        },
    ],
)
async def test_without_policies_elsewhere_everything_is_denied_and_it_says_so(
    config: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    anybody = Principal(user="ana", scopes=frozenset({"**"}), trust=100)
    with caplog.at_level(logging.WARNING, "holdfast"):
        async with bank(None, **config) as gateway:
            answer = await gateway.call("bank.balance", {"account": "a"}, principal=anybody)
            assert "no policy is loaded: every call is refused" in gateway.policies.notes()[0]
    assert (answer.status, answer.code) == (Status.REFUSED, Code.POLICY_VIOLATION)
    assert "no policy is loaded" in (answer.message or "")
    assert "no policy is loaded" in caplog.text


@requirement("POL-2")
async def test_policies_of_ones_own_put_the_starter_aside(tmp_path: Path) -> None:
    text = '@id("notes") permit (principal, action == Action::"bank.note", resource);'
    async with bank(written(tmp_path / "rules", text)) as gateway:
        assert await need(gateway, **NOTE) == {}
        assert await need(gateway, **LOOK) is None


@requirement("POL-3")
async def test_the_built_in_rule_holds_whatever_the_policies_say(tmp_path: Path) -> None:
    folder = written(tmp_path / "rules", OPEN)
    async with bank(folder) as gateway:
        assert await need(gateway, **LOOK) == {}  # never for reads by default
        assert await need(gateway, **NOTE, trust=0) == {}  # left to policy, which asks for nothing
        assert await need(gateway, **NOTE, environment="prod") == {}
        assert await need(gateway, **CLOSE) == {"operator": 1}  # it cannot be taken back


@requirement("POL-3")
async def test_a_policy_may_ask_for_more_also_of_reads(tmp_path: Path) -> None:
    text = """
    @id("open") permit (principal, action, resource);
    @id("looks") @approval("compliance")
    permit (principal, action, resource) when { resource.effect_rank == 0 };
    @id("closes") @approval("operator:3,legal") permit (principal, action == Action::"bank.close", resource);
    """
    async with bank(written(tmp_path / "rules", text)) as gateway:
        assert await need(gateway, **LOOK) == {"compliance": 1}
        assert await need(gateway, **CLOSE) == {"operator": 3, "legal": 1}
        assert await need(gateway, **NOTE) == {}


@requirement("POL-3")
async def test_a_critical_scope_always_needs_an_operator_in_prod(tmp_path: Path) -> None:
    from holdfast import testing, tool
    from tests.policy.bank import WRITE

    @tool(**WRITE, scopes=["ledger:write"])
    async def post(account: str) -> dict[str, int]:
        """Post to the ledger."""
        return {}

    said: dict[str, Any] = {"tool": "test.post", "arguments": {"account": "a"}, "trust": 100}
    config = {"policies": str(written(tmp_path / "rules", OPEN)), "critical_scopes": ["ledger:*"]}
    async with testing.gateway(post, config=config) as gateway:
        assert await need(gateway, **said) == {}
        assert await need(gateway, **said, environment="prod") == {"operator": 1}


@requirement("POL-1")
@pytest.mark.parametrize(
    ("home", "away", "allowed"), [("eu", "eu", True), ("eu", "us", False), (None, "us", True)]
)
async def test_residency_is_a_fact_of_the_gateway_and_of_each_upstream(
    tmp_path: Path, home: str | None, away: str, allowed: bool
) -> None:
    text = """
    @id("open") permit (principal, action, resource);
    @id("border") forbid (principal, action, resource)
    when { context has residency && resource has residency && context.residency != resource.residency };
    """
    config = {
        "facts": {"residency": home, "jurisdiction": "de"},
        "upstreams": {"bank": {"functions": "tests.policy.bank:TOOLS", "residency": away}},
    }
    async with bank(written(tmp_path / "rules", text), **config) as gateway:
        assert (await need(gateway, **LOOK) is not None) is allowed
        call = await judged(gateway, Case(case="x", decision="", policies=[], **LOOK))  # type: ignore[arg-type]
        assert call.decision.facts is not None
        assert call.decision.facts["jurisdiction"] == "de"


@requirement("POL-1")
async def test_an_agent_has_the_roles_of_its_person_in_policies_and_not_to_approve(tmp_path: Path) -> None:
    text = '@id("support") permit (principal in Role::"support", action, resource);'
    people = {"people": {"ana": {"roles": ["support"], "scopes": ["**"]}, "ben": {"scopes": ["**"]}}}
    async with bank(written(tmp_path / "rules", text), auth=people) as gateway:
        assert await need(gateway, **LOOK, user="ana") == {}
        assert await need(gateway, **LOOK, user="ben") is None
        assert await need(gateway, **LOOK, user="ana", tenant="elsewhere") is None
        agent = gateway.identity.authenticate({"x-holdfast-user": "ana", "x-holdfast-agent": "bot"})
    assert agent.roles == frozenset()
