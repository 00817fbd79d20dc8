"""Is a contract refused for every reason there is, and for no other?"""

from typing import Any

import pytest

from holdfast.catalog.admission import admit, admit_all
from holdfast.catalog.expressions import places
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError
from holdfast.model.expression import ExpressionError
from holdfast.model.tool import Tool
from tests.catalog.contracts import (
    INPUT,
    READING,
    admitted,
    critical,
    get_order,
    high,
    knowing,
    low,
    medium,
    nobody,
    offer,
)
from tests.requirements import requirement

KNOWN = knowing(get_order(), low(), medium())


def reasons(contract: Contract) -> tuple[str, ...]:
    with pytest.raises(AdmissionError) as caught:
        admit(contract, KNOWN)
    return caught.value.reasons


@requirement("CON-3")
@pytest.mark.parametrize("make", [get_order, low, medium, high, critical])
def test_a_contract_that_keeps_the_class_table_is_admitted(make: Any) -> None:
    tool = admit(make(), KNOWN)
    assert tool.contract.tool == make().tool


@requirement("CON-2")
def test_every_reason_is_told_at_once() -> None:
    told = reasons(
        critical(
            identity={"version": "one"},
            security={"approval_floor": "none", "required_scopes": ["orders write"]},
            transactional={"manifest": None, "preview": None, "probe": None, "rollback_plan": None},
            idempotency=None,
            runtime={"cache_ttl_s": 5, "timeout_ms": 6000},
            semantics=[{"holds": "args.order_id ==", "message": "broken"}],
            lookups={"order": {"tool": "shop.missing"}},
        )
    )
    for word in (
        "semantic version",
        "scope",
        "manifest",
        "preview",
        "probe",
        "rollback_plan",
        "idempotency",
        "cache_ttl_s",
        "timeout_ms",
        "semantics.0.holds",
        "shop.missing",
        "approval_floor",
    ):
        assert any(word in reason for reason in told), word


@requirement("CON-2")
def test_a_schema_that_cannot_be_used_is_refused_beside_other_reasons() -> None:
    spoiled = {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}
    told = reasons(low(affordance={"input_schema": spoiled}, idempotency=None))
    assert any("leaves the document" in reason for reason in told)
    assert any("idempotency" in reason for reason in told)


@requirement("CON-2")
@pytest.mark.parametrize("face", ["input_schema", "output_schema"])
def test_both_schemas_are_examined(face: str) -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}
    assert any(f"affordance.{face}" in reason for reason in reasons(low(affordance={face: schema})))


@requirement("CON-1")
def test_the_error_schema_is_part_of_the_contract_and_examined() -> None:
    told = reasons(low(error_contract={"error_schema": {"type": "nonsense"}}))
    assert any("error_contract.error_schema" in reason for reason in told)


def test_arguments_come_by_name() -> None:
    told = reasons(get_order(affordance={"input_schema": {"type": "array"}}))
    assert any("type: object" in reason for reason in told)


@requirement("CON-5")
def test_what_is_stored_is_the_closed_schema() -> None:
    contract = get_order()
    tool = admit(contract, nobody)
    assert "additionalProperties" not in contract.affordance.input_schema
    assert tool.contract.affordance.input_schema["additionalProperties"] is False
    assert tool.contract.digest != contract.digest
    assert not tool.input.is_valid({"order_id": "o-1", "extra": 1})


@requirement("CON-5")
def test_an_upstreams_own_schema_is_left_as_it_came() -> None:
    [tool] = admit_all([offer(get_order(), verbatim=True)], nobody)
    assert tool.contract.affordance.input_schema == INPUT
    assert tool.input.is_valid({"order_id": "o-1", "extra": 1})


MANIFEST = [{"resource": "o", "operation": "UPDATE", "scope": "o"}]
COMPENSATING = {"read": READING, "holds": "true", "on_failure": "compensate"}
WRONG_EXAMPLE = {"description": "wrong", "arguments": {"order": 1}}
MEDIUM_PLANLESS = {"transactional": {"undo": "none", "preview": {}}, "security": {"approval_floor": "user"}}


