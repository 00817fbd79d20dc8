"""Contracts of a small shop, for chains to be checked against."""

from collections.abc import Sequence
from typing import Any

from holdfast.chains.check import Report, check
from holdfast.chains.declared import Chain
from holdfast.chains.reading import read
from holdfast.model.call import Principal
from holdfast.model.contract import (
    Affordance,
    Compensation,
    Contract,
    Identity,
    Runtime,
    Security,
    Sla,
    Transactional,
)
from holdfast.model.vocabulary import Effect, Floor, Undo

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def things(*required: str, **members: Any) -> dict[str, Any]:
    """A closed object; all of it is required where nothing else is said."""
    return {
        "type": "object",
        "properties": members,
        "required": list(required or members),
        "additionalProperties": False,
    }


def contract(
    name: str,
    takes: dict[str, Any],
    gives: dict[str, Any] | None = None,
    *,
    effect: Effect = Effect.READ_ONLY,
    undo: Undo = Undo.NONE,
    scopes: Sequence[str] = (),
    floor: Floor = Floor.NONE,
    undone_by: str | None = None,
    p99_ms: int = 100,
    availability: float = 0.9,
) -> Contract:
    namespace, _, short = name.partition(".")
    return Contract(
        identity=Identity(namespace=namespace, name=short, version="1.0.0"),
        affordance=Affordance(description=short, input_schema=takes, output_schema=gives or {}),
        runtime=Runtime(sla=Sla(p99_ms=p99_ms, availability=availability)),
        security=Security(required_scopes=tuple(scopes), approval_floor=floor),
        transactional=Transactional(
            effect=effect,
            undo=undo,
            compensation=None if undone_by is None else Compensation(tool=undone_by),
        ),
    )


LOW, HIGH = Effect.LOW_RISK_INTERNAL, Effect.HIGH_RISK_EXTERNAL
TOOLS = {
    one.tool: one
    for one in (
        contract("shop.find", things(sku=TEXT), things(id=TEXT, price=WHOLE)),
        contract("shop.other", things(sku=TEXT), things(id=TEXT, price=WHOLE), availability=0.5),
        contract(
            "shop.reserve",
            things(sku=TEXT),
            things(order=TEXT),
            effect=LOW,
            undo=Undo.EXACT,
            undone_by="shop.release",
        ),
        contract("shop.release", things(order=TEXT), effect=LOW, undo=Undo.EXACT, undone_by="shop.reserve"),
        contract(
            "pay.charge",
            things(order=TEXT, cents=WHOLE),
            things(charge=TEXT),
            effect=HIGH,
            scopes=["pay:write"],
        ),
        contract("pay.refund", things(charge=TEXT), effect=HIGH, scopes=["pay:write"]),
        contract("mail.send", things("to", to=TEXT, text=TEXT), effect=HIGH),
        contract("law.file", things(to=TEXT), effect=HIGH, floor=Floor.OPERATOR),
        contract("lake.look", things(q=TEXT)),
    )
}

INPUT = things("sku", sku=TEXT, mail=TEXT, many=WHOLE)


def chained(*steps: dict[str, Any], **said: Any) -> Chain:
    return read({"chain": "order", "input": INPUT, "steps": list(steps), **said})


def checked(chain: Chain, by: Principal | None = None, **said: Any) -> Report:
    return check(chain, lambda tool, version: TOOLS.get(tool), by, **said)


def faults(*steps: dict[str, Any], **said: Any) -> list[str]:
    return [str(fault) for fault in checked(chained(*steps, **said)).faults]


FIND = {"id": "find", "tool": "shop.find", "with": {"sku": "=input.sku"}}
RESERVE = {"id": "reserve", "tool": "shop.reserve", "with": {"sku": "=input.sku"}}
CHARGE = {"id": "charge", "tool": "pay.charge", "with": {"order": "=reserve.order", "cents": "=find.price"}}
