"""How far has a chain come? A run, and what each of its steps came to; SAG-1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.vocabulary import Word

PERSON = "a person"
"""What a run waits for begins with this where nothing else than a person can help."""


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
    """Not a call: which branches a join went on with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a run's journal. A name is written once, and what it says is never changed."""

    name: str
    """`charge`, `poll#2` in a loop, `charge~undo` for what took it back, `steps[1]~join` for a choice."""
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
    round: int = 0
    """How often it was taken up. Whoever took it up last drives it, and nobody else writes for it."""
    state: RunState = RunState.RUNNING
    waits_for: str = ""
    """What it waits for, in words a person can act on; '' while it goes on by itself."""
    waits_on: str = ""
    """The approval or the call that it waits for, where it is one of those."""
    why: str = ""
    output: Any = None
    created_at: float = 0.0
    updated_at: float = 0.0
    spent_s: float = 0.0
    """How long it was driven so far. Waiting for people is not counted."""
    cancelled_by: str = ""

    @property
    def stuck(self) -> bool:
        """Nothing happens until a person resumes or abandons it."""
        return not self.state.over and self.waits_for.startswith(PERSON)
