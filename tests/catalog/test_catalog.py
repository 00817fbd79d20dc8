"""Does a name and a spec lead to the right version, and can no version lie about its step?"""

from typing import Any

import pytest

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError
from holdfast.model.vocabulary import ToolStatus
from tests.catalog.contracts import INPUT, ORDER, get_order, low, offer
from tests.requirements import requirement

TOOL = "shop.get_order"


def version(number: str, status: str = "active", **changes: Any) -> Contract:
    return get_order(identity={"version": number, "status": status}, **changes)


def catalog(*contracts: Contract, pins: dict[str, str] | None = None) -> MemoryCatalog:
    made = MemoryCatalog(pins)
    made.register([offer(contract) for contract in contracts])
    return made


def found(tools: MemoryCatalog, spec: str | None) -> str | None:
    listing = tools.find(TOOL, spec)
    return None if listing is None else listing.tool.contract.version


SHELF = catalog(
    version("1.0.0", "sunset"),
    version("1.4.0"),
    version("2.0.0"),
    version("2.1.0"),
    version("2.2.0", "deprecated"),
)


@requirement("REG-1", "REG-4")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, "2.1.0"),
        ("LATEST", "2.1.0"),
        ("2.0.0", "2.0.0"),
        ("1.x", "1.4.0"),
        ("^2.0.0", "2.1.0"),
        (">=1 <2", "1.4.0"),
        ("2.2.x", "2.2.0"),
        ("1.0.0", "1.0.0"),
        ("1.0.x", None),
        ("9.0.0", None),
        ("3.x", None),
    ],
)
def test_several_versions_stand_side_by_side(spec: str | None, expected: str | None) -> None:
    assert found(SHELF, spec) == expected
    assert found(SHELF, spec) == expected  # and the same when asked again


def test_an_unknown_name_has_no_listing() -> None:
    assert SHELF.find("shop.nothing", None) is None
    assert SHELF.exact("shop.nothing", "1.0.0") is None


def test_a_spec_that_cannot_be_read_says_what_can() -> None:
    with pytest.raises(ValueError, match="is not a version spec"):
        SHELF.find(TOOL, "newest please")


@requirement("REG-1")
@pytest.mark.parametrize("status", list(ToolStatus))
def test_a_version_is_found_with_its_status_whatever_that_is(status: ToolStatus) -> None:
    tools = catalog(version("1.0.0", status.value))
    for spec in (None, "1.0.0"):
        listing = tools.find(TOOL, spec)
        assert listing is not None
        assert listing.status is status


@requirement("REG-1")
def test_a_status_changes_at_once() -> None:
    tools = catalog(version("1.0.0"), version("1.1.0"))
    assert found(tools, None) == "1.1.0"
    assert tools.set_status(TOOL, "1.1.0", ToolStatus.REVOKED)
    assert found(tools, None) == "1.0.0"
    assert found(tools, "1.1.0") == "1.1.0"
    assert not tools.set_status(TOOL, "7.0.0", ToolStatus.REVOKED)


@requirement("REG-1")
def test_every_change_is_counted() -> None:
    tools = catalog(version("1.0.0"))
    seen = [tools.changes]
    tools.set_status(TOOL, "1.0.0", ToolStatus.DEPRECATED)
    seen.append(tools.changes)
    tools.register([offer(version("1.1.0"))])
    seen.append(tools.changes)
    tools.replace("shop", [offer(version("1.1.0"))])
    seen.append(tools.changes)
    assert seen == sorted(set(seen))
    tools.find(TOOL, None)
    assert not tools.set_status(TOOL, "9.0.0", ToolStatus.DEPRECATED)
    assert tools.changes == seen[-1]


@requirement("REG-1")
def test_a_new_version_is_seen_at_once() -> None:
    tools = catalog(version("1.0.0"))
    assert found(tools, "1.x") == "1.0.0"
    tools.register([offer(version("1.1.0"))])
    assert found(tools, "1.x") == "1.1.0"
    assert [listing.tool.contract.version for listing in tools.list()] == ["1.0.0", "1.1.0"]


@requirement("REG-4")
def test_a_pin_holds_for_everybody() -> None:
    tools = catalog(version("1.0.0"), version("2.0.0"), version("2.1.0"), pins={TOOL: "2.0.0"})
    assert found(tools, None) == "2.0.0"
    assert found(tools, "^2.0.0") == "2.0.0"
    assert found(tools, "1.0.0") is None
    assert tools.unmet_pins() == {}


@requirement("REG-4")
def test_a_claims_own_version_is_found_past_the_pin() -> None:
    tools = catalog(version("1.0.0"), version("2.0.0"), pins={TOOL: "2.x"})
    listing = tools.exact(TOOL, "1.0.0")
    assert listing is not None


