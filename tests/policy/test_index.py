"""Are a tool's policies found whatever their scopes look like?"""

import pytest

from holdfast.policy.bundle import Policy
from holdfast.policy.check import check, crowded
from holdfast.policy.index import Index
from holdfast.policy.reads import covers
from tests.policy.case import bank, bundle_of, cedar
from tests.requirements import requirement

SCOPES = [
    "principal, action, resource",
    'principal, action == Action::"bank.note", resource',
    'principal, action in Action::"call", resource',
    'principal, action in [Action::"bank.note", Action::"bank.export"], resource',
    'principal, action in [Action::"bank.note", Action::"call"], resource',
    'principal, action, resource == Tool::"bank.note"',
    'principal, action, resource in Namespace::"bank"',
    'principal, action, resource in Namespace::"shop"',
    'principal, action, resource in Tool::"bank.export"',
    "principal, action, resource is Tool",
    'principal, action, resource is Tool in Namespace::"bank"',
    'principal, action == Action::"bank.note", resource == Tool::"bank.export"',
    'principal, action == Action::"bank.note", resource in Namespace::"bank"',
]
TEXT = "".join(f'@id("p{n}") permit ({scope});\n' for n, scope in enumerate(SCOPES))


def parsed() -> tuple[Policy, ...]:
    return check(bundle_of(TEXT), {}).policies


@requirement("DEC-6")
@pytest.mark.parametrize("tool", ["bank.note", "bank.export", "bank.close", "shop.note"])
def test_the_index_finds_what_looking_at_every_policy_finds(tool: str) -> None:
    policies, namespace = parsed(), tool.partition(".")[0]
    assert len(policies) == len(SCOPES)
    expected = [policy.id for policy in policies if covers(policy.tree, tool, namespace)]
    assert [policy.id for policy in Index(policies).of(tool, namespace)] == expected


@requirement("DEC-6")
def test_some_scopes_cover_a_tool_and_some_do_not() -> None:
    note = {policy.id for policy in Index(parsed()).of("bank.note", "bank")}
    assert note == {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p9", "p10", "p12"}


@requirement("DEC-6")
async def test_policies_of_other_tools_are_not_looked_at_when_a_tool_is_judged() -> None:
    others = "".join(
        f'@id("o{n}") forbid (principal, action == Action::"bank.close", resource) when {{ false }};\n'
        for n in range(200)
    )
    async with bank() as gateway:
        subjects = cedar(gateway).subjects
        policies = check(
            bundle_of(others + '@id("all") permit (principal, action, resource);'), subjects
        ).policies
        found = Index(policies)
        assert [policy.id for policy in found.of("bank.note", "bank")] == ["all"]
        assert len(found.of("bank.close", "bank")) == 201
        assert [said for said in crowded(policies, subjects) if "'bank.note'" in said] == []
        assert [said for said in crowded(policies, subjects) if "'bank.close'" in said] != []
