"""Is this call under a brake? PPL-4."""

from collections.abc import Mapping

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.restored import REFUSED, RESTORED
from holdfast.ports import Denied

EVERYWHERE = "*"
"""Halts belong to the whole gateway, not to a tenant."""


def targets(call: Call) -> tuple[str, ...]:
    """Everything a halt may name to stop this call."""
    contract = call.tool.contract
    named = ("all", contract.identity.namespace, contract.tool, call.principal.id)
    return (*named, RESTORED) if call.writes else named


def halted(halts: Mapping[str, tuple[str, str]], names: tuple[str, ...]) -> Denied | None:
    """The refusal when one of `names` is halted; `halts` says by whom and why."""
    for name in names:
        if name == RESTORED and name in halts:
            return Denied("authorize", Code.TOOL_UNAVAILABLE, REFUSED)
        if name in halts:
            message = f"'{name}' is halted {describe(*halts[name])}; ask an operator to resume it"
            return Denied("authorize", Code.TOOL_UNAVAILABLE, message)
    return None


def describe(by: str, note: str) -> str:
    return f"by '{by}': {note}" if note else f"by '{by}'"
