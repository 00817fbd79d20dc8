"""How far has a chain come? A run, and what each of its steps came to; SAG-1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.trail import Origin
from holdfast.model.vocabulary import Word

PERSON = "a person"
"""What a run waits for begins with this where nothing else than a person can help."""


CHOOSES = f"{PERSON}: a choice"
"""The same, where a person says which way it goes."""
CHOICE = "~choice"
"""What the name of a line ends with that says which case was chosen at a step."""

COMMIT, ROLLBACK = "~commit", "~rollback"
"""The same, of how a transaction ended that a step began."""


AT = "at:"
"""What a run waits on begins with this where it is a moment."""


def waited_on(waits_on: str) -> tuple[str, ...]:
    """The approvals and calls among what a run waits on."""
    return tuple(on for on in waits_on.split() if not on.startswith(AT))


def is_time(waits_on: str, now: float) -> bool:
    """Whether a moment that a run waits for has come by `now`."""
    return any(on.startswith(AT) and float(on.removeprefix(AT)) <= now for on in waits_on.split())


class RunState(Word):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    COMPENSATING = "COMPENSATING"
    COMPENSATED = "COMPENSATED"
    COMPENSATION_FAILED = "COMPENSATION_FAILED"
    ABORTED = "ABORTED"

    @property
    def over(self) -> bool:
        """Nothing more will be done, unless a person wants it."""
        return self in (RunState.COMPLETED, RunState.COMPENSATED, RunState.ABORTED)


class StepState(Word):
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    CHOSEN = "chosen"
    """Not a call: which branches a join went on with, or which case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a run's journal. A name is written once, and what it says is never changed."""

    name: str
    """`charge`, `poll#2` in a loop, `charge~undo` for what took it back, `steps[1]~join` for a join,
    `intent~choice` for a choice."""
    state: StepState
    tool: str = ""
    call_id: str = ""
    arguments: Any = None
    result: Any = None
    code: str = ""
    message: str = ""
    writes: bool = False
    at: float = 0.0
    number: int = 0
    """Its place in the journal, from 0: what is undone is undone from the last to the first."""


class Inversion(Word):
    """What is known of a step's undoing; SAG-4."""

    SHOWN = "shown"
    """Done and taken back in a twin, everything was as before."""
    REFUTED = "refuted"
    """It was not."""
    ACCEPTED = "accepted"
    """Nobody has shown it, and a person runs it all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was found out about one step's undoing, or decided without. The newest counts."""

    digest: str
    """Of the step as declared, and of the contracts of what does it and what takes it back."""
    how: Inversion
    chain: str
    step: str
    by: str
    note: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a chain, as it stands."""

    tenant: str
    id: str
    chain: str
    version: str
    declared: Mapping[str, Any]
    """The chain as it was when the run began: a newer one does not change a run."""
    input: Any
    principal: str
    """Who wanted it, as `Principal.id` names them."""
    wanted_by: Mapping[str, Any]
    """The same in full; with which rights it goes on is asked anew each time."""
    key: str = ""
    """Whoever starts it twice with one key starts it once."""
    fingerprint: str = ""
    """Of what was declared and given: the same key for something else is refused."""
    call_id: str = ""
    """The call it is; '' where it was not started by one."""
    origin: Origin | None = None
    """The trace its steps belong to, whoever drives it; None where it began before traces were kept."""
    round: int = 0
    """How often it was taken up. Whoever took it up last drives it, and nobody else writes for it."""
    state: RunState = RunState.RUNNING
    waits_for: str = ""
    """What it waits for, in words a person can act on; '' while it goes on by itself."""
    waits_on: str = ""
    """The approvals, calls and moments (`at:1800000000.5`) that it waits for, where it is any of those: it
    goes on when the first of them is over."""
    why: str = ""
    output: Any = None
    created_at: float = 0.0
    updated_at: float = 0.0
    spent_s: float = 0.0
    """How long it was driven so far. Waiting for people is not counted."""
    cancelled_by: str = ""

    def goes_on_by(self, moment: float) -> bool:
        """Whether it waits for nothing but a moment, and that comes before."""
        return not waited_on(self.waits_on) and is_time(self.waits_on, moment)

    @property
    def stuck(self) -> bool:
        """Nothing happens until a person chooses for it, resumes it or abandons it."""
        return not self.state.over and self.waits_for.startswith(PERSON)

    @property
    def chooses(self) -> bool:
        """It goes on once a person has said which way."""
        return self.stuck and self.waits_for.startswith(CHOOSES)
