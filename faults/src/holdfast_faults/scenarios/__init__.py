"""What is done to a gateway, in which order?

Faults that a restart would hide come first; the clock is last, because not every program survives it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast_faults.arena import Arena
from holdfast_faults.scenarios.clock_jump import clock_jump
from holdfast_faults.scenarios.duplicate import duplicate
from holdfast_faults.scenarios.kill import kill
from holdfast_faults.scenarios.lost_answer import lost_answer
from holdfast_faults.scenarios.lost_upstream_answer import lost_upstream_answer
from holdfast_faults.scenarios.no_elicitation import no_elicitation
from holdfast_faults.scenarios.stop import stop
from holdfast_faults.scenarios.store_restart import store_restart


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    about: str
    run: Callable[[Arena], Awaitable[None]]
    owns: bool = False
    """It needs a gateway that the kit started itself."""
    replicas: int = 1
    clock: bool = False
    kinds: tuple[str, ...] = ("write", "checked")
    """Tools that are used, in turn."""
    forbidden: bool = False
    """Nothing may happen: nobody agrees to it."""


SCENARIOS = (
    Scenario(
        name="duplicate",
        about="the same call is delivered three times at once and once more afterwards",
        run=duplicate,
    ),
    Scenario(
        name="lost-answer",
        about="the client's connection breaks before or after the effect; the client calls again",
        run=lost_answer,
    ),
    Scenario(
        name="lost-upstream-answer",
        about="the upstream acts, then drops the connection, hangs or says 500",
        run=lost_upstream_answer,
    ),
    Scenario(
        name="no-elicitation",
        about="a person must say yes and the client can ask nobody: a clear answer, no effect, no hang",
        run=no_elicitation,
        kinds=("confirmed",),
        forbidden=True,
    ),
    Scenario(
        name="kill",
        about="kill -9 of the gateway with every call before or after its effect; it is started again",
        run=kill,
        owns=True,
    ),
    Scenario(
        name="stop",
        about="one of two gateway processes is stopped in mid-call (SIGSTOP) and woken later",
        run=stop,
        owns=True,
        replicas=2,
    ),
    Scenario(
        name="store-restart",
        about="the gateway's store is restarted in mid-call, with the gateway where it lives in it",
        run=store_restart,
        owns=True,
    ),
    Scenario(
        name="clock-jump",
        about="the gateway's clock jumps 25 h ahead in mid-call and 26 h back, with duplicates after each",
        run=clock_jump,
        owns=True,
        clock=True,
    ),
)

__all__ = ["SCENARIOS", "Scenario"]
