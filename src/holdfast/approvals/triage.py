"""Which question comes first, which may be answered beside others, and is it the one that was read? APR-2.

Nothing here reads or writes. What may not be answered in bulk is what nobody should agree to from one line:
the critical, what cannot be taken back, what covers more than one call, and what does not show in full.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from holdfast.model.access import ELEVATION
from holdfast.model.approval import Approval
from holdfast.model.standing import PLAN, RULE
from holdfast.model.vocabulary import Effect, Undo
from holdfast.ports import Secrets

ONE_IN = 5
"""So many questions are approved together for one of them that was opened; at least one always is."""
_RANKS = {effect.value: rank for rank, effect in enumerate(Effect)}
_WORST = len(_RANKS) - 1
_PARTS: Mapping[str, tuple[str, ...]] = {
    "what would be done": ("action", "consequence", "arguments", "effects", "steps", "says", "for", "most"),
    "what was read before and after": ("before", "after"),
    "the risk": ("risk_class", "risk"),
    "whether it can be undone": ("undo", "rollback"),
    "the cost": ("cost",),
    "why somebody is asked": ("why", "floor"),
}


def severity(asked: Approval) -> int:
    """From harmless to critical; what cannot be told counts as the worst."""
    return _RANKS.get(str(asked.packet.get("risk_class")), _WORST)


def is_final(asked: Approval) -> bool:
    """Whether a yes is for good: nothing takes it back, or it is critical."""
    undo = str(asked.packet.get("undo", Undo.NONE.value)).split("; ")
    return Undo.NONE.value in undo or severity(asked) == _WORST


def alone(asked: Approval) -> str | None:
    """Why this one is approved on its own page only, or None."""
    packet = asked.packet
    if severity(asked) == _WORST:
        return "it is critical"
    if is_final(asked):
        return "it cannot be undone"
    if asked.ref.tool in (PLAN, RULE, ELEVATION):
        return "it stands for more than one call"
    if packet.get("hidden_characters") or packet.get("shortened"):
        return "it does not show in full on one line"
    return None


def urgency(asked: Approval, answerable: bool) -> tuple[bool, int, float, str]:
    """What a list is sorted by: mine to answer first, then the worst, then what ends soonest."""
    return (not answerable, -severity(asked), asked.expires_at, asked.id)


def seen(asked: Approval) -> str:
    """A name for exactly what a person was shown; another question, packet or need has another."""
    said = [asked.id, asked.fingerprint, asked.contract_digest, dict(asked.need), dict(asked.packet)]
    return sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:32]


def changed(before: Approval, after: Approval) -> tuple[str, ...]:
    """What is different about a question that took the place of another."""
    found = [] if before.need == after.need else ["who must say yes"]
    for name, members in _PARTS.items():
        if _said(before, members) != _said(after, members):
            found.append(name)
    if before.contract_digest != after.contract_digest:
        found.append("the contract of the tool")
    return tuple(found)


def sample(several: Sequence[Approval], person: str, secrets: Secrets) -> list[Approval]:
    """Which of them must be opened before all are approved: drawn by lot, for each person another lot.

    The same ones whenever they ask, so that asking again does not draw again.
    """

    def lot(asked: Approval) -> str:
        drawn = orjson.dumps([person, asked.id])
        return secrets.sign(asked.ref.tenant, "sample", drawn)

    return sorted(several, key=lot)[: -(-len(several) // ONE_IN)]


def _said(asked: Approval, members: Iterable[str]) -> list[Any]:
    return [asked.packet.get(name) for name in members]
