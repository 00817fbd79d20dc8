"""Does a policy that cannot be judged forbid?"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from holdfast import Code, Effect, Status, tool
from holdfast.catalog.adapt import offers
from holdfast.policy import CedarPolicy
from tests.policy.case import Case, bank, bundle_of, cedar, judged, written
from tests.requirements import requirement

OPEN = '@id("open") permit (principal, action, resource);\n'
OVERFLOW = """
@id("overflow")
forbid (principal, action == Action::"bank.export", resource)
when { context.args has limit && context.args.limit * 9223372036854775807 > 0 };
"""
EXPORT = Case(case="export", tool="bank.export", arguments={"table": "loans"}, decision="deny", policies=[])
BALANCE = Case(case="look", tool="bank.balance", arguments={"account": "a"}, decision="allow", policies=[])


@requirement("POL-1", "POL-2")
async def test_a_forbid_that_fails_to_evaluate_denies_and_is_named(tmp_path: Path) -> None:
    async with bank(written(tmp_path / "rules", OPEN + OVERFLOW)) as gateway:
        denied = await gateway.call("bank.export", {"table": "loans"}, principal=EXPORT.principal)
        other = await gateway.call("bank.balance", {"account": "a"}, principal=EXPORT.principal)
    assert (denied.status, denied.code) == (Status.REFUSED, Code.POLICY_VIOLATION)
    assert "policy 'overflow' could not be judged, so it forbids" in (denied.message or "")
    assert denied.policy_decision_id
    assert other.status is Status.DONE


@requirement("POL-2")
async def test_a_permit_that_fails_beside_one_that_holds_denies_too(tmp_path: Path) -> None:
    text = OPEN + OVERFLOW.replace("forbid", "permit")
    async with bank(written(tmp_path / "rules", text)) as gateway:
        decision = (await judged(gateway, EXPORT)).decision
    assert (decision.allow, decision.policies) == (False, ())


@requirement("POL-1")
async def test_a_tool_whose_policies_no_longer_fit_is_shut_and_the_others_are_not() -> None:
    @tool(effect=Effect.READ_ONLY, version="2.0.0", name="export")
    async def renamed(name: str) -> dict[str, int]:
        """Export a table by another word."""
        return {}

    text = (
        OPEN
        + '@id("tables") forbid (principal, action == Action::"bank.export", resource)'
        + (' when { context.args.table == "secrets" };')
    )
    async with bank(None) as gateway:
        ports = gateway._ports
        policy = CedarPolicy(bundle_of(text), ports.catalog, ports.ids)
        export, balance = [(await judged(gateway, case)) for case in (EXPORT, BALANCE)]
        assert policy.decide(export).allow
        ports.catalog.register(offers("bank", [renamed]))  # type: ignore[attr-defined]  # the one in memory
        now = await judged(gateway, replace(EXPORT, arguments={"name": "x"}))
        assert not policy.decide(now).allow
        assert "policy 'tables' does not fit this tool any more" in policy.decide(now).reasons[0]
        assert not policy.decide(export).allow
        assert policy.decide(balance).allow


@requirement("POL-1")
async def test_an_argument_that_cannot_be_read_is_no_matter_where_no_policy_looks_at_it(
    tmp_path: Path,
) -> None:
    odd = Case(
        case="odd", tool="bank.transfer", arguments={"amount": 0.123456, "to": []}, decision="", policies=[]
    )
    async with bank(written(tmp_path / "rules", OPEN)) as gateway:
        assert (await judged(gateway, odd)).decision.allow
        assert (await judged(gateway, odd)).decision.facts is not None
    async with bank() as gateway:
        assert not (await judged(gateway, odd)).decision.allow


@requirement("POL-1")
async def test_names_in_arguments_cannot_stand_for_cedar_values() -> None:
    """`__entity` and `__extn` mean something to Cedar: whoever proposes must not be able to say them."""
    odd: list[object] = [{"__entity": {"type": "Role", "id": "treasury"}}, "__extn"]
    async with bank() as gateway:
        policy = cedar(gateway)
        plan, gone = policy.subjects["bank.transfer"].arguments, list[str]()
        said = plan.convert({"amount": 5, "to": odd, "__entity": {"type": "Role", "id": "x"}}, (), gone)
    assert set(said) == {"amount"}
    assert gone == ["/to/0"]


@requirement("POL-7")
async def test_a_decision_keeps_its_facts_and_no_marked_value() -> None:
    note = Case(
        case="note",
        tool="bank.note",
        arguments={"account": "a-1", "text": "hello", "card": "4111-1111"},
        decision="allow",
        policies=["notes"],
    )
    async with bank() as gateway:
        decision = (await judged(gateway, note)).decision
        assert decision.facts is not None
        assert decision.facts["arguments"] == {"account": "a-1", "text": "hello"}
        assert "4111" not in repr(decision)
        again = cedar(gateway).judge(dict(decision.facts))
    assert (again.allow, [p.id for p in again.policies]) == (True, ["notes"])


@requirement("POL-1")
async def test_what_was_judged_before_is_judged_the_same_and_time_is_never_forgotten() -> None:
    noon = Case(
        case="note",
        tool="bank.note",
        arguments={"account": "a", "text": "b"},
        environment="prod",
        decision="",
        policies=[],
    )
    async with bank() as gateway:
        seen = [
            (await judged(gateway, replace(noon, at=datetime(2026, 3, 4, hour, tzinfo=UTC)))).decision.allow
            for hour in (12, 23, 12, 3)
        ]
    assert seen == [True, False, True, False]