def test_a_pin_that_nothing_answers_is_reported() -> None:
    tools = catalog(version("1.0.0"), pins={TOOL: "3.x", "shop.other": "1.x"})
    assert tools.unmet_pins() == {TOOL: "3.x", "shop.other": "1.x"}
    assert tools.find(TOOL, None) is None


def test_a_pin_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="is not a version spec"):
        MemoryCatalog({TOOL: "soon"})


@requirement("REG-1")
def test_a_namespace_belongs_to_one_upstream() -> None:
    tools = catalog(version("1.0.0"))
    with pytest.raises(AdmissionError, match="belongs to upstream 'shop'"):
        tools.register([offer(low(), upstream="elsewhere")])


@requirement("CON-2", "REG-1")
def test_a_version_means_one_contract_for_ever() -> None:
    tools = catalog(version("1.0.0"))
    with pytest.raises(AdmissionError, match="is taken by another contract"):
        tools.register([offer(version("1.0.0", affordance={"description": "Something else entirely"}))])
    tools.register([offer(version("1.0.0"))])
    assert len(tools.list()) == 1


def test_a_refused_batch_changes_nothing() -> None:
    tools = catalog(version("1.0.0"))
    with pytest.raises(AdmissionError):
        tools.register([offer(version("1.1.0")), offer(low(idempotency=None))])
    assert [listing.tool.contract.version for listing in tools.list()] == ["1.0.0"]


def schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "affordance": {"input_schema": {"type": "object", "properties": properties, "required": required}}
    }


ADDED_OPTIONAL = schema(["order_id"], order_id=ORDER, verbose={"type": "boolean"})
ADDED_REQUIRED = schema(["order_id", "shop"], order_id=ORDER, shop=ORDER)
RETYPED = schema(["order_id"], order_id={"type": "integer"})


@requirement("REG-5")
@pytest.mark.parametrize(
    ("later", "changes"),
    [
        ("1.1.0", ADDED_OPTIONAL),
        ("2.0.0", ADDED_REQUIRED),
        ("2.0.0", RETYPED),
        ("1.0.1", {"affordance": {"description": "The same tool, better described"}}),
        ("2.0.0", {"security": {"required_scopes": ["orders:read"]}}),
    ],
)
def test_a_step_as_large_as_the_change_is_taken(later: str, changes: dict[str, Any]) -> None:
    assert found(catalog(version("1.0.0"), version(later, **changes)), None) == later


@requirement("REG-5")
@pytest.mark.parametrize(
    ("later", "changes", "path"),
    [
        ("1.0.1", ADDED_OPTIONAL, "/input/verbose"),
        ("1.1.0", ADDED_REQUIRED, "/input/shop"),
        ("1.1.0", RETYPED, "/input/order_id"),
        ("1.1.0", {"security": {"required_scopes": ["orders:read"]}}, "/security/required_scopes"),
        ("1.1.0", {"semantics": [{"holds": "args.order_id != ''", "message": "m"}]}, "/semantics"),
    ],
)
def test_a_change_larger_than_its_step_is_refused_naming_the_path(
    later: str, changes: dict[str, Any], path: str
) -> None:
    tools = catalog(version("1.0.0"))
    with pytest.raises(AdmissionError, match=f"'{path}'"):
        tools.register([offer(version(later, **changes))])


@requirement("REG-5")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"transactional": {"effect": "MEDIUM_RISK_WRITE"}}, "/transactional/effect"),
        ({"transactional": {"undo": "semantic"}}, "/transactional/undo"),
        ({"idempotency": {"upstream": "meta"}}, "/idempotency"),
    ],
)
def test_another_effect_undo_or_idempotency_is_a_breaking_change(changes: dict[str, Any], path: str) -> None:
    tools = MemoryCatalog()
    tools.register([offer(low())])
    with pytest.raises(AdmissionError, match=f"'{path}' changed: needs a major version"):
        tools.register([offer(low(identity={"version": "1.1.0"}, **changes))])
    tools.register([offer(low(identity={"version": "2.0.0"}, **changes))])


@requirement("REG-5")
def test_a_version_between_two_is_held_to_both_neighbours() -> None:
    tools = catalog(version("1.0.0"), version("1.2.0"))
    with pytest.raises(AdmissionError) as caught:
        tools.register([offer(version("1.1.0", **ADDED_OPTIONAL))])
    assert any("'1.2.0'" in reason and "/input/verbose" in reason for reason in caught.value.reasons)


def test_what_callers_ask_for_is_not_remembered_without_end() -> None:
    tools = catalog(version("1.0.0"))
    for number in range(10_000):
        tools.find(TOOL, f"{number}.x")
        tools.find(f"shop.unknown_{number}", None)
    assert len(tools._resolved) < 5_000


def test_input_schemas_are_compared_as_they_are_enforced() -> None:
    said: dict[str, Any] = {"affordance": {"input_schema": {**INPUT, "additionalProperties": False}}}
    assert found(catalog(version("1.0.0"), version("1.0.1", **said)), None) == "1.0.1"
