"""What happens to effects while the processes that make them are killed and stopped?

Several servers on one database. Every key is delivered several times, to varying servers; lost answers,
busy keys and uncertain outcomes are retried with the same key, as a careful client would.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp

from holdfast.model import defaults
from tests.soak.effects import Effects, told_of
from tests.soak.figures import Figures
from tests.soak.ledger import Ledger, LedgerFile
from tests.soak.server import Server

PLAIN, PROBED = "soak.apply", "soak.apply_probed"
CONFIG = """\
store: {store}
upstreams:
  soak: {{functions: "tests.soak.tools:TOOLS"}}
"""
BLOCK = 40
"""Keys whose deliveries are mixed: duplicates meet each other, and some come much later."""
PATIENCE_S = 4.0
"""How long a client waits for an answer before it asks again."""
UNCERTAIN_TRIES = 4
"""How often a client asks after an uncertain outcome that nobody but a person can settle."""
BEYOND_LEASE_S = 5.0
BREATHER_S = 0.2
"""Between two requests of a client once all planned keys are out: starting servers need the processor."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    processes: int
    keys: int
    deliveries: int
    in_flight: int = 8
    kills: int
    stops: int
    stop_s: float


@dataclass(kw_only=True)
class Delivery:
    tool: str
    key: str
    item: int
    uncertain: int = 0


