"""Where does one listed tool stand: new, as accepted, changed harmlessly, or in quarantine?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.catalog.imports.descriptor import digest
from holdfast.catalog.imports.drift import Drift, compare
from holdfast.catalog.imports.lock import COSMETIC, FIRST_USE, Entry, Pending
from holdfast.catalog.imports.poison import Suspicion, suspicions


@dataclass(frozen=True, slots=True)
class Standing:
    entry: Entry
    descriptor: Mapping[str, Any]
    """What is in force: the listed descriptor, or in quarantine the one that was accepted."""
    quarantine: Drift | str | None = None
    by: str = FIRST_USE
    """Who accepted the descriptor, should it make a new version."""
    report: str | None = None


def stand(
    entry: Entry, descriptor: Mapping[str, Any], suspected: list[Suspicion], doubt: str | None, now: str
) -> Standing:
    """`doubt`: why a newcomer's name alone keeps it in quarantine."""
    waiting = entry.pending
    if waiting is not None and waiting.accepted_by is not None and waiting.digest == digest(descriptor):
        return Standing(replace(entry, pending=None), descriptor, by=waiting.accepted_by)
    if entry.current is None:
        return _newcomer(entry, descriptor, suspected, doubt, now)
    drift = compare(entry.current.descriptor, descriptor)
    fresh = [] if drift.kind == "same" else _fresh(entry.current.descriptor, suspected)
    if drift.kind == "material" or fresh:
        why = "; ".join(map(str, fresh)) or "what it promises changed"
        pending = _pending(entry, descriptor, why, drift.text(), now)
        return Standing(replace(entry, pending=pending), entry.current.descriptor, quarantine=drift)
    report = None
    if drift.kind == "cosmetic":
        report = f"changed cosmetically at {_paths(drift)}; accepted"
    elif waiting is not None:
        report = "is again what was accepted; no longer in quarantine"
    return Standing(replace(entry, pending=None), descriptor, by=COSMETIC, report=report)


def _newcomer(
    entry: Entry, descriptor: Mapping[str, Any], suspected: list[Suspicion], doubt: str | None, now: str
) -> Standing:
    unseen = [str(one) for one in suspected if one.degree == "hidden"]
    why = "; ".join([*([doubt] if doubt else []), *unseen])
    if not why:
        return Standing(replace(entry, pending=None), descriptor)
    diff = compare({}, descriptor).text()
    return Standing(
        replace(entry, pending=_pending(entry, descriptor, why, diff, now)), descriptor, quarantine=why
    )


def _fresh(accepted: Mapping[str, Any], suspected: list[Suspicion]) -> list[Suspicion]:
    """Suspicions that the accepted descriptor did not raise."""
    known = {(one.path, one.what) for one in suspicions(accepted)}
    return [one for one in suspected if one.degree != "note" and (one.path, one.what) not in known]


def _pending(entry: Entry, descriptor: Mapping[str, Any], why: str, diff: str, now: str) -> Pending:
    made = Pending(digest(descriptor), dict(descriptor), why, diff, now)
    before = entry.pending
    unchanged = before is not None and (before.digest, before.diff, before.reason) == (made.digest, diff, why)
    return before if before is not None and unchanged and before.accepted_by is None else made


def _paths(drift: Drift) -> str:
    paths = ", ".join(change.path for change in drift.changes[:5])
    return paths + (", ..." if len(drift.changes) > 5 else "")
