"""Is anything missing: an effect without its records, or a record without its effect?

The ledger says what was done, the records say what was written down about it. Each attempt has a nonce that
both know. Chains and trees find what was taken out of the log; this finds what never came in, and a ledger
that was changed behind the log's back.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from holdfast.model.record import Record
from holdfast.records.report import Report

ENDS = frozenset({"outcome", "late", "contradiction", "settle"})
_FINAL = frozenset({"committed", "no_effect", "failed_final", "compensated", "unknown"})


class Attempt(NamedTuple):
    """One operation as the ledger has it."""

    tenant: str
    call_id: str
    state: str
    epoch: int
    nonce: str


class _Seen:
    """What the records say of one attempt."""

    __slots__ = ("begun", "call_id", "ended", "states", "tenant")

    def __init__(self, record: Record) -> None:
        self.tenant = record.tenant
        self.call_id = record.call_id
        self.begun = False
        self.ended = False
        self.states: set[str] = set()


class Coverage:
    def __init__(self, ledger: Iterable[Attempt] | None) -> None:
        """Without a ledger, as in an export, only the records are held against each other."""
        self._ledger = None if ledger is None else {attempt.nonce: attempt for attempt in ledger}
        self._calls = {(a.tenant, a.call_id) for a in (self._ledger or {}).values()}
        self._seen: dict[str, _Seen] = {}

    def see(self, record: Record) -> None:
        kind, body = record.kind, record.body
        if kind != "intent" and kind not in ENDS:
            return
        nonce = _said(body, '"nonce":"')
        if nonce is None:
            return  # about something that is no attempt
        seen = self._seen.get(nonce)
        if seen is None:
            seen = self._seen[nonce] = _Seen(record)
        if kind == "intent":
            seen.begun = True
        else:
            seen.ended = True
            self._ended(seen, kind, body)
        if seen.begun and seen.ended and not seen.states:
            del self._seen[nonce]  # a read that is over: nothing in the ledger to hold against it

    def _ended(self, seen: _Seen, kind: str, body: str) -> None:
        if kind == "settle":
            seen.states.add(_said(body, '"to":"') or "?")
            seen.begun = seen.begun or _said(body, '"from":"') == "held"  # nothing had run yet
        elif (state := _said(body, '"state":"')) is not None:
            seen.states.add(state)
        elif '"operation":"abandon"' in body and '"tool":' not in body:
            seen.states.add("no_effect")

    def tell(self, report: Report, pruned: Set[tuple[str, str]]) -> None:
        """Faults into the report; calls in `pruned` may lack records."""
        for seen in self._seen.values():
            name = (seen.tenant, seen.call_id)
            if name in pruned:
                continue
            if not seen.begun:
                report.add("missing", f"call '{seen.call_id}'", "has an outcome and no intent")
            elif not seen.ended:
                report.unfinished += 1
            if self._ledger is not None and seen.states and name not in self._calls:
                report.add(
                    "missing", f"call '{seen.call_id}'", "has an outcome and no operation in the ledger"
                )
        for attempt in (self._ledger or {}).values():
            if (attempt.tenant, attempt.call_id) not in pruned:
                self._hold_against(attempt, report)

    def _hold_against(self, attempt: Attempt, report: Report) -> None:
        where, seen = f"call '{attempt.call_id}'", self._seen.get(attempt.nonce)
        if attempt.epoch > 0 and (seen is None or not seen.begun):
            report.add("missing", where, f"is {attempt.state} in the ledger and has no intent")
        elif attempt.state in _FINAL and (seen is None or not seen.ended):
            report.add("missing", where, f"is {attempt.state} in the ledger and has no outcome")
        elif attempt.state in _FINAL and seen is not None and attempt.state not in seen.states:
            said = ", ".join(sorted(seen.states)) or "nothing"
            report.add("changed", where, f"is {attempt.state} in the ledger, its records say {said}")


def _said(body: str, member: str) -> str | None:
    """A member of a body, without parsing it: a quote inside a string is escaped, so this finds no other."""
    start = body.find(member)
    if start < 0:
        return None
    start += len(member)
    return body[start : body.index('"', start)]
