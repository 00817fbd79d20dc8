"""How far have runs of chains come?"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast.model.run import Evidence, Line, Run, RunState


class Journal(Protocol):
    """What became of the steps of one run, for whoever drives it now.

    Everything here is durable before it returns, and raises `Overtaken` once somebody else has taken the run
    up: nobody acts on what another one is about to write.
    """

    async def lines(self) -> Sequence[Line]: ...

    async def add(self, line: Line) -> Line:
        """The line as it is kept: the earlier one where this name was written before."""
        ...

    async def move(
        self, state: RunState, *, waits_for: str = "", waits_on: str = "", why: str = "", output: Any = None
    ) -> None:
        """The run is in this state from now on."""
        ...

    async def cancelled(self) -> str:
        """Who wants it to stop; '' where nobody does."""
        ...


class Runs(Protocol):
    """Runs of chains, and how far they have come."""

    async def begin(self, run: Run) -> Run:
        """The run of this principal, chain and key: this one, or the one that was begun before."""
        ...

    async def get(self, tenant: str, run_id: str) -> Run | None: ...

    async def list(self, tenant: str, *, principal: str | None = None, limit: int = 50) -> Sequence[Run]:
        """Newest first, without what was declared and given."""
        ...

    async def open(self) -> Sequence[tuple[str, str]]:
        """Tenant and id of every run that is not over, of every tenant."""
        ...

    async def due(self) -> Sequence[tuple[str, str, int]]:
        """Tenant, id and round of the runs whose waiting is over, of every tenant."""
        ...

    async def idle(self, since: float) -> Sequence[tuple[str, str, int]]:
        """Of those that wait for nothing and were last taken up before then: somebody should be at them."""
        ...

    async def ended(self) -> Sequence[tuple[str, str]]:
        """Tenant and id of the runs that are over, and the outcome of whose call is still unknown."""
        ...

    async def stuck(self, tenant: str, limit: int) -> Sequence[Run]:
        """Those that wait for a person, longest first; to wait for an answer is not such a wait."""
        ...

    async def take_up(self, tenant: str, run_id: str) -> Run | None:
        """Whoever drove it until now does so no more; None where it is over."""
        ...

    def journal(self, run: Run) -> Journal:
        """Of a run as `take_up` gave it."""
        ...

    async def lines(self, tenant: str, run_id: str) -> Sequence[Line]: ...

    async def cancel(self, tenant: str, run_id: str, by: str) -> bool:
        """False where it is over, or somebody wanted that before."""
        ...

    async def choose(self, run: Run, line: Line, by: str) -> Run | None:
        """A person says which way a run that waits is to go: the line is kept, and whoever drove it until now
        does so no more. The run as it is then; None where it does not wait, or somebody said so before.
        """
        ...

    async def abandon(self, tenant: str, run_id: str, by: str, note: str) -> bool:
        """A person ends it as it stands."""
        ...

    async def attest(self, tenant: str, found: Sequence[Evidence]) -> None:
        """Keep what is known of undoings now, on record."""
        ...

    async def attested(self, tenant: str, digests: Sequence[str]) -> Mapping[str, Evidence]:
        """The newest of each, where there is any."""
        ...
