"""What does an agent framework do for one operation until it knows how it ended?

It names the operation by a key, and while it has no answer it sends the same call with the same key again.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast_faults.adapter import KEY, KEY_ARGUMENT, Adapter, Json, Told
from holdfast_faults.client import Agent, Lost, Unreached, Wrong


@dataclass(frozen=True, kw_only=True)
class Patience:
    attempt_s: float = 10.0
    """For one answer."""
    whole_s: float = 60.0
    """For one operation, from when its gateway last began to listen."""
    errors: int = 6
    """Error answers after which it is given up."""
    unknowns: int = 6
    """Answers `unknown` after which a person has to look."""
    pause_s: float = 0.25
    pause_cap_s: float = 1.0


@dataclass(kw_only=True)
class Operation:
    key: str
    tool: str
    deliveries: int = 0
    lost: int = 0
    errors: int = 0
    told: list[Told] = field(default_factory=list)
    """How each client that carried it out was left."""
    last_error: str = ""


class Carrier:
    """Carries operations out for one agent, on behalf of one scenario."""

    def __init__(
        self,
        agent: Agent,
        adapter: Adapter,
        patience: Patience,
        *,
        sent: Callable[[], None],
        up_since: Callable[[], float],
    ) -> None:
        self._agent, self._adapter, self._patience = agent, adapter, patience
        self._sent, self._up_since = sent, up_since

    async def carry_out(self, operation: Operation, *, first: int = 0) -> Told | None:
        """How it ended; None: no answer at all until patience was over. `first` is who is asked first."""
        began = time.monotonic()
        pause, errors, unknowns, answered, attempt = self._patience.pause_s, 0, 0, False, 0
        ended: Told | None = None
        while time.monotonic() < max(began, self._up_since()) + self._patience.whole_s:
            told = await self._try(operation, first + attempt)
            attempt += 1
            answered = answered or told is not None
            errors += told is Told.ERROR
            unknowns += told is Told.UNKNOWN
            given_up = errors >= self._patience.errors or unknowns >= self._patience.unknowns
            if told in (Told.DONE, Told.REFUSED) or (told and given_up):
                ended = told
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._patience.pause_cap_s)
        else:
            ended = Told.ERROR if answered else None
        if ended is not None:
            operation.told.append(ended)
        return ended

    async def deliver_and_cut(self, operation: Operation, reached: asyncio.Task[None]) -> bool:
        """One delivery whose connection is cut once it has come as far as `reached` says; whether it has."""
        call = asyncio.create_task(self._try(operation, 0))
        await asyncio.wait({call, reached}, return_when=asyncio.FIRST_COMPLETED)
        cut = not call.done()
        operation.lost += cut
        for task in (call, reached):
            task.cancel()
        await asyncio.gather(call, reached, return_exceptions=True)
        return cut

    async def _try(self, operation: Operation, replica: int) -> Told | None:
        """One delivery: what was told, None where nothing was."""
        arguments: Json = {"item": operation.key, KEY_ARGUMENT: operation.key}
        operation.deliveries += 1
        self._sent()
        try:
            async with asyncio.timeout(self._patience.attempt_s):
                said = await self._agent.at(replica).call(operation.tool, arguments, {KEY: operation.key})
        except Unreached as unreached:
            operation.deliveries -= 1
            operation.last_error = str(unreached)
            return None
        except (Lost, TimeoutError) as lost:
            operation.lost += 1
            operation.last_error = str(lost) or "no answer in time"
            return None
        told = Told.ERROR if isinstance(said, Wrong) else self._adapter.read(said)
        if told in (Told.ERROR, Told.REFUSED):
            operation.errors += 1
            operation.last_error = said.text if isinstance(said, Wrong) else str(said.get("content"))[:300]
        return told