class Storm:
    breather_s = BREATHER_S

    def __init__(self, plan: Plan, folder: Path, effects: Effects, ledger: Ledger | None = None) -> None:
        """`ledger` is the store they share; a file in the folder when left out."""
        self.plan = plan
        self.figures = Figures()
        self._effects = effects
        self._ledger = ledger or LedgerFile(folder / "storm.db")
        self.config = folder / "holdfast.yaml"
        self.config.write_text(CONFIG.format(store=self._ledger.url))
        names = [f"server-{number}" for number in range(plan.processes)]
        environment, owner_of = told_of(effects), self._ledger.owner_of
        self._servers = [Server(name, self.config, environment, owner_of) for name in names]
        self._deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
        self._open = 0
        self._answered = 0
        self._progress = asyncio.Condition()

    async def run(self) -> Figures:
        began = monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                for server in self._servers:
                    group.create_task(server.start())
            await self._rage()
            await self._calm()
        finally:
            for server in self._servers:
                await server.close()
        await self._read()
        self.figures.seconds = monotonic() - began
        return self.figures

    # -- the storm ---------------------------------------------------------------

    async def _rage(self) -> None:
        async with self._clients(self._watch()), asyncio.TaskGroup() as group:
            blows = [group.create_task(blow) for blow in self._blows()]
            group.create_task(self._feed(blows))

    @asynccontextmanager
    async def _clients(self, *others: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """They send what is to be delivered, until the block ends."""
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            clients = [
                self._client(server, session) for server in self._servers for _ in range(self.plan.in_flight)
            ]
            tasks = [asyncio.create_task(work) for work in (*clients, *others)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            for error in ended:
                if isinstance(error, Exception):
                    raise error

    async def _feed(self, blows: list[asyncio.Task[None]]) -> None:
        """New keys while there are too few, and as long as somebody is still to be killed."""
        figures, plan = self.figures, self.plan
        while figures.keys < plan.keys or not all(blow.done() for blow in blows):
            block = [self._new_key() for _ in range(min(BLOCK, plan.keys))]
            mixed = [Delivery(**vars(one)) for one in block for _ in range(plan.deliveries)]
            random.shuffle(mixed)
            for delivery in mixed:
                self._deliver(delivery)
            async with self._progress:
                await self._progress.wait_for(lambda: self._open < 2 * plan.processes * plan.in_flight)
        async with self._progress:
            await self._progress.wait_for(lambda: self._open == 0)

    def _new_key(self) -> Delivery:
        self.figures.keys += 1
        return delivery_of(self.figures.keys - 1)

    def _deliver(self, delivery: Delivery) -> None:
        self._deliveries.put_nowait(delivery)
        self._open += 1
        self.figures.deliveries += 1

    async def _client(self, server: Server, session: aiohttp.ClientSession) -> None:
        while True:
            await server.up.wait()
            if self.figures.keys > self.plan.keys:
                await asyncio.sleep(self.breather_s)
            delivery = await self._deliveries.get()
            self.figures.requests += 1
            server.in_flight += 1
            try:
                answer = await _post(session, server.url, delivery)
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.figures.lost_answers += 1
                self._again(delivery, 0.05)
                continue
            finally:
                server.in_flight -= 1
            await self._take(delivery, answer)

    async def _take(self, delivery: Delivery, answer: dict[str, Any]) -> None:
        match answer:
            case {"status": "done", "data": data}:
                self.figures.done[delivery.key].add(json.dumps(data, sort_keys=True))
            case {"status": "unknown"}:
                delivery.uncertain += 1
                if delivery.tool == PROBED or delivery.uncertain < UNCERTAIN_TRIES:
                    self._again(delivery, 0.5)
                    return
            case {"remedy": {"retryable": True}} | {"code": "RESOURCE_EXHAUSTED" | "CANCELLED"}:
                self._again(delivery, 0.2)
                return
            case _:
                self.figures.surprises.append(json.dumps(answer))
        self.figures.told[str(answer.get("status"))] += 1
        async with self._progress:
            self._open -= 1
            self._answered += 1
            self._progress.notify_all()

    def _again(self, delivery: Delivery, delay_s: float) -> None:
        """Somebody else's turn: the retry goes to whichever server is free next."""
        asyncio.get_running_loop().call_later(delay_s, self._deliveries.put_nowait, delivery)

    # -- the blows ---------------------------------------------------------------

    def _blows(self) -> list[Coroutine[Any, Any, None]]:
        return [self._killer(), self._stopper()]

    async def _killer(self) -> None:
        async with asyncio.TaskGroup() as restarts:
            for number in range(self.plan.kills):
                await self._reached((number + 0.5) / self.plan.kills)
                victim = await self._busy_server(acting=number % 2 == 0)
                await victim.kill()
                await self._ledger.settle_down()
                hit = await self._ledger.in_flight(victim.worker)
                self.figures.kills += 1
                self.figures.kills_in_flight += hit > 0
                self.figures.calls_killed += hit
                restarts.create_task(victim.start())

    async def _stopper(self) -> None:
        for number in range(self.plan.stops):
            await self._reached((number + 0.5) / self.plan.stops)
            sleeper = await self._busy_server(acting=True)
            sleeper.stop()
            self.figures.stops += 1
            await self._count_stop(sleeper)
            await asyncio.sleep(self.plan.stop_s)  # longer than its lease: the time is the test
            sleeper.wake()

    async def _count_stop(self, sleeper: Server) -> None:
        """A worker stopped in a transaction may keep the whole database: nobody's outcome is written then."""
        await self._ledger.settle_down()
        alone = await self._ledger.in_flight(sleeper.worker)
        in_transaction = await self._ledger.stalled()
        self.figures.stops_in_transaction += in_transaction
        everybody = in_transaction and self._ledger.one_writer
        self.figures.calls_stopped += await self._ledger.all_in_flight() if everybody else alone

    async def _reached(self, share: float) -> None:
        answers = share * self.plan.keys * self.plan.deliveries
        async with self._progress:
            await self._progress.wait_for(lambda: self._answered >= answers)

    async def _busy_server(self, *, acting: bool) -> Server:
        """One of a majority that serves, with requests; `acting`: and with a claim that has no outcome."""
        while True:
            serving = [server for server in self._servers if server.serving]
            busy = [server for server in serving if server.in_flight]
            if busy and len(serving) > len(self._servers) // 2:
                chosen = random.choice(busy)
                claims = not acting or await self._ledger.acting(chosen.worker)
                if claims and chosen.serving:  # still: the other blow may have hit it meanwhile
                    return chosen
            await asyncio.sleep(0.002)  # servers come back, and claim, at their own pace

    # -- looking -----------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            self.figures.stuck = max(self.figures.stuck, await self._ledger.stuck(BEYOND_LEASE_S))
            await asyncio.sleep(1.0)

    async def _calm(self) -> None:
        """Time must settle what is left, until lease + 5 s; what is left then is stuck."""
        end = monotonic() + defaults.LEASE_MIN_S + BEYOND_LEASE_S
        while await self._ledger.unsettled(PROBED) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # a poll of the database, with a deadline
        self.figures.stuck = max(self.figures.stuck, await self._ledger.stuck(BEYOND_LEASE_S))

    async def _read(self) -> None:
        figures, rows = self.figures, await self._ledger.rows()
        figures.effects = self._effects.counts()
        figures.states = {tool: await self._ledger.states(tool) for tool in (PLAIN, PROBED)}
        figures.committed = {row.key for row in rows if row.state == "committed"}
        figures.without_effect = {row.key for row in rows if row.state == "no_effect"}
        figures.intents = await self._ledger.keys_with_intent()
        figures.why_unknown = await self._ledger.why_unknown()
        figures.broken_chains = await self._ledger.faults()


def delivery_of(number: int) -> Delivery:
    return Delivery(tool=PROBED if number % 2 else PLAIN, key=f"key-{number}", item=number)


async def _post(session: aiohttp.ClientSession, url: str, delivery: Delivery) -> dict[str, Any]:
    body = {"tool": delivery.tool, "arguments": {"item": delivery.item}, "key": delivery.key}
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with session.post(f"{url}/v1/calls", json=body, timeout=timeout) as response:
        answer: dict[str, Any] = await response.json()
        return answer
