"""Contracts that are admitted as they stand, to be spoiled one part at a time."""

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.catalog.admission import Offer, admit_all
from holdfast.catalog.document import from_mapping
from holdfast.model.contract import Contract
from holdfast.model.tool import Tool

ORDER = {"type": "string", "description": "Order number, as in 'o-17'"}
INPUT = {"type": "object", "properties": {"order_id": ORDER}, "required": ["order_id"]}
READING = {"tool": "shop.get_order", "arguments": {"order_id": "=args.order_id"}}


def merge(base: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """A deep merge; None removes a key."""
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and key not in ("input_schema", "output_schema", "arguments"):
            merged[key] = merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def document(name: str, effect: str, **changes: Any) -> dict[str, Any]:
    base = {
        "identity": {"namespace": "shop", "name": name, "version": "1.0.0"},
        "affordance": {"description": f"Tool {name} of the shop, for tests", "input_schema": INPUT},
        "transactional": {"effect": effect},
    }
    return merge(base, changes)


_WRITE = {
    "transactional": {
        "undo": "exact",
        "manifest": [{"resource": "orders", "operation": "UPDATE", "scope": "order"}],
    },
    "idempotency": {"upstream": "none"},
}
_PROBE = {"read": READING, "committed": "state.data.status == 'done'"}


def get_order(**changes: Any) -> Contract:
    return from_mapping(document("get_order", "READ_ONLY", **changes))


def low(**changes: Any) -> Contract:
    return from_mapping(merge(document("tag_order", "LOW_RISK_INTERNAL", **_WRITE), changes))


def medium(**changes: Any) -> Contract:
    return from_mapping(merge(document("cancel_order", "MEDIUM_RISK_WRITE", **_WRITE), changes))


def high(**changes: Any) -> Contract:
    base = merge(
        document("send_mail", "HIGH_RISK_EXTERNAL", **_WRITE), {"security": {"approval_floor": "user"}}
    )
    return from_mapping(merge(merge(base, {"transactional": {"probe": _PROBE}}), changes))


def critical(**changes: Any) -> Contract:
    base = merge(
        document("refund", "CRITICAL_MUTATION", **_WRITE), {"security": {"approval_floor": "two_person"}}
    )
    promise = {"undo": "none", "preview": {}, "probe": _PROBE, "rollback_plan": "charge the card again"}
    return from_mapping(merge(merge(base, {"transactional": promise}), changes))


def nobody(_: str) -> Contract | None:
    return None


def knowing(*contracts: Contract) -> Callable[[str], Contract | None]:
    return {contract.tool: contract for contract in contracts}.get


def offer(contract: Contract, **parts: Any) -> Offer:
    return Offer(contract=contract, **{"upstream": contract.identity.namespace, **parts})


def admitted(contracts: Iterable[Contract]) -> list[Tool]:
    return admit_all([offer(contract) for contract in contracts], nobody)
