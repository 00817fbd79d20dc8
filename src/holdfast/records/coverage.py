"""Is anything missing: an effect without its records, or a record without its effect?

The ledger says what was done, the records say what was written down about it. Each attempt has a nonce that
both know. Chains and trees find what was taken out of the log; this finds what never came in, and a ledger
that was changed behind the log's back.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from holdfast.records.report import Report

ATTEMPTS = frozenset({"intent", "outcome", "late", "contradiction", "settle"})
"""Records that are about an attempt, the first of them about its beginning."""
_FINAL = frozenset({"committed", "no_effect", "failed_final", "compensated", "unknown"})


class Attempt(NamedTuple):
    """One operation as the ledger has it."""

    tenant: str
    call_id: str
    state: str
    epoch: int
    nonce: str


class _Ended(NamedTuple):
    """What the records say of an attempt that has come to an end."""

    tenant: str
    call_id: str
    begun: bool
    states: frozenset[str]


class Coverage:
    def __init__(self, ledger: Iterable[Attempt] | None) -> None:
        """Without a ledger, as in an export, only the records are held against each other."""
        self._ledger = None if ledger is None else {attempt.nonce: attempt for attempt in ledger}
        self._calls = {(a.tenant, a.call_id) for a in (self._ledger or {}).values()}
        self._begun: dict[str, tuple[str, str]] = {}
        """Attempts of which nothing but their intent was seen, by nonce: whose, and of which call."""
        self._ended: dict[str, _Ended] = {}
        """A read that is over is in neither: nothing in the ledger could be held against it."""

    def see(self, tenant: str, call_id: str, kind: str, body: str) -> None:
        """A record of one of the kinds in `ATTEMPTS`."""
        nonce = _said(body, '"nonce":"')
        if nonce is None:
            return  # about something that is no attempt
        ended = self._ended.pop(nonce, None)
        if kind == "intent":
            if ended is None:
                self._begun.setdefault(nonce, (tenant, call_id))
            elif ended.states:
                self._ended[nonce] = ended._replace(begun=True)
            return
        state, begun = _state(kind, body), self._begun.pop(nonce, None)
        if ended is None and begun is not None and state is None:
            return  # a read that is over
        self._ended[nonce] = _with(ended, begun or (tenant, call_id), begun is not None, state)
        if kind == "settle" and _said(body, '"from":"') == "held":  # nothing had run yet
            self._ended[nonce] = self._ended[nonce]._replace(begun=True)

    def tell(self, report: Report, pruned: Set[tuple[str, str]]) -> None:
        """Faults into the report; calls in `pruned` may lack records."""
        report.unfinished += sum(name not in pruned for name in self._begun.values())
        for seen in self._ended.values():
            name = (seen.tenant, seen.call_id)
            if name in pruned:
                continue
            if not seen.begun:
                report.add("missing", f"call '{seen.call_id}'", "has an outcome and no intent")
            if self._ledger is not None and seen.states and name not in self._calls:
                report.add(
                    "missing", f"call '{seen.call_id}'", "has an outcome and no operation in the ledger"
                )
        for attempt in (self._ledger or {}).values():
            if (attempt.tenant, attempt.call_id) not in pruned:
                self._hold_against(attempt, report)

    def _hold_against(self, attempt: Attempt, report: Report) -> None:
        where, seen = f"call '{attempt.call_id}'", self._ended.get(attempt.nonce)
        begun = attempt.nonce in self._begun if seen is None else seen.begun
        if attempt.epoch > 0 and not begun:
            report.add("missing", where, f"is {attempt.state} in the ledger and has no intent")
        elif attempt.state in _FINAL and seen is None:
            report.add("missing", where, f"is {attempt.state} in the ledger and has no outcome")
        elif attempt.state in _FINAL and seen is not None and attempt.state not in seen.states:
            said = ", ".join(sorted(seen.states)) or "nothing"
            report.add("changed", where, f"is {attempt.state} in the ledger, its records say {said}")


def _with(ended: _Ended | None, name: tuple[str, str], begun: bool, state: str | None) -> _Ended:
    said: frozenset[str] = frozenset() if state is None else frozenset((state,))
    if ended is None:
        return _Ended(*name, begun, said)
    return ended._replace(states=ended.states | said)


def _state(kind: str, body: str) -> str | None:
    """What an end says of the operation; None for a call that had none."""
    if kind == "settle":
        return _said(body, '"to":"') or "?"
    state = _said(body, '"state":"')
    if state is None and '"operation":"abandon"' in body and '"tool":' not in body:
        return "no_effect"
    return state


def _said(body: str, member: str) -> str | None:
    """A member of a body, without parsing it: a quote inside a string is escaped, so this finds no other."""
    start = body.find(member)
    if start < 0:
        return None
    start += len(member)
    return body[start : body.index('"', start)]
