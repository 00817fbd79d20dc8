"""Is this call under a brake? PPL-4."""

from collections.abc import Mapping

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.restored import REFUSED, RESTORED
from holdfast.ports import Denied, Revoked

EVERYWHERE = "*"
"""Halts belong to the whole gateway, not to a tenant."""

REVOKED = "a credential or grant that this call rests on was revoked; ask for a new one"


def targets(call: Call) -> tuple[str, ...]:
    """Everything a halt may name to stop this call, and whatever it rests on that can be taken back."""
    contract = call.tool.contract
    principal = call.principal
    named: tuple[str, ...] = ("all", contract.identity.namespace, contract.tool, principal.id)
    if principal.rests_on:
        named = (*named, *principal.revocable)
    return (*named, RESTORED) if call.writes else named


def halted(halts: Mapping[str, tuple[str, str]], names: tuple[str, ...]) -> Denied | None:
    """The refusal when one of `names` is halted; `halts` says by whom and why."""
    for name in names:
        if name == RESTORED and name in halts:
            return Denied("authorize", Code.TOOL_UNAVAILABLE, REFUSED)
        if name in halts and ":" in name:  # a halt has no colon in its name
            return Revoked("authorize", Code.PERMISSION_DENIED, REVOKED)
        if name in halts:
            message = f"'{name}' is halted {describe(*halts[name])}; ask an operator to resume it"
            return Denied("authorize", Code.TOOL_UNAVAILABLE, message)
    return None


def describe(by: str, note: str) -> str:
    return f"by '{by}': {note}" if note else f"by '{by}'"
