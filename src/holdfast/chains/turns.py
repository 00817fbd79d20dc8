"""What if a step is refused only because it is not its turn yet? It waits.

For a moment in the process that drives the run, as long as there is time where the run has a deadline, and
else without a process: the run is taken up again when the moment has come. A rate that is used up, or another
call that changes the same, is no failure of the step. CHN-7, EXE-7.
"""

from datetime import UTC, datetime

from holdfast.chains.lane import Waiting
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.run import AT

HERE_S = 2.0
"""Longer than this no process waits for one step's turn."""
USUAL_S = 1.0
"""Where nobody says how long."""


def turn_in(seen: Observation) -> float | None:
    """In how many seconds it may be called again; None where time alone does not help."""
    said = seen.remedy
    limited = seen.code is Code.RATE_LIMITED and said.retryable
    met = seen.code is Code.CONFLICT and seen.status is Status.REFUSED and said.retry_after_ms is not None
    if not (limited or met):
        return None
    return USUAL_S if said.retry_after_ms is None else said.retry_after_ms / 1000


def parked(name: str, at: float, seen: Observation) -> Waiting:
    """Until that moment, by the clock on the wall."""
    shown = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return Waiting(f"the turn of step {name!r}, at {shown}: {seen.message}", f"{AT}{at:.3f}")
