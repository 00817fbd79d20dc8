"""Is everything that is wrong with a bundle told at once, where it stands?"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.policy import BadBundle, Bundle, check, load, starter
from holdfast.policy.schema import Subject, subjects
from tests.policy.bank import TOOLS
from tests.policy.case import bundle_of, shipped, written
from tests.requirements import requirement


def catalog() -> MemoryCatalog:
    made = MemoryCatalog()
    made.register(offers("bank", TOOLS))
    return made


BANK = subjects(catalog().list())
TRANSFER = 'permit (principal, action == Action::"bank.transfer", resource)'


def problems(text: str) -> list[str]:
    return [str(problem) for problem in check(bundle_of(text), BANK).problems]


@requirement("POL-1")
@pytest.mark.parametrize("bundle", [shipped(), starter()], ids=lambda bundle: bundle.name)
def test_a_good_bundle_has_no_problems(bundle: Bundle) -> None:
    report = check(bundle, BANK)
    assert report.problems == ()
    assert len(report.policies) == len(bundle.statements) > 0


@requirement("POL-1")
@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("permit (principal, action, resource);", "1:1", "it has no name"),
        ('\n\n  @id("a b") permit (principal, action, resource);', "3:3", "'a b' is no good @id"),
        ('@id("a") permit (principal, action, resource) when { foo bar };', "1:58", "unexpected token `bar`"),
        ('@id("a") permit (principal, action, resource)\nwhen { true }', "1:1", "unexpected end of input"),
        ('@id("a")\npermit (principal == ?principal, action, resource);', "2:22", "it has a slot"),
        (
            '@id("a") @aproval("operator")\npermit (principal, action, resource);',
            "1:11",
            "unknown annotation '@aproval', did you mean '@approval'",
        ),
        (
            '@id("a") @approval("operator") forbid (principal, action, resource);',
            "1:11",
            "'@approval' belongs on a permit",
        ),
        ('@id("a") @approval("operator:x") permit (principal, action, resource);', "1:11", "names no roles"),
        ('@id("a") @approval("ops, ops:2") permit (principal, action, resource);', "1:11", "named twice"),
        (
            '@id("a")\npermit (principal, action == Action::"bank.transfr", resource);',
            "2:38",
            "there is no action 'bank.transfr' here; did you mean 'bank.transfer'",
        ),
        (
            '@id("a") permit (principal, action, resource == Tool::"shop.refund");',
            "1:55",
            "there is no tool 'shop.refund' here; known are bank.balance",
        ),
        (
            '@id("a") permit (principal, action, resource) when { resource in Namespace::"bnak" };',
            "1:77",
            "there is no namespace 'bnak' here; did you mean 'bank'",
        ),
        (
            '@id("a") permit (principal, action == Action::"call", resource);',
            "1:47",
            "no call is 'call' itself",
        ),
        (
            '@id("a") permit (principal, action, resource)\nwhen { resource.efect == "x" };',
            "2:17",
            "attribute `efect` on entity type `Tool` not found",
        ),
        (f'@id("a") {TRANSFER} when {{ context.args.memo == "x" }};', "1:94", "ask with 'has' first"),
        (f'@id("a") {TRANSFER} when {{ context.args.amount == "x" }};', "1:1", "not compatible"),
        (
            '@id("a") forbid (principal, action, resource) when { context.args.amount == decimal("1.0") };',
            "1:67",
            "narrow the scope to the tools that have it",
        ),
        (
            f'@id("a") {TRANSFER} when {{ context.args has amout && context.args.amout == decimal("1.0") }};',
            "1:98",
            "no tool in its scope has an argument 'amout'; did you mean 'amount'",
        ),
        ('@id("a") permit (principal in Rolle::"x", action, resource);', "1:31", "`Rolle`"),
        ('@id("a") permit (principal, action, resource) when { context.hours > 3 };', "1:62", "`hours`"),
    ],
)
def test_a_problem_is_told_with_its_place(text: str, place: str, told: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"a.cedar:{place}: ")
    assert told in found[0]


@requirement("POL-1")
def test_all_problems_of_all_files_are_told_at_once() -> None:
    bundle = Bundle(
        "test",
        {
            "a.cedar": '@id("one") permit (principal, action, resource);\npermit (principal);',
            "b/c.cedar": '// first line\n@id("one") forbid (principal, action, resource);\n@id("two") oops;',
        },
    )
    report = check(bundle, BANK)
    assert [str(problem.place) for problem in report.problems] == [
        "a.cedar:2:1",
        "b/c.cedar:2:5",
        "b/c.cedar:3:16",
    ]
    assert "taken by the policy at a.cedar:1:1" in report.problems[1].text
    assert [policy.id for policy in report.policies] == ["one"]


@requirement("CON-6")
@pytest.mark.parametrize(
    ("tool", "condition", "told"),
    [
        ("bank.note", 'context.args.card == "4111"', "argument 'card' of 'bank.note' cannot be read"),
        ("bank.note", 'context.args has card && context.args.card like "4*"', "marked 'pii'"),
        ("bank.note", "context has args.card", "marked 'pii'"),
        ("bank.transfer", "context.args has address.street", "argument 'address.street'"),
    ],
)
def test_a_policy_cannot_read_a_marked_field_nor_ask_whether_it_is_there(
    tool: str, condition: str, told: str
) -> None:
    found = problems(
        f'@id("a") forbid (principal, action == Action::"{tool}", resource) when {{ {condition} }};'
    )
    assert any(told in problem for problem in found), found


@requirement("CON-6")
def test_a_wide_scope_does_not_hide_a_marked_field() -> None:
    [found] = problems('@id("a") forbid (principal, action, resource) when { context.args has card };')
    assert "'card' of 'bank.note' cannot be read: it is marked 'pii', which policies may not read" in found


@requirement("CON-6")
def test_no_marked_field_is_in_the_schema() -> None:
    from holdfast.policy.schema import text

    written_down = text(BANK)
    assert "amount" in written_down
    assert "card" not in written_down
    assert "street" not in written_down


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ("name: Bank Rules", "'name' must be lower-case"),
        ("name: starter", "means something else here"),
        ("nam: bank", "unknown key 'nam'"),
        ("[1, 2]", "must be a mapping"),
        ("a: b: c", "not valid YAML"),
    ],
)
def test_a_bundle_file_that_cannot_be_used_is_a_problem(tmp_path: Path, about: str, told: str) -> None:
    written(tmp_path, '@id("a") permit (principal, action, resource);')
    (tmp_path / "bundle.yaml").write_text(about)
    assert told in str(check(load(tmp_path), BANK).problems[0])


def test_a_folder_without_policies_or_with_unreadable_ones_is_a_problem(tmp_path: Path) -> None:
    assert "no '.cedar' file" in str(check(load(tmp_path), BANK).problems[0])
    (tmp_path / "a.cedar").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in str(check(load(tmp_path), BANK).problems[0])
    with pytest.raises(BadBundle, match="there is no folder"):
        load(tmp_path / "nowhere")


def test_a_version_names_the_content_and_nothing_else(tmp_path: Path) -> None:
    one = load(written(tmp_path / "rules", '@id("a") permit (principal, action, resource);'))
    same = load(written(tmp_path / "other" / "rules", '@id("a") permit (principal, action, resource);'))
    more = load(written(tmp_path / "more" / "rules", '@id("b") permit (principal, action, resource);'))
    assert one.version == same.version == Bundle.stored(one.content).version
    assert one.version != more.version
    assert one.version.startswith("rules/")


@requirement("POL-1")
@pytest.mark.parametrize(
    "condition",
    [
        "context.args.amount > 5",
        "context.args.account == 5",
        'context.args has account && context.args.account == "7"',
        "context.args has limit && context.args.limit.x",
        "context.args == {a: 1}",
        "context == {a: 1}",
        'action == Action::"bank.note" && context.args.account == 5',
        "resource.name == 5",
        'context.args.address.country == "NL"',
    ],
)
def test_tools_that_are_typed_together_are_told_what_each_alone_would_be(condition: str) -> None:
    text = f'@id("a") forbid (principal, action, resource) when {{ {condition} }};'
    alone = {name: told(text, {name: BANK[name]}) for name in BANK}
    together = told(text, BANK)
    assert together.keys() == {said for told_of in alone.values() for said in told_of}
    for said, tools in together.items():
        assert not tools or tools == {name for name in BANK if said in alone[name]}


def told(text: str, tools: Mapping[str, Subject]) -> dict[str, set[str]]:
    """What is wrong with its types, and for which tools."""
    found: dict[str, set[str]] = {}
    for problem in check(bundle_of(text), tools).problems:
        what, _, rest = problem.text.partition(" (for ")
        if not what.startswith(("there is no action", "no tool in its scope")):  # says nothing about types
            found.setdefault(what, set()).update(rest.partition(")")[0].split(", ") if rest else ())
    return found
