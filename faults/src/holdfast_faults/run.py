"""How is one gateway taken through the scenarios?"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex

import aiohttp

from holdfast_faults.adapter import Adapter, Site, Unavailable
from holdfast_faults.arena import Arena
from holdfast_faults.client import Agent
from holdfast_faults.clock import FalseClock, library
from holdfast_faults.effects import Effects, counting
from holdfast_faults.figures import Row, count
from holdfast_faults.fleet import Process
from holdfast_faults.operation import Operation, Patience
from holdfast_faults.scenarios import Scenario
from holdfast_faults.stage import Stage, staged
from holdfast_faults.upstream.http import fronted

AGENTS = 8
PER_TOOL = 4
"""Keys that share a tool: a gateway may refuse a tool for a while after too many failures, and rightly."""
QUIET_S = 10.0
"""How long effects that are still under way may take at the end."""
GIVEN_UP_S = 150.0
"""A scenario that takes longer says so instead of going on."""
ONE_ANSWER = Patience(attempt_s=12.0, whole_s=12.0, errors=1)
"""Where nothing may happen any answer will do, and asking again is no use; silence is a hang."""
SOURCES = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Plan:
    scenarios: Sequence[Scenario]
    keys: int = 24
    patience: Patience = field(default_factory=Patience)
    stop_s: float = 17.0
    """Longer than the leases of gateways that have them."""
    upstream_port: int = 0
    token: str = field(default_factory=lambda: token_hex(3))
    """Part of every key, so that a gateway which remembers another run does not know these."""

    def operations(self, scenario: Scenario, adapter: Adapter) -> list[Operation]:
        kinds = scenario.kinds
        if scenario.forbidden and adapter.approves:
            kinds = (*kinds, "guarded")
        return [self._operation(scenario.name, kinds, number) for number in range(self.keys)]

    def _operation(self, scenario: str, kinds: Sequence[str], number: int) -> Operation:
        block, place = divmod(number, 2 * len(kinds))
        kind, nth = kinds[place // 2], block * 2 + place % 2
        return Operation(
            key=f"{self.token}-{scenario}-{number:04}", tool=f"{kind}-{scenario}-{nth // PER_TOOL}"
        )

    def tools(self, adapter: Adapter) -> dict[str, str]:
        used = [o.tool for scenario in self.scenarios for o in self.operations(scenario, adapter)]
        return {"seen": "seen", **{name: name.partition("-")[0] for name in used}}


async def run(
    adapter: Adapter, plan: Plan, folder: Path, *, home: Path | None = None, tell: Callable[[Row], None]
) -> list[Row]:
    """A row for every scenario; one that cannot run says why."""
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        tell(row)

    async with AsyncExitStack() as stack:
        try:
            world = await _World(adapter, plan, folder, home).open(stack)
        except (Unavailable, OSError) as error:
            for scenario in plan.scenarios:
                add(_without(adapter, scenario, " ".join(str(error).split()), applies=False))
            return rows
        for scenario in plan.scenarios:
            add(await world.row(scenario))
    return rows


class _World:
    """Effect store, upstream, stage and the gateway's processes: everything that outlives a scenario."""

    def __init__(self, adapter: Adapter, plan: Plan, folder: Path, home: Path | None) -> None:
        self._adapter, self._plan, self._folder, self._home = adapter, plan, folder, home
        folder.mkdir(parents=True, exist_ok=True)
        self._clock = FalseClock(folder / "clock")
        self._processes: list[Process] = []
        self._effects: Effects
        self._stage: Stage
        self._http: aiohttp.ClientSession
        self._site: Site

    async def open(self, stack: AsyncExitStack) -> "_World":
        tools = self._folder / "tools.json"
        tools.write_text(json.dumps(self._plan.tools(self._adapter)))
        self._effects = await stack.enter_async_context(counting(self._folder / "effects.txt"))
        self._stage = await stack.enter_async_context(staged())
        acting = (
            *("--effects", str(self._effects.port), "--stage", str(self._stage.port)),
            *("--tools", str(tools)),
        )
        url = await stack.enter_async_context(
            fronted(acting, self._folder, self._plan.upstream_port, {**os.environ, **_importable()})
        )
        self._site = Site(
            folder=self._folder,
            upstream_url=url,
            upstream_command=_stdio(acting),
            tools=self._plan.tools(self._adapter),
            home=self._home,
        )
        self._http = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
        )
        stack.push_async_callback(self._end)
        first = await self._replica(0)
        if first.launch.once is not None:
            await asyncio.to_thread(first.launch.once)
        return self

    async def row(self, scenario: Scenario) -> Row:
        if why := self._unfit(scenario):
            return _without(self._adapter, scenario, why, applies=False)
        arena = None
        try:
            async with asyncio.timeout(GIVEN_UP_S):
                arena = await self._arena(scenario)
                began = time.monotonic()
                await scenario.run(arena)
                await self._stage.quiet(QUIET_S)
        except TimeoutError:
            return _without(self._adapter, scenario, f"not over after {GIVEN_UP_S:.0f} s")
        except (Unavailable, LookupError, OSError) as error:
            return _without(self._adapter, scenario, " ".join(str(error).split()))
        seconds = time.monotonic() - began
        effects = self._effects.counts()
        counted = count(
            arena.operations, effects, struck=arena.struck, seconds=seconds, forbidden=scenario.forbidden
        )
        errors = [operation.last_error for operation in arena.operations if operation.last_error]
        return Row(
            gateway=self._adapter.name,
            scenario=scenario.name,
            figures=counted,
            sample=(errors or [""])[-1],
        )

    def _unfit(self, scenario: Scenario) -> str:
        if scenario.name in self._adapter.unfit:
            return self._adapter.unfit[scenario.name]
        if scenario.owns and not self._site_owned:
            return "the kit did not start this process"
        if scenario.clock and not self._adapter.preloads:
            return "nothing can be preloaded into its process"
        if scenario.clock and library() is None:
            return "libfaketime is not installed: pip install 'holdfast-faults[clock]'"
        return ""

    @property
    def _site_owned(self) -> bool:
        return bool(self._processes[0].launch.command)

    async def _arena(self, scenario: Scenario) -> Arena:
        replicas = min(scenario.replicas, self._adapter.replicas)
        processes = [await self._replica(number) for number in range(replicas)]
        preloaded = library() if scenario.clock else None
        variables = self._clock.environment(preloaded) if preloaded else {}
        for process in processes:
            if process.variables != variables:  # a preloaded library is felt: only where it is needed
                await process.end()
                process.variables = variables
            if not process.alive:  # or an earlier scenario was its end
                await process.start()
        urls: Mapping[str, Mapping[str, str]] = {p.launch.url: p.launch.headers for p in processes}
        agents = [Agent(self._http, urls) for _ in range(AGENTS)]
        await asyncio.gather(*(agent.open() for agent in agents))
        return Arena(
            adapter=self._adapter,
            processes=processes,
            agents=agents,
            stage=self._stage,
            clock=self._clock,
            operations=self._plan.operations(scenario, self._adapter),
            patience=ONE_ANSWER if scenario.forbidden else self._plan.patience,
            stop_s=self._plan.stop_s,
        )

    async def _replica(self, number: int) -> Process:
        if number == len(self._processes):
            launch = self._adapter.prepare(replace(self._site, replica=number))
            log = self._folder / f"gateway-{number}.log"
            process = Process(launch, log)
            self._processes.append(process)
            await process.start()
        return self._processes[number]

    async def _end(self) -> None:
        self._stage.release()
        await asyncio.gather(*(process.end() for process in self._processes))


def _stdio(acting: Sequence[str]) -> tuple[str, ...]:
    variables = [f"{name}={value}" for name, value in _importable().items()]
    # The gateway's false clock is not for the upstream.
    clean = ("env", "-u", "LD_PRELOAD", *variables)
    return (*clean, sys.executable, "-m", "holdfast_faults.upstream.stdio", *acting)


def _importable() -> dict[str, str]:
    """The upstream runs in folders of others, and must find this package there."""
    return {
        "PYTHONPATH": os.pathsep.join((str(SOURCES), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
    }


def _without(adapter: Adapter, scenario: Scenario, why: str, *, applies: bool = True) -> Row:
    return Row(gateway=adapter.name, scenario=scenario.name, why=why, applies=applies)
