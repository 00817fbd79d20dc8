"""Does the lint find what makes a model misuse a tool, and leave a good tool alone?"""

from typing import Any

import pytest

from holdfast.catalog.lint import MAX_PROPERTIES, Finding, lint
from holdfast.model.contract import Contract
from tests.catalog.contracts import INPUT, ORDER, get_order, low
from tests.requirements import requirement

EXAMPLE = {"description": "the usual", "arguments": {"order_id": "o-1"}}
MARKED = {**ORDER, "x-resource": "orders"}
GOOD_FACE = {
    "input_schema": {**INPUT, "properties": {"order_id": MARKED}},
    "description": "Add an internal tag to one order. Does not notify the customer.",
    "do_not_use_when": ["the customer asked for a refund"],
    "side_effects": "Writes an internal tag only.",
    "examples": [EXAMPLE],
}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", "description": "well described", **more}


def rules(contract: Contract) -> set[str]:
    return {finding.rule for finding in lint(contract)}


def with_properties(**properties: Any) -> Contract:
    return get_order(affordance={"input_schema": schema(**properties), "examples": [EXAMPLE]})


@requirement("CON-4")
def test_a_well_described_write_has_no_findings() -> None:
    assert lint(low(affordance=GOOD_FACE)) == ()


@requirement("CON-4")
@pytest.mark.parametrize(
    "name", ["do_stuff", "handle_billing", "update", "process", "manage_orders", "run", "misc", "run_v2"]
)
def test_a_name_that_says_nothing_is_found(name: str) -> None:
    found = lint(low(identity={"name": name}, affordance=GOOD_FACE))
    assert [(f.rule, f.path) for f in found] == [("vague-name", "identity.name")]


@requirement("CON-4")
@pytest.mark.parametrize(
    "name", ["fetch_account_v1", "create_invoice_draft", "void_invoice", "update_address", "run_report"]
)
def test_a_verb_with_its_object_is_a_good_name(name: str) -> None:
    assert "vague-name" not in rules(low(identity={"name": name}, affordance=GOOD_FACE))


@requirement("CON-4")
@pytest.mark.parametrize(
    ("part", "rule"),
    [
        ({"description": "Handles invoices."}, "short-description"),
        ({"description": "word " * 300}, "long-description"),
        ({"do_not_use_when": None}, "no-forbidden-uses"),
        ({"side_effects": None}, "no-side-effects"),
        ({"examples": None}, "no-examples"),
    ],
)
def test_a_gap_in_the_affordance_is_found(part: dict[str, Any], rule: str) -> None:
    assert rules(low(affordance={**GOOD_FACE, **part})) == {rule}


def test_a_read_need_not_disclose_side_effects() -> None:
    assert not rules(get_order()) & {"no-side-effects", "no-forbidden-uses"}


@requirement("CON-4")
@pytest.mark.parametrize(
    ("name", "part", "rule"),
    [
        ("customer", {"type": "string"}, "no-property-description"),
        ("id", text(), "generic-id"),
        ("reason", text(), "free-text"),
        ("order_status", text(), "free-text"),
        ("ticketPriority", text(), "free-text"),
        ("kind", {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "which"}, "free-text"),
        ("sql", text(), "raw-code"),
        ("query", text(description="SQL to run against the warehouse"), "raw-code"),
        ("shell_command", text(), "raw-code"),
        ("script", text(), "raw-code"),
        ("password", text(), "secret-parameter"),
        ("apiKey", text(), "secret-parameter"),
        ("access_token", text(), "secret-parameter"),
        ("authorization", text(), "secret-parameter"),
    ],
)
def test_a_dangerous_or_unclear_argument_is_found(name: str, part: dict[str, Any], rule: str) -> None:
    found = lint(with_properties(**{name: part}))
    assert Finding(rule, f"affordance.input_schema.properties.{name}", found[0].message) in found
    assert {f.rule for f in found} == {rule}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("reason", text(enum=["duplicate", "fraud"])),
        ("query", text(description="Words to look for in the documents")),
        ("tokens", {"type": "integer", "description": "how many"}),
        ("invoice_id", text()),
    ],
)
def test_a_bounded_clear_argument_is_left_alone(name: str, part: dict[str, Any]) -> None:
    assert lint(with_properties(**{name: part})) == ()


@requirement("CON-4")
def test_a_tool_with_too_many_properties_is_several_tools() -> None:
    assert lint(with_properties(**{f"field_{n}": text() for n in range(MAX_PROPERTIES)})) == ()
    assert rules(with_properties(**{f"field_{n}": text() for n in range(MAX_PROPERTIES + 1)})) == {
        "mega-tool"
    }


@requirement("CON-4")
def test_a_tool_that_chooses_its_operation_is_several_tools() -> None:
    found = lint(with_properties(action=text(enum=["create", "read", "update", "delete"])))
    assert [(f.rule, f.path) for f in found] == [("mega-tool", "affordance.input_schema.properties.action")]


@requirement("CON-4")
def test_arguments_inside_arguments_are_looked_at_too() -> None:
    nested = {"type": "object", "description": "an address", "properties": {"id": text()}}
    shared = {**schema(lines={"type": "array", "description": "all", "items": {"$ref": "#/$defs/line"}})}
    shared["$defs"] = {"line": schema(password=text())}
    assert rules(with_properties(address=nested)) == {"generic-id"}
    assert rules(get_order(affordance={"input_schema": shared, "examples": [EXAMPLE]})) == {
        "secret-parameter"
    }


@requirement("CON-4", "EXE-7")
def test_a_change_of_nobody_knows_which_one_is_found() -> None:
    unmarked = {**GOOD_FACE, "input_schema": INPUT}
    [found] = lint(low(affordance=unmarked))
    assert (found.rule, found.path) == ("unmarked-resource", "transactional.manifest")
    assert "'x-resource: orders'" in found.message
    whole = [{"resource": "orders", "operation": "UPDATE", "scope": "*"}]
    made = [{"resource": "orders", "operation": "CREATE", "scope": "one"}]
    for manifest in (whole, made):
        assert lint(low(affordance=unmarked, transactional={"manifest": manifest})) == ()
