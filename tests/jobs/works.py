"""A works that takes orders and finishes them later: what it was asked is counted outside."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from holdfast import Effect, Gateway, Undo, tool
from holdfast.chains.engines.local import LocalEngine
from holdfast.model.call import Principal
from holdfast.model.errors import Code, NoEffect
from holdfast.model.function import FunctionTool
from holdfast.model.observation import Observation
from holdfast.ports import Policy
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.stored import place, stored

T = TypeVar("T")
ADA = Principal(user="ada", agent="bot", scopes=frozenset({"works:*"}), trust=90)
PEOPLE = {"ada": {"scopes": ["works:*"], "trust": 90}}
JOB: dict[str, Any] = {
    "id": "result.job",
    "poll": {"tool": "look", "arguments": {"job": "=job"}},
    "done": "state.state == 'done'",
    "failed": "state.state == 'failed' ? state.why : ''",
    "result": "state.made",
    "progress": "state.share",
    "ends_in_s": "state.left_s",
    "cancel": {"tool": "stop", "arguments": {"job": "=job"}},
    "every_s": 2.0,
    "slowest_s": 16.0,
    "max_wait_s": 600.0,
}
MADE = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}


@dataclass(slots=True)
class Works:
    """What goes on there, in the test's hands."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    looked: list[float] = field(default_factory=list)
    """When it was asked after."""
    stopped: list[str] = field(default_factory=list)
    called_back: list[str] = field(default_factory=list)
    away: bool = False
    obeys: bool = True
    """Whether what is stopped says so."""
    takes_s: float = 0.0
    """How long it takes to say how far a job is."""
    at_once: int = 0
    most_at_once: int = 0
    clock: ManualClock | None = None

    def begin(self, title: str) -> str:
        name = f"job-{len(self.submitted) + 1}"
        self.submitted.append(title)
        self.jobs[name] = {"state": "running", "share": 0.0, "left_s": 60.0, "made": None, "why": ""}
        return name

    def finish(self, name: str = "job-1", file: Any = "film.mp4") -> None:
        self.jobs[name] |= {"state": "done", "share": 1.0, "made": {"file": file}}

    def fail(self, why: str, name: str = "job-1") -> None:
        self.jobs[name] |= {"state": "failed", "why": why}

    async def tell(self, name: str) -> dict[str, Any]:
        if self.clock is not None:
            self.looked.append(self.clock.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.at_once, self.most_at_once)
            await self.clock.sleep(self.takes_s)
            self.at_once -= 1
        if self.away:
            raise NoEffect("the works is away", Code.DEPENDENCY_UNAVAILABLE)
        return dict(self.jobs[name])


def tools(
    works: Works, job: Mapping[str, Any] | None = None, *, scope: str = "one", **said: Any
) -> list[FunctionTool[..., Any]]:
    """`render` submits, `look` asks after it, `stop` cancels it; `said` is more of the first's contract."""

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["works:render"],
        manifest=[("film", "CREATE", scope)],
        idempotency="none",
        job=JOB if job is None else job,
        **{"output_schema": MADE, **said},
    )
    async def render(title: str) -> dict[str, Any]:
        """Make a film."""
        return {"job": works.begin(title)}

    @tool(effect=Effect.READ_ONLY)
    async def look(job: str) -> dict[str, Any]:
        """How far a film is."""
        return await works.tell(job)

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["works:render"],
        manifest=[("film", "DELETE", scope)],
        idempotency="none",
    )
    async def stop(job: str) -> str:
        """Stop making a film."""
        works.stopped.append(job)
        if works.obeys:
            works.jobs[job] |= {"state": "failed", "why": "stopped"}
        return "stopping"

    return [render, look, stop]


class Yard:
    """A gateway before a works, with time in the test's hands."""

    def __init__(self, gateway: Gateway, works: Works, clock: ManualClock) -> None:
        self.gateway, self.works, self.clock = gateway, works, clock
        self._coming: list[object] = []

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        """Have something happen outside."""
        self._coming.append(self.clock.alarm(seconds, do))

    async def driven(self, work: Coroutine[Any, Any, T]) -> T:
        going = asyncio.ensure_future(work)
        await self.clock.drive(going)
        return await going

    async def render(self, title: str = "tea", key: str = "k-1", **said: Any) -> Observation:
        given = {"title": title}
        return await self.driven(self.gateway.call("works.render", given, principal=ADA, key=key, **said))

    async def found(self, seen: Observation) -> Observation:
        now = await self.gateway.find(ADA, seen.call_id)
        assert now is not None
        return now

    async def ended(self, seen: Observation, within_s: float = 900.0) -> Observation:
        """What became of it, once it is no longer pending."""
        end = self.clock.monotonic() + within_s
        now = await self.found(seen)
        while now.pending is not None:
            assert self.clock.monotonic() < end, now
            await self.clock.advance(1.0)
            now = await self.found(seen)
        return now


@asynccontextmanager
async def opened(
    kind: str,
    folder: Path,
    works: Works,
    clock: ManualClock,
    *made: FunctionTool[..., Any],
    config: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
) -> AsyncIterator[Yard]:
    """One process before the works; with the same folder another one has the same store."""
    works.clock = clock
    async with stored(kind, folder, clock) as store:
        upstreams = {"works": FunctionUpstream(made or tools(works))}
        tree = {"auth": {"mode": "local", "people": PEOPLE}, **(config or {})}
        said: dict[str, Any] = {"clock": clock, "ids": CountingIds(), "engine": LocalEngine, "policy": policy}
        gateway = Gateway.assemble(tree, store, upstreams, **said)
        try:
            await gateway.prepare()
            yield Yard(gateway, works, clock)
        finally:
            await gateway.close()


@asynccontextmanager
async def yard(
    kind: str, folder: Path, *made: FunctionTool[..., Any], works: Works | None = None, **said: Any
) -> AsyncIterator[Yard]:
    async with (
        place(kind, folder),
        opened(kind, folder, works or Works(), ManualClock(), *made, **said) as one,
    ):
        yield one
