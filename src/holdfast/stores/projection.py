"""What do the records of a call come to, on one line and in figures?

A fold over the tree, leaf by leaf: what it keeps of a call is all it needs to go on, so that it does not
matter where one batch ends and the next begins. Several writers' records may come in another order than they
were written in; then times decide, and the nonce of an attempt tells its beginning from the end that was seen
before it.

A line says what the ledger would say. A refusal, a preview or a replay under a key that is taken is recorded
under the call that has it, and changes nothing about that call. Counted is every answer once: a call that was
held and ran later was answered twice. An attempt that was settled, or whose late answer came, is not counted
again. What the gateway reads for its own gates is on a line of its own and costs what it costs, but is not
among the calls that are counted: nobody made them.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import isfinite, isinf
from typing import Any, NamedTuple

import orjson

from holdfast.model.view import FASTEST, REPLAYED, RUNNING, bucket_of
from holdfast.stores.projected import LONGEST, Line, cleaned

log = logging.getLogger(__name__)

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
OWN = ("holdfast", "reader")
"""Caller and agent of what the gateway reads for itself."""
LOST = "*"
"""Stands for the attempt of a read that was given up: no record of that names it."""
REPORT = ("control", '"operation":"cost"')
"""How the record of a reported cost is told from others without reading them."""
_MOST = 2**53
"""A cost beyond this is a mistake."""
_DENIED = ("DENIED", "AUTO_DENIED")
_RUNNING_STATES = ("claimed", "dispatched")
_SETTLED = {
    "committed": ("done", ""),
    "no_effect": ("failed", "TIMEOUT"),
    "unknown": ("unknown", "OUTCOME_UNKNOWN"),
    "failed_final": ("failed", ""),
    "compensated": ("failed", "CANCELLED"),
}
"""What a settlement makes of a call, as `settlement` tells its caller."""

Body = dict[str, Any]
Name = tuple[str, str]
"""Tenant and call."""


class Seen(NamedTuple):
    """One record, as far as a call's line rests on it."""

    leaf: int
    tenant: str
    call_id: str
    kind: str
    at: float
    body: Body

    @property
    def name(self) -> Name:
        return self.tenant, self.call_id


def seen(leaf: int, tenant: str, call_id: str, kind: str, at: float, body: str) -> Seen | None:
    """None for a record that says nothing about a call, or that cannot be read."""
    reported = kind == REPORT[0] and REPORT[1] in body
    if not reported and (not call_id or kind not in _KINDS):
        return None
    try:
        said = orjson.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        log.error("views: the record at leaf %d cannot be read; the view goes on without it", leaf)
        return None
    return Seen(leaf, tenant, call_id, kind, at, said)


