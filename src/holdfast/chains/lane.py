"""What runs side by side, and how is one of it stopped?"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.chains.calls import Calls
from holdfast.model.contract import Contract
from holdfast.model.run import PERSON, Line, StepState


class Failed(Exception):
    """A step came to nothing, and the chain cannot go on."""

    def __init__(
        self,
        step: str,
        code: str,
        message: str,
        *,
        tool: str = "",
        call_id: str = "",
        parts: Sequence["Failed"] = (),
    ) -> None:
        super().__init__(f"step {step!r}: {message}" if message else f"step {step!r} failed with {code}")
        self.step = step
        self.code = code
        self.message = message
        self.tool = tool
        self.call_id = call_id
        """Of what was called; '' where it did not come to that."""
        self.parts = tuple(parts)
        """What failed in branches, where it is these."""

    @classmethod
    def of(cls, line: Line) -> "Failed":
        """As the journal tells it."""
        return cls(line.name, line.code, line.message, tool=line.tool, call_id=line.call_id)

    def lines(self) -> list[Line]:
        """As the journal tells it: a line for each step whose failure it is."""
        if self.parts:
            return [line for part in self.parts for line in part.lines()]
        told = Line(name=self.step, state=StepState.FAILED, code=self.code, message=self.message)
        return [replace(told, tool=self.tool, call_id=self.call_id)]


class Waiting(Exception):
    """Nothing can be done until somebody outside has done something; the text says what."""

    def __init__(self, text: str, on: str = "", *, acted: bool = False) -> None:
        super().__init__(text)
        self.on = on
        """The approvals, calls and moments, where it is any of those; separated by spaces."""
        self.acted = acted
        """Whether it may have acted: nothing is over, not even by a failure, before that is known."""
        self.left: tuple[Line, ...] = ()
        """The steps as they will be in the journal if it turns out that they acted."""


def together(waits: Sequence[Waiting]) -> Waiting:
    """For whichever is over first; where a person is needed, that is told first."""
    waits = sorted(waits, key=lambda one: not str(one).startswith(PERSON))
    on = " ".join(dict.fromkeys(one.on for one in waits if one.on))
    made = Waiting("; ".join(map(str, waits)), on, acted=any(one.acted for one in waits))
    made.left = tuple(line for one in waits for line in one.left)
    return made


class Stopped(Exception):
    """Somebody wants no more of this."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The session of an upstream in which steps are done."""

    namespace: str
    name: str
    id: str

    def given(self, contract: Contract) -> dict[str, str]:
        """What a tool that works in this session is told of it; nothing, where it does not."""
        part = contract.transactional.session
        if part is None or part.role == "begin":
            return {}
        own = (contract.identity.namespace, part.name) == (self.namespace, self.name)
        return {part.handle: self.id} if own else {}


@dataclass(slots=True)
class Lane:
    """One of several ways that are gone at the same time; a way may part again."""

    suffix: str = ""
    """Of the names of its steps: which round of a loop it is."""
    stopped: bool = False
    in_flight: tuple[str, str] | None = None
    """The key and tool of the call that is under way."""
    ends_at: float | None = None
    """When it must be over, by the clock that only goes forward; None: when the run must."""
    seat: Seat | None = None
    """None outside of transactions."""
    parts: list["Lane"] = field(default_factory=list)

    def part(self, ends_at: float | None = None) -> "Lane":
        """`ends_at`: where it must be over before this one must."""
        until = self.ends_at if ends_at is None else ends_at
        made = Lane(self.suffix, self.stopped, ends_at=until, seat=self.seat)
        self.parts.append(made)
        return made

    async def stop(self, calls: Calls) -> None:
        """No more steps, and give up what has not acted."""
        self.stopped = True
        if self.in_flight is not None:
            await calls.stop(*self.in_flight)
        for part in self.parts:
            await part.stop(calls)
