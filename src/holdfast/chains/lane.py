"""What runs side by side, and how is one of it stopped?"""

from dataclasses import dataclass, field

from holdfast.chains.calls import Calls
from holdfast.model.run import Line


class Failed(Exception):
    """A step came to nothing, and the chain cannot go on."""

    def __init__(self, step: str, code: str, message: str) -> None:
        super().__init__(f"step {step!r}: {message}" if message else f"step {step!r} failed with {code}")
        self.step = step
        self.code = code
        self.message = message


class Waiting(Exception):
    """Nothing can be done until somebody outside has done something; the text says what."""

    def __init__(self, text: str, on: str = "") -> None:
        super().__init__(text)
        self.on = on
        """The approval or the call, where it is one of those."""
        self.left: Line | None = None
        """The step as it will be in the journal if it turns out that it acted; None where it has not."""


class Stopped(Exception):
    """Somebody wants no more of this."""


@dataclass(slots=True)
class Lane:
    """One of several ways that are gone at the same time; a way may part again."""

    suffix: str = ""
    """Of the names of its steps: which round of a loop it is."""
    stopped: bool = False
    in_flight: tuple[str, str] | None = None
    """The key and tool of the call that is under way."""
    parts: list["Lane"] = field(default_factory=list)

    def part(self) -> "Lane":
        made = Lane(self.suffix, self.stopped)
        self.parts.append(made)
        return made

    async def stop(self, calls: Calls) -> None:
        """No more steps, and give up what has not acted."""
        self.stopped = True
        if self.in_flight is not None:
            await calls.stop(*self.in_flight)
        for part in self.parts:
            await part.stop(calls)
