"""How much of what was set aside is spent? The rule every store shares; POL-4."""

from dataclasses import dataclass

from holdfast.model.call import Call
from holdfast.model.limits import Amount, micros
from holdfast.model.observation import Observation, Status
from holdfast.model.stage import ReserveBudget
from holdfast.model.vocabulary import State


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a call counts, and what it really took where somebody measured it."""

    happened: bool
    spent: Amount | None = None


def parts(held: Amount, outcome: Outcome) -> tuple[Amount, Amount]:
    """What is used, and what goes back.

    Without a measure everything set aside counts. Time and retries are gone even where nothing happened.
    """
    spent = held if outcome.spent is None else outcome.spent
    if outcome.happened:
        used = Amount(held.calls, spent.cost, spent.wall_ms, spent.retries)
    elif outcome.spent is None:
        used = Amount()
    else:
        used = Amount(0, 0, spent.wall_ms, spent.retries)
    return used, held.minus(Amount(used.calls, used.cost))


def outcome_of(state: State) -> Outcome | None:
    """What a settlement says about the budget; None while nobody knows."""
    if state.settled:
        return Outcome(happened=True)
    return Outcome(happened=False) if state is State.NO_EFFECT else None


def measured(call: Call, observation: Observation, state: State | None, elapsed_s: float) -> Outcome | None:
    """What the end of an attempt says; a read that never reached its tool has not happened."""
    if call.operation is None:
        happened = observation.status is Status.DONE or call.attempts > 0
    else:
        known = outcome_of(state or State.UNKNOWN)
        if known is None:
            return None
        happened = known.happened
    cost = micros(call.tool.contract.runtime.cost.per_call) * call.attempts
    return Outcome(happened, Amount(1, cost, round(elapsed_s * 1000), max(call.attempts - 1, 0)))


def reserves(call: Call) -> bool:
    return ReserveBudget in [type(stage) for _, stage in call.staged]
