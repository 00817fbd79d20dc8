"""What is known of work that goes on at an upstream without a call? EXE-6."""

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.model.call import Principal
from holdfast.model.job import Submitted
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation
from holdfast.model.peer import Peer
from holdfast.model.tool import Job


class Jobs(Protocol):
    """Jobs as a store keeps them. They are begun with the outcome of the call that submitted them."""

    async def get(self, tenant: str, call_id: str) -> Submitted | None: ...

    async def take(self, now: float, until: float, limit: int) -> Sequence[Submitted]:
        """Those it is time to ask after: nobody else does before `until`, unless this process dies."""
        ...

    async def soonest(self, now: float, again_at: float) -> float | None:
        """When the next one is due, `again_at` for one that somebody else asks after; None: none goes on."""
        ...

    async def note(
        self, job: Submitted, progress: float | None, ends_at: float | None, next_at: float
    ) -> bool:
        """It was asked after and goes on; sooner than `next_at` where there was news meanwhile."""
        ...

    async def hurry(self, tenant: str, call_id: str, every_s: float) -> bool:
        """Somebody wants to know now: it is time to ask, or will be `every_s` after the last time, however
        many want it. Pauses begin anew from there. False where that changes nothing.
        """
        ...

    async def cancel(self, tenant: str, call_id: str, why: str, give_up_at: float) -> bool:
        """It is to be cancelled, from now on; False where it is already, or has ended."""
        ...

    async def end(self, job: Submitted) -> None: ...

    async def news(self, token: str) -> bool:
        """Somebody who knows this word (its digest) says that it is time to ask; False for a stranger."""
        ...


class Following(Protocol):
    """Jobs as a call sees them."""

    async def wait(self, operation: Operation, seconds: float, peer: Peer | None) -> Operation:
        """The operation once its job has ended, or as it is when time is up; `peer` hears how far it is."""
        ...

    async def submitted(self, word: str | None) -> None:
        """A job is written down whose upstream may call back with this word, and may have done so already."""
        ...

    async def told(self, operation: Operation) -> Observation:
        """The operation as it is known now, with how far its job is."""
        ...

    async def stop(self, by: Principal, job: Job, variables: dict[str, Any], call_id: str) -> bool:
        """Call what cancels a job, in somebody's name; whether that was accepted."""
        ...
