"""What does driving a run need beside its journal? Calls in the name of whoever wanted it."""

from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.model.contract import Contract
from holdfast.model.observation import Observation


class Calls(Protocol):
    """Governed calls in the name of whoever wanted the run."""

    def contract(self, tool: str, version: str | None) -> Contract | None: ...

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, key: str, step: str, deadline_s: float | None
    ) -> Observation: ...

    async def became(self, key: str, tool: str) -> Observation | None:
        """What is known of a call now, without making it; None where it has not acted and never will."""
        ...

    async def stop(self, key: str, tool: str) -> None:
        """Give up a call that is under way: it is cancelled where it has not acted."""
        ...
