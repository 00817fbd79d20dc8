"""Gateways on one store, real processes, each with a wall clock of its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp

from tests.faults.faketime import HOUR_S, WallClock
from tests.soak.effects import ADDRESS, Effects, counting, told_of
from tests.soak.server import Server
from tests.stored import place, url_of

DAY_S = 24 * HOUR_S
CONFIG = """\
store: {store}
upstreams:
  skewed: {{functions: "tests.faults.skewed_tools:TOOLS", concurrency: 64}}
auth:
  people:
    ann: {{scopes: ["**"], trust: 80}}
    olga: {{roles: [operator], scopes: ["**"], trust: 80}}
limits:
  budgets: [{{per: task, kind: write, calls: 3, window_s: {window}}}]
"""
SKEWS = {"early": -HOUR_S, "now": 0.0, "late": HOUR_S}
JUMPERS = ("now", "late")
PATIENCE_MS = 300
POLL_S = 0.05
PATIENCE_S = 60.0
"""A call that is not answered by then never is, on however busy a machine."""


@dataclass
class Skewed:
    folder: Path
    config: Path
    effects: Effects
    http: aiohttp.ClientSession
    servers: dict[str, Server]
    clocks: dict[str, WallClock]

    async def start(self, name: str, ahead_s: float) -> None:
        file = self.folder / f"{name}.clock"
        clock = self.clocks[name] = WallClock(file, ahead_s, jumps=name in JUMPERS)
        server = self.servers[name] = Server(
            name, self.config, {**told_of(self.effects), **clock.environment}
        )
        await server.begin()

    async def call(self, at: str, tool: str, key: str, **more: Any) -> dict[str, Any]:
        body = {"tool": f"skewed.{tool}", "arguments": {}, "key": key, **more}
        return await self.ask(at, "POST", "/v1/calls", body)

    async def done(self, at: str, tool: str, key: str, **more: Any) -> dict[str, Any]:
        """The call as a careful client makes it: as often as the answer says that it may be made again."""
        end = monotonic() + PATIENCE_S
        while True:
            answer = await self.call(at, tool, key, **more)
            if answer["status"] == "done" or not answer["remedy"]["retryable"] or monotonic() >= end:
                return answer
            await asyncio.sleep(POLL_S)  # it is told to wait

    async def everywhere(self, tool: str, key: str, **more: Any) -> dict[str, dict[str, Any]]:
        """The same call at every process, at once."""
        calls = [self.done(at, tool, key, **more) for at in self.servers]
        return dict(zip(self.servers, await asyncio.gather(*calls), strict=True))

    async def ask(
        self, at: str, method: str, path: str, body: Any = None, user: str = "ann"
    ) -> dict[str, Any]:
        headers: Mapping[str, str] = {"x-holdfast-user": user}
        url = f"{self.servers[at].url}{path}"
        async with self.http.request(method, url, json=body, headers=headers) as response:
            answer: dict[str, Any] = await response.json()
            return answer

    async def approve(self, at: str, approval: str) -> dict[str, Any]:
        return await self.ask(
            at, "POST", f"/v1/approvals/{approval}/decision", {"decision": "approve"}, user="olga"
        )


@asynccontextmanager
async def skewed(
    kind: str, folder: Path, skews: Mapping[str, float] | None = None, window_s: float = 30 * DAY_S
) -> AsyncIterator[Skewed]:
    config = folder / "holdfast.yaml"
    async with place(kind, folder), counting(folder / "effects") as effects:
        config.write_text(CONFIG.format(store=url_of(kind, folder), window=window_s))
        # Kept connections may be closed just when they are used again.
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0)) as http:
            world = Skewed(folder, config, effects, http, {}, {})
            os.environ[ADDRESS] = str(effects.port)  # the test says "go" in the same place
            try:
                async with asyncio.TaskGroup() as group:
                    for name, ahead_s in (SKEWS if skews is None else skews).items():
                        group.create_task(world.start(name, ahead_s))
                yield world
            finally:
                for server in world.servers.values():
                    await server.close()
