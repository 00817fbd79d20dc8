"""What does driving a run need beside its journal? Calls in the name of whoever wanted it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.model.contract import Contract
from holdfast.model.observation import Observation
from holdfast.model.upstream_session import SessionState


@dataclass(frozen=True, slots=True)
class StepCall:
    """One call that a run wants made."""

    tool: str
    arguments: Mapping[str, Any]
    key: str
    step: str
    deadline_s: float | None = None
    after: tuple[str, ...] = ()
    """The calls of the steps that this one rests upon."""


class Calls(Protocol):
    """Governed calls in the name of whoever wanted the run."""

    def contract(self, tool: str, version: str | None) -> Contract | None: ...

    async def call(self, wanted: StepCall) -> Observation: ...

    async def became(self, key: str, tool: str) -> Observation | None:
        """What is known of a call now, without making it; None where it has not acted and never will."""
        ...

    async def arguments_of(self, key: str, tool: str) -> Any:
        """The arguments of a tool that acted under a key in the place of another; EXE-4."""
        ...

    def partner(self, namespace: str, session: str, role: str) -> Contract | None:
        """The tool that has this role in the sessions of this name."""
        ...

    async def roll_back(self, session_id: str, why: str) -> SessionState | None:
        """Try to roll a session back; how it is then, None where there is none any more."""
        ...

    async def taken_back(self, key: str, tool: str, by: str) -> None:
        """The ledger is to say so of a call, as of now: another one has undone it."""
        ...

    async def stop(self, key: str, tool: str) -> None:
        """Give up a call that is under way: it is cancelled where it has not acted."""
        ...
