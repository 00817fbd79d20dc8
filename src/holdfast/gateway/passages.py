"""How did a call get through the gates, as its records tell it?

A record says after how many microseconds each step was over, in the order of `model/steps.py` or by name.
Records from before they said so have every step, and no times.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from holdfast.model.observation import Status
from holdfast.model.record import Entry
from holdfast.model.steps import GATES, ORDER, STEPS, Step
from holdfast.model.story import GatePassed, Passage, Said
from holdfast.model.view import RUNNING

RAN = frozenset({"outcome", "late", "contradiction"})
DECIDED = {"refusal": Said.REFUSED, "hold": Said.HELD, "replay": Said.REPLAYED}
ENDED = RAN | DECIDED.keys()
_GATES = frozenset(step.name for step in GATES)


class Told(NamedTuple):
    """A record and what it says."""

    entry: Entry
    body: Mapping[str, Any]

    @classmethod
    def read(cls, entry: Entry) -> "Told":
        """A record that somebody changed may say nothing any more; it is there all the same."""
        try:
            body = orjson.loads(entry.record.body)
        except ValueError:
            body = None
        return cls(entry, body if isinstance(body, dict) else {})

    @property
    def kind(self) -> str:
        return self.entry.record.kind

    @property
    def at(self) -> float:
        return self.entry.record.at


def passages(told: Sequence[Told], *, audited: bool) -> Iterator[Passage]:
    """Every way through the gates, in the order of time; of an intent without an outcome what is known."""
    running: Told | None = None
    for one in told:
        if one.kind == "intent":
            running = one
        elif one.kind in ENDED:
            running = None if one.kind in RAN else running
            yield _passage(one, audited)
        elif one.kind == "settle":
            running = None if running is None else _lost(running)
    if running is not None:
        yield _passage(running, audited)


def _lost(running: Told) -> Told:
    """Somebody found out later what became of it: it is not running any more."""
    return Told(running.entry, {**running.body, "status": "unknown"})


def _passage(one: Told, audited: bool) -> Passage:
    body, record = one.body, one.entry.record
    over = _over(body)
    return Passage(
        at=one.at - (max(over.values()) / 1e6 if over else 0.0),
        ended_at=one.at,
        kind="preview" if body.get("status") == Status.PREVIEW else one.kind,
        gates=_gates(one, over),
        decided_by=body.get("gate"),
        status=body.get("status") or RUNNING,
        code=body.get("error_code") or "",
        latency_ms=body.get("latency_ms"),
        attempts=body.get("attempts") or 0,
        record=record.id if audited else None,
    )


def _over(body: Mapping[str, Any]) -> dict[str, int]:
    """After how many microseconds each step was over."""
    said = body.get("gates")
    if isinstance(said, dict):
        return said
    return dict(zip(ORDER, said, strict=False)) if isinstance(said, list) else {}


def _gates(one: Told, over: Mapping[str, int]) -> tuple[GatePassed, ...]:
    ended, found = 0, []
    for step in STEPS:
        micros = None
        if step.name in over:
            micros, ended = over[step.name] - ended, over[step.name]
        verdict = _verdict(one, step, over)
        found.append(GatePassed(**step._asdict(), verdict=verdict, micros=micros))
    return tuple(found)


def _verdict(one: Told, step: Step, over: Mapping[str, int]) -> Said:
    if step.name == one.body.get("gate"):
        return DECIDED[one.kind]
    if step.name in over:
        return Said.PASSED if step.name in _GATES else Said.RAN
    if one.kind == "intent":
        if step.name in _GATES:
            return Said.PASSED
        return Said.RUNNING if step.name == "execute" and not one.body.get("status") else Said.UNTOLD
    if over:
        return Said.UNTOLD if one.kind in RAN else Said.UNASKED
    return Said.PASSED if one.kind in RAN and step.name in _GATES else Said.UNTOLD
