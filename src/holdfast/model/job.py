"""How far is what a tool has submitted? EXE-6."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import orjson

from holdfast.model.expression import ExpressionError
from holdfast.model.moment import iso
from holdfast.model.observation import Observation
from holdfast.model.tool import Job
from holdfast.model.vocabulary import Word

MOST_NAME = 512
"""Characters of what an upstream calls a job."""
MOST_WHY = 2000
"""Characters of why a job failed."""
FARTHEST_S = 10 * 365 * 86_400.0
"""No end is expected later than this; what says so says nothing."""


def body(name: str, verify: tuple[str, ...]) -> bytes:
    """What is sealed of a job."""
    return orjson.dumps({"id": name, **({"verify": verify} if verify else {})})


class JobState(Word):
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A job as the store keeps it."""

    tenant: str
    call_id: str
    state: JobState
    name: str
    """What its upstream calls it."""
    progress: float | None
    ends_at: float | None
    polls: int
    next_at: float
    give_up_at: float
    why: str
    """Why it is to be cancelled."""
    looked_at: float
    """When it was last asked after, or else submitted."""
    verify: tuple[str, ...] = ()
    """How policy wants its effect shown, once it has ended."""
    taken: tuple[str, float] = ("", 0.0)
    """By which worker it is asked after, and until when that is nobody else's."""

    def due(self, now: float, every_s: float) -> float | None:
        """When it is asked after next where somebody wants to know now; None: no sooner than it is anyway."""
        at = max(now, self.looked_at + every_s)
        busy = bool(self.taken[0])  # what is being asked is not asked once more right after
        return at if at < self.next_at and not busy else None


@dataclass(frozen=True, slots=True)
class Ended:
    """It has ended well, with this."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failed:
    why: str


@dataclass(frozen=True, slots=True)
class GoesOn:
    progress: float | None = None
    ends_in_s: float | None = None


Look = Ended | Failed | GoesOn


def look(job: Job, state: Any) -> Look:
    """What an answer of its poll tool says; raises ExpressionError where it says nothing."""
    variables = {"state": state}
    if job.failed is not None and (why := job.failed.evaluate(variables)):
        return Failed(_why(why))
    if job.done.holds(variables):
        return Ended(state if job.result is None else job.result.evaluate(variables))
    progress = None if job.progress is None else _number(job.progress.evaluate(variables))
    left = None if job.ends_in_s is None else _number(job.ends_in_s.evaluate(variables))
    if left is not None and left > FARTHEST_S:
        left = None
    return GoesOn(
        None if progress is None else min(max(progress, 0.0), 1.0), None if left is None else max(left, 0.0)
    )


def name_of(job: Job, arguments: Mapping[str, Any], answer: Any) -> str:
    """What the upstream calls the job that this answer began."""
    said = job.id.evaluate({"args": arguments, "result": answer})
    if isinstance(said, bool) or not isinstance(said, str | int) or not 0 < len(str(said)) <= MOST_NAME:
        raise ExpressionError(f"'runtime.job.id' gives {type(said).__name__}, which names no job")
    return str(said)


def pending(
    name: str | None,
    *,
    progress: float | None = None,
    ends_at: float | None = None,
    give_up_at: float | None = None,
    cancelling: str = "",
) -> dict[str, Any]:
    """The member of an observation that says what goes on."""
    told: dict[str, Any] = {"kind": "job"}
    if name is not None:
        told["id"] = name
    if progress is not None:
        told["progress"] = progress
    if ends_at is not None:
        told["estimated_at"] = iso(ends_at)
    if give_up_at is not None:
        told["give_up_at"] = iso(give_up_at)
    if cancelling:
        told["cancelling"] = cancelling
    return told


def nameless(told: Observation) -> Observation:
    """The same without what the upstream calls the job."""
    if told.pending is None or "id" not in told.pending:
        return told
    left = {name: said for name, said in told.pending.items() if name != "id"}
    return replace(told, pending=left, message=described(left, told.call_id))


def described(told: Mapping[str, Any], call_id: str) -> str:
    """The same in words, and what to do."""
    name = f" {told['id']!r}" if "id" in told else ""
    doing = f"is being cancelled ({told['cancelling']})" if "cancelling" in told else "goes on"
    done = f", {told['progress']:.0%} done" if "progress" in told else ""
    end = f", expected to end at {told['estimated_at']}" if "estimated_at" in told else ""
    return f"job{name} {doing}{done}{end}; ask again with the same key, or look: holdfast show {call_id}"


def _why(said: Any) -> str:
    if not isinstance(said, str):
        return "it does not say why" if said is True else f"it answers {type(said).__name__}"
    return said if len(said) <= MOST_WHY else f"{said[:MOST_WHY]}…"


def _number(said: Any) -> float | None:
    """What can be counted with; not every upstream's number can."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    try:
        number = float(said)
    except OverflowError:
        return None
    return number if isfinite(number) else None