@requirement("CON-3")
@pytest.mark.parametrize(
    ("contract", "word"),
    [
        (low(transactional={"manifest": None}), "transactional.manifest"),
        (low(idempotency=None), "'idempotency'"),
        (low(observability={"audit_required": False}), "always recorded"),
        (low(transactional={"undo": "none", "preview": {}}), "approval_floor"),
        (low(transactional={"undo": "partial"}), "approval_floor"),
        (low(transactional={"undo": "none"}, security={"approval_floor": "user"}), "transactional.preview"),
        (medium(**MEDIUM_PLANLESS), "rollback_plan"),
        (high(security={"approval_floor": "none"}), "HIGH_RISK_EXTERNAL needs approval"),
        (high(transactional={"probe": None}), "checked afterwards"),
        (critical(security={"approval_floor": "operator"}), "needs two people"),
        (critical(transactional={"probe": None}), "'postconditions' or a 'probe'"),
        (critical(transactional={"rollback_plan": None}), "needs a way back"),
    ],
)
def test_what_its_effect_demands_must_be_declared(contract: Contract, word: str) -> None:
    assert [reason for reason in reasons(contract) if word in reason]
    assert len(reasons(contract)) == 1


@requirement("CON-3")
@pytest.mark.parametrize(
    "contract",
    [
        medium(
            **MEDIUM_PLANLESS | {"transactional": {"undo": "none", "preview": {}, "rollback_plan": "by hand"}}
        ),
        medium(transactional={"undo": "semantic"}),
        high(transactional={"probe": None, "verification": {"target": "the mailbox"}}),
        high(security={"approval_floor": "compliance"}),
        critical(security={"approval_floor": "compliance"}),
        critical(
            transactional={"rollback_plan": None, "compensation": {**READING, "tool": "shop.tag_order"}}
        ),
        low(identity={"status": "provisional"}, idempotency=None, transactional={"manifest": None}),
    ],
)
def test_each_way_of_meeting_a_demand_is_enough(contract: Contract) -> None:
    assert admit(contract, KNOWN).contract.tool == contract.tool


@pytest.mark.parametrize(
    ("contract", "word"),
    [
        (get_order(transactional={"manifest": MANIFEST}), "manifest"),
        (get_order(transactional={"probe": {"read": READING, "committed": "true"}}), "probe"),
        (low(runtime={"cache_ttl_s": 10}), "cache_ttl_s"),
        (get_order(runtime={"timeout_class": "interactive", "timeout_ms": 501}), "timeout_ms"),
        (get_order(identity={"version": "1.0"}), "semantic version"),
        (get_order(identity={"sunset_on": "next year"}), "sunset_on"),
        (get_order(identity={"deprecated_on": "2030-02-01", "sunset_on": "2030-01-01"}), "before"),
        (get_order(security={"required_scopes": ["a b"]}), "required_scopes"),
        (get_order(security={"tenant_argument": "customer"}), "tenant_argument"),
        (get_order(lookups={"args": READING}), "no usable name"),
        (low(idempotency={"upstream": "header"}), "idempotency.name"),
        (low(idempotency={"upstream": "header", "name": "two words"}), "no header name"),
        (low(idempotency={"upstream": "argument"}), "idempotency.name"),
        (low(transactional={"postconditions": [COMPENSATING]}), "compensat"),
        (get_order(affordance={"examples": [WRONG_EXAMPLE]}), "examples.0"),
    ],
)
def test_parts_that_disagree_are_refused(contract: Contract, word: str) -> None:
    assert any(word in reason for reason in reasons(contract))


def test_the_argument_of_the_key_must_take_a_string() -> None:
    schema = {"type": "object", "properties": {"order_id": {"type": "integer"}}}
    contract = low(
        idempotency={"upstream": "argument", "name": "order_id"}, affordance={"input_schema": schema}
    )
    assert any("takes no string" in reason for reason in reasons(contract))


def test_a_narrower_timeout_is_admitted() -> None:
    assert admit(get_order(runtime={"timeout_ms": 200}), nobody).contract.runtime.timeout_s == 0.2


# ---------------------------------------------------------------- what a contract relies on


def reading(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


@requirement("CON-3")
@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"lookups": {"o": reading("shop.missing")}}, "not in the catalog"),
        ({"lookups": {"o": reading("shop.tag_order", order_id="x")}}, "only READ_ONLY"),
        ({"state": {"read": reading("shop.get_order", order="x")}}, "does not take"),
        ({"state": {"read": reading("shop.get_order")}}, "requires"),
        ({"transactional": {"preview": {"read": reading("shop.missing")}}}, "preview.read"),
        ({"transactional": {"probe": {"read": reading("shop.missing"), "committed": "true"}}}, "probe.read"),
        (
            {"transactional": {"postconditions": [{"read": reading("shop.missing"), "holds": "true"}]}},
            "postconditions.0",
        ),
        ({"transactional": {"compensation": reading("shop.missing")}}, "not in the catalog"),
        ({"transactional": {"compensation": reading("shop.get_order", order_id="x")}}, "undo nothing"),
        ({"transactional": {"compensation": reading("shop.tag_order", order_id="x")}}, "the tool itself"),
        ({"transactional": {"compensation": reading("shop.cancel_order", nr="x")}}, "does not take"),
    ],
)
def test_the_tools_it_relies_on_must_be_there_and_fit(part: dict[str, Any], word: str) -> None:
    assert any(word in reason for reason in reasons(low(**part)))


