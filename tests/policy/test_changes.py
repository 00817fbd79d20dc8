"""Would every change that 'why not?' proposes really do, and is it small?"""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Effect, Principal, Status, testing, tool
from holdfast.model.bounds import Bounds
from holdfast.policy.explain import explain
from holdfast.policy.obligations import union
from tests.policy.bank import TOOLS
from tests.policy.case import bank, written
from tests.policy.examined import built, examined
from tests.policy.test_overlap import POLICIES, calls
from tests.policy.test_overlap import written as policies_of
from tests.policy.test_why import ANA, why
from tests.requirements import requirement


@requirement("POL-7")
@settings(max_examples=40, deadline=None)
@given(POLICIES, st.randoms(use_true_random=False))
def test_with_any_proposed_change_applied_the_call_is_allowed(
    parts: list[tuple[str, str, bool]], chance: Any
) -> None:
    policy = built(policies_of(parts))
    for known in chance.sample(calls(policy), 20):
        found = explain(policy, known)
        for change in found.changes:
            again = policy.judge(change.known)
            assert again.allow, (change.text, known)
            if found.judged.allow:
                assert not union(p.duties for p in again.policies).need


REFUNDS = """
@id("small") permit (principal in Role::"support", action == Action::"bank.transfer", resource)
when { context.args.amount.lessThanOrEqual(decimal("50.0")) };
@id("large") @approval("operator")
permit (principal in Role::"support", action == Action::"bank.transfer", resource)
when { context.args.amount.greaterThan(decimal("50.0")) };
@id("day") permit (principal, action == Action::"bank.note", resource)
when { context.hour >= 14 && context.args.text like "ok*" };
@id("clean") permit (principal, action == Action::"bank.export", resource)
unless { context.labels.contains("confidential") };
"""


@requirement("POL-7")
async def test_what_would_do_without_approval_is_told_with_the_bound(tmp_path: Path) -> None:
    async with bank(written(tmp_path / "rules", REFUNDS)) as gateway:
        support = {"roles": frozenset({"support"})}
        said = await why(gateway, "bank.transfer", {"amount": 70, "to": []}, **support)
        plain = await why(gateway, "bank.transfer", {"amount": 50, "to": []}, **support)
    assert (said["allowed"], said["need"]) == (True, {"operator": 1})
    assert said["unasked"] == ("with 'amount' at most 50",)
    assert (plain["allowed"], "unasked" in plain) == (True, False)


@requirement("POL-7")
async def test_two_changes_are_told_where_none_alone_would_do(tmp_path: Path) -> None:
    async with bank(written(tmp_path / "rules", REFUNDS)) as gateway:
        both = await why(gateway, "bank.note", {"account": "a", "text": "no"})
        one = await why(gateway, "bank.note", {"account": "a", "text": "ok then"})
    assert both["changes"] == ("with 'text' like 'ok*', and wait until 2026-03-04 14:00 UTC",)
    assert one["changes"] == ("wait until 2026-03-04 14:00 UTC",)


@requirement("POL-7")
def test_what_was_seen_in_a_session_is_a_reason_to_use_another() -> None:
    policy = built(REFUNDS)
    known = {**calls(policy)[0], "labels": ["confidential"]}
    assert [change.text for change in explain(policy, known).changes] == [
        "call it in a session and task that have not seen 'confidential'"
    ]


@requirement("POL-7", "AUT-2")
async def test_a_missing_scope_or_delegation_is_told_with_what_policy_would_want_then(tmp_path: Path) -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:open"])
    async def vault(door: str) -> dict[str, int]:
        """Look into the vault."""
        return {}

    text = '@id("v") permit (principal in Role::"guard", action == Action::"bank.vault", resource);'
    config = {"policies": str(written(tmp_path / "rules", text))}
    explains = frozenset({"holdfast:explain"})
    async with testing.gateway(*TOOLS, vault, namespace="bank", config=config) as gateway:
        scope = await why(gateway, "bank.vault", {"door": "a"}, scopes=explains)
        narrow = Bounds(tools=frozenset({"bank.note"}))
        bound = await why(gateway, "bank.vault", {"door": "a"}, bounds=narrow, roles=frozenset({"guard"}))
        guard = Principal(
            user="ana", agent="bot", scopes=frozenset({"vault:open"}), roles=frozenset({"guard"})
        )
        done = await gateway.call("bank.vault", {"door": "a"}, principal=guard)
    assert scope["changes"] == ("grant 'ana' 'vault:open', and give 'ana' the role 'guard'",)
    assert bound["changes"] == ("delegate again, with the tool 'bank.vault'",)
    assert done.status is Status.DONE


@requirement("POL-7")
async def test_a_permit_for_previews_alone_does_not_make_the_call_allowed(tmp_path: Path) -> None:
    text = '@id("look") permit (principal, action, resource) when { context.preview };'
    async with bank(written(tmp_path / "rules", text)) as gateway:
        said = await why(gateway, "bank.note", {"account": "a", "text": "b"})
    assert (said["allowed"], said["gate"]) == (False, "policy")
    assert said["changes"] == ("ask for a preview only",)
    assert ANA.trust == 60


# --- the table ------------------------------------------------------------------------------


@requirement("POL-1")
def test_the_table_tells_what_is_different_with_each_policy_and_shows_a_call() -> None:
    text = (
        REFUNDS
        + '@id("night") forbid (principal, action == Action::"bank.transfer", resource) '
        + "when { context.hour >= 22 };"
        + '@id("never") permit (principal, action, resource) when { context.hour > 23 };'
    )
    told = {one.policy: (one.tools, one.without, one.with_, one.example) for one in examined(text).effects}
    transfer = ("bank.transfer",)
    assert told["small"] == (transfer, "refused", "allowed", "amount 50, role support")
    assert told["large"] == (transfer, "refused", "asks 1 x operator", "amount 50.0001, role support")
    assert told["night"][:3] in [(transfer, "allowed", "refused"), (transfer, "asks 1 x operator", "refused")]
    assert told["clean"] == (("bank.export",), "refused", "allowed", "any call")
    assert "never" not in told
