"""What did a call cost, and for what? TEL-5.

S1's six parts. A contract declares what a call costs, a tool may report what one really did cost, and the
time of people who were asked counts where the configuration gives it a price. Amounts are whole millionths,
so that sums are exact.
"""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from holdfast.model.call import Call
from holdfast.model.contract import Cost
from holdfast.model.limits import micros

PARTS = ("compute", "external_api", "storage_io", "network", "token", "human_review")
UNSPLIT = "external_api"
"""What `per_call` counts as where a contract says nothing of parts."""
OF_TASKS = ("model", "retrieval")
"""What a task costs beside its calls; its client reports it."""
REPORTED = "holdfast/cost"
"""The member of an MCP result's `_meta` in which a server says what the call cost."""
MOST = 1_000_000.0
"""No single report is believed beyond this: a slip of a tool must not drown a year's sums."""
_BY_TOOLS = frozenset(PARTS) - {"human_review"}


def declared(cost: Cost) -> Mapping[str, int]:
    """What one attempt costs, by part, in millionths."""
    if cost.parts:
        return {part: micros(amount) for part, amount in cost.parts.items()}
    if not cost.per_call:
        return {}
    part = cost.categories[0] if len(cost.categories) == 1 else UNSPLIT
    return {part if part in PARTS else UNSPLIT: micros(cost.per_call)}


def spent(call: Call) -> dict[str, Any] | None:
    """What a call that was tried has cost, as its record keeps it; None where that is nothing."""
    cost = call.tool.contract.runtime.cost
    if not (cost.per_call or call.reported or call.reviewed):  # nearly always
        return None
    parts = dict(_parts(call, declared(cost)))
    return {"currency": cost.currency, "parts": parts} if parts else None


def _parts(call: Call, each: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """A report is of the last attempt; those before it cost what was declared."""
    told = call.reported or {}
    for part in PARTS:
        amount = each.get(part, 0) * call.attempts
        if part in told:
            amount += told[part] - each.get(part, 0)
        if part == "human_review":
            amount += call.reviewed
        if amount:
            yield part, amount


def reported(said: object) -> Mapping[str, int] | None:
    """What a tool says its call cost, in millionths; None where it says nothing that can be believed.

    Either a number, or numbers by part. They are of the currency its contract names.
    """
    if isinstance(said, Mapping):
        told = {part: said[part] for part in said if part in _BY_TOOLS}
        if not told or len(told) != len(said):
            return None
    else:
        told = {UNSPLIT: said}
    if not all(_amount(amount) for amount in told.values()):
        return None
    return {part: micros(amount) for part, amount in told.items()}


def _amount(said: object) -> bool:
    return type(said) in (int, float) and isfinite(said) and 0 <= said <= MOST  # type: ignore[arg-type, operator]