@requirement("CON-3")
def test_a_compensation_is_itself_idempotent() -> None:
    sloppy = medium(identity={"status": "provisional"}, idempotency=None)
    contract = low(transactional={"compensation": reading("shop.cancel_order", order_id="=args.order_id")})
    with pytest.raises(AdmissionError, match="undoing twice must be harmless"):
        admit(contract, knowing(sloppy))


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (get_order(security={"approval_floor": "user"}), "waits for approval"),
        (get_order(lookups={"o": reading("shop.other")}), "may not read further"),
    ],
)
def test_a_reading_neither_waits_nor_reads_on(target: Contract, word: str) -> None:
    with pytest.raises(AdmissionError, match=word):
        admit(low(lookups={"order": READING}), knowing(target))


@requirement("CON-2")
def test_tools_offered_together_may_rely_on_each_other_in_any_order() -> None:
    forward = admitted([critical(), get_order()])
    backward = admitted([get_order(), critical()])
    assert {tool.contract.digest for tool in forward} == {tool.contract.digest for tool in backward}


@requirement("CON-2")
def test_a_batch_is_refused_whole_and_names_each_tool() -> None:
    with pytest.raises(AdmissionError) as caught:
        admit_all(
            [offer(get_order()), offer(low(idempotency=None)), offer(high(transactional={"probe": None}))],
            nobody,
        )
    assert caught.value.tool == "shop.tag_order, shop.send_mail"
    assert [reason.partition(":")[0] for reason in caught.value.reasons] == [
        "'shop.tag_order'",
        "'shop.send_mail'",
    ]


# ---------------------------------------------------------------- expressions

WITH_EVERY_EXPRESSION = {
    "lookups": {"order": reading("shop.get_order", order_id="=args.order_id")},
    "semantics": [{"holds": "order.data.open", "message": "m"}],
    "sanity": [{"holds": "result.n > 0", "message": "m"}],
    "error_contract": {"in_band": "result.error"},
    "state": {
        "read": reading("shop.get_order", order_id="=args.order_id"),
        "version": "state.etag",
        "rules": [{"holds": "state.open", "message": "m"}],
    },
    "transactional": {
        "preview": {"read": reading("shop.get_order", order_id="=args.order_id")},
        "compensation": reading("shop.cancel_order", order_id="=args.order_id"),
        "postconditions": [
            {"read": reading("shop.get_order", order_id="=args.order_id"), "holds": "state.ok"}
        ],
        "probe": {
            "read": reading("shop.get_order", order_id="=key"),
            "committed": "state.key == key",
            "result": "state.result",
        },
    },
}


def swapped(node: Any, path: list[str], source: str) -> Any:
    """The document with the expression at a path replaced."""
    if not path:
        return {"order_id": f"={source}"} if isinstance(node, dict) else source
    head, *rest = path
    if isinstance(node, list):
        return [swapped(item, rest, source) if str(i) == head else item for i, item in enumerate(node)]
    return {key: swapped(value, rest, source) if key == head else value for key, value in node.items()}


EVERY_PLACE = [path for path, _, _ in places(low(**WITH_EVERY_EXPRESSION))]


@requirement("CON-2")
@pytest.mark.parametrize("path", EVERY_PLACE)
def test_an_expression_over_unknown_names_is_refused_wherever_it_stands(path: str) -> None:
    contract = low(**swapped(WITH_EVERY_EXPRESSION, path.split("."), "nobody.knows"))
    told = reasons(contract)
    assert len(told) == 1
    assert f"'{path}'" in told[0]
    with pytest.raises(ExpressionError, match="unknown names"):
        Tool.compile(contract)


def test_every_expression_of_a_tool_is_compiled() -> None:
    tool = admit(low(**WITH_EVERY_EXPRESSION), KNOWN)
    assert len(EVERY_PLACE) == 14
    assert tool.compensation is not None
    assert tool.compensation.arguments.fill({"args": {"order_id": "o-1"}, "result": {}}) == {
        "order_id": "o-1"
    }