class Projection:
    """What some records make of the lines that were there before them."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines: dict[Name, Line] = {(line.tenant, line.call_id): line for line in lines}
        """Only those that the records are about."""
        self.traffic: dict[tuple[str, int, str, str, str, int, str], int] = {}
        """Calls by tenant, minute, tool, status, code, bucket and caller."""
        self.spending: dict[tuple[str, int, str, str, str, str, str], tuple[int, int]] = {}
        """Calls and cost by tenant, day, task, tool, caller, part and currency."""

    def take(self, records: Sequence[Seen]) -> "Projection":
        for one in records:
            if one.kind == REPORT[0]:
                self.report(one)
                continue
            name = one[1:3]
            line = self.lines.get(name)
            if line is None:
                line = self.lines[name] = Line.new(one.tenant, one.call_id, one.at, one.leaf)
            if one.at > line.updated_at:
                line.updated_at = one.at
            _KINDS[one.kind](self, line, one.at, one.body)
        return self

    def report(self, one: Seen) -> None:
        """What a client says a task cost beside its calls; TEL-5."""
        cost = one.body.get("cost")
        if one.body.get("operation") != "cost" or not isinstance(cost, dict):
            return
        who = (_text(one.body, "task"), "", _text(one.body, "caller"))
        self._spend((one.tenant, int(one.at // DAY_S), *who), cost, 0)

    def hours(self) -> dict[tuple[str, int, str, int], int]:
        """Calls by tenant, hour, status and bucket."""
        sums: Counter[tuple[str, int, str, int]] = Counter()
        for (tenant, minute, _, status, _, bucket, _), calls in self.traffic.items():
            sums[tenant, minute * MINUTE_S // HOUR_S, status, bucket] += calls
        return sums

    def days(self) -> dict[tuple[str, int, str, str, int], int]:
        """Calls by tenant, day, tool, status and bucket."""
        sums: Counter[tuple[str, int, str, str, int]] = Counter()
        for (tenant, minute, tool, status, _, bucket, _), calls in self.traffic.items():
            sums[tenant, minute * MINUTE_S // DAY_S, tool, status, bucket] += calls
        return sums

    def spending_days(self) -> dict[tuple[str, int, str, str, str, str], tuple[int, int]]:
        """Calls and cost by tenant, day, tool, caller, part and currency."""
        sums: dict[tuple[str, int, str, str, str, str], tuple[int, int]] = {}
        for (tenant, day, _, *rest), (calls, cost) in self.spending.items():
            key = (tenant, day, rest[0], rest[1], rest[2], rest[3])
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + calls, before[1] + cost
        return sums

    def count(self, line: Line, at: float, body: Body, status: str, code: str) -> None:
        if (line.caller, line.agent) == OWN:
            return
        tool = line.tool if line.effect else ""
        latency = _latency(body)
        bucket = FASTEST if latency is None else bucket_of(latency)
        key = (line.tenant, int(at // MINUTE_S), tool, status, code, bucket, line.caller)
        self.traffic[key] = self.traffic.get(key, 0) + 1

    def pay(self, line: Line, at: float, body: Body) -> None:
        cost, nonce = body.get("cost"), _text(body, "nonce")
        if not isinstance(cost, dict) or line.paid == (nonce or LOST):
            return
        line.paid = nonce or LOST
        who = (line.task, line.tool, line.caller)
        line.cost += self._spend((line.tenant, int(at // DAY_S), *who), cost, 1)

    def _spend(self, what: tuple[str, int, str, str, str], cost: Body, calls: int) -> int:
        """Add to each part of a cost; how much that was together."""
        parts, currency, total = cost.get("parts"), _text(cost, "currency"), 0
        for part, amount in parts.items() if isinstance(parts, dict) else ():
            if type(amount) is int and 0 < amount < _MOST:
                key = (*what, cleaned(part), currency)
                before = self.spending.get(key, (0, 0))
                self.spending[key] = before[0] + calls, before[1] + amount
                total += amount
        return total


# --- one function for each kind of record -------------------------------------------------------------------


def _began(view: Projection, line: Line, at: float, body: Body) -> None:
    _tell(line, body)
    nonce = _text(body, "nonce")
    if (not nonce or nonce != line.ended) and at >= line.stated_at:
        line.stated_at, line.status, line.code = at, RUNNING, ""
        line.latency_ms, line.attempts = None, 0


def _ended(view: Projection, line: Line, at: float, body: Body) -> None:
    if body.get("operation") == "abandon":  # its caller went before it was sent
        body = {**body, "status": "refused", "error_code": "CANCELLED"}
    elif not line.tool:  # else its intent has said all that
        _tell(line, body)
    nonce, status, code = _text(body, "nonce"), _text(body, "status"), _text(body, "error_code")
    if at >= line.stated_at:
        _state(line, at, body, status, code)
    if not nonce or line.ended not in (nonce, LOST):
        view.count(line, at, body, status, code)
    line.ended = nonce
    view.pay(line, at, body)


def _late(view: Projection, line: Line, at: float, body: Body) -> None:
    """The ledger did not take this end: the attempt was settled before, and counted then."""
    if not line.tool:
        _tell(line, body)
    view.pay(line, at, body)


def _contradicted(view: Projection, line: Line, at: float, body: Body) -> None:
    """What was said to have had no effect has had one."""
    _late(view, line, at, body)
    if body.get("state") == "committed" and at >= line.stated_at:
        _state(line, at, body, _text(body, "status"), _text(body, "error_code"))


def _held(view: Projection, line: Line, at: float, body: Body) -> None:
    used = line.approval_id and line.approval_id == _text(body, "approval_id")
    ran = line.status not in ("", "held") and line.stated_at > 0  # it was approved before this was written
    _tell(line, body)
    if at >= line.stated_at and not (used and ran):
        _state(line, at, body, "held", _text(body, "error_code"))
    view.count(line, at, body, "held", _text(body, "error_code"))


def _unrun(view: Projection, line: Line, at: float, body: Body) -> None:
    """Refused, or but a preview: the first that is heard of a call, or nothing new about one."""
    status, code = _text(body, "status"), _text(body, "error_code")
    if line.stated_at == 0:
        _tell(line, body)
        _state(line, 0.0, body, status, code)
    view.count(line, at, body, status, code)


def _replayed(view: Projection, line: Line, at: float, body: Body) -> None:
    line.replayed = True
    status, code = _text(body, "status"), _text(body, "error_code")
    if line.stated_at == 0:  # what it repeats is not here any more, or not yet
        _tell(line, body)
        _state(line, 0.0, body, status, code)
    view.count(line, at, {}, REPLAYED, code)


def _settled(view: Projection, line: Line, at: float, body: Body) -> None:
    """How it ended became known afterwards; what was running was answered by nobody."""
    if body.get("operation") == "count_lost_read":
        status, code, running = "unknown", "OUTCOME_UNKNOWN", line.status == RUNNING
    else:
        was, now = body.get("from"), body.get("to")
        status, code = _SETTLED.get(now if isinstance(now, str) else "", (line.status, line.code))
        if (was, now) == ("held", "failed_final"):
            status, code = "refused", "CANCELLED"
        running = was in _RUNNING_STATES
    if at >= line.stated_at:
        line.stated_at, line.status, line.code = at, status, code
    attempt = _text(body, "nonce") or LOST
    if running and line.ended != attempt:
        view.count(line, at, body, status, code)
        line.ended = attempt


def _voted(view: Projection, line: Line, at: float, body: Body) -> None:
    if body.get("answer") in _DENIED and line.status in ("", "held") and at >= line.stated_at:
        line.stated_at, line.status, line.code = at, "refused", "APPROVAL_DENIED"


def _alarmed(view: Projection, line: Line, at: float, body: Body) -> None:
    line.alarms += 1


_KINDS: dict[str, Callable[[Projection, Line, float, Body], None]] = {
    "intent": _began,
    "outcome": _ended,
    "late": _late,
    "contradiction": _contradicted,
    "hold": _held,
    "refusal": _unrun,
    "replay": _replayed,
    "settle": _settled,
    "vote": _voted,
    "security": _alarmed,
}


def numbers(since: float, until: float, unit: int) -> tuple[int, int]:
    """From which minute or day on, and before which."""
    last = 2**62 if isinf(until) else -int(-until // unit)
    return int(since // unit), last


# --- parts --------------------------------------------------------------------------------------------------


def _tell(line: Line, body: Body) -> None:
    """What every record of a call says of it."""
    if not line.tool or body.get("contract_digest"):
        line.name(_text(body, "tool"), _text(body, "caller"), _text(body, "agent"))
        line.effect = _text(body, "mutation_class")
    line.task = _text(body, "task") or line.task
    line.approval_id = _text(body, "approval_id") or line.approval_id


def _state(line: Line, at: float, body: Body, status: str, code: str) -> None:
    line.stated_at, line.status, line.code = at, status, code
    line.latency_ms = _latency(body)
    attempts = body.get("attempts")
    line.attempts = attempts if type(attempts) is int and 0 <= attempts < _MOST else 0


def _text(body: Body, member: str) -> str:
    said = body.get(member)
    if type(said) is not str:
        return ""
    return said if len(said) <= LONGEST and said.isascii() and "\0" not in said else cleaned(said)


def _latency(body: Body) -> float | None:
    said = body.get("latency_ms")
    return float(said) if isinstance(said, int | float) and isfinite(said) and said >= 0 else None
