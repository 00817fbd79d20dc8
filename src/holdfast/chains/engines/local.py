"""Drives runs in this process: for tests, and where a store ends with its process."""

import asyncio
import logging

from holdfast.chains.engine import Drive, Interrupted

log = logging.getLogger(__name__)

CLOSE_S = 5.0


class LocalEngine:
    def __init__(self, at_once: int = 16) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._drive: Drive | None = None
        self._tasks: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    async def start(self, drive: Drive) -> None:
        self._drive = drive

    async def enqueue(self, tenant: str, run_id: str, number: int) -> None:
        name = (tenant, run_id, number)
        if name not in self._tasks:
            task = asyncio.create_task(self._driven(tenant, run_id), name=f"holdfast-run-{run_id}")
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name))

    async def drives(self, tenant: str, run_id: str) -> bool:
        return any(name[:2] == (tenant, run_id) for name in self._tasks)

    async def tend(self) -> None:
        """There is no other process."""

    async def close(self) -> None:
        under_way = list(self._tasks.values())
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=CLOSE_S)

    async def _driven(self, tenant: str, run_id: str) -> None:
        async with self._room:
            try:
                if self._drive is not None:
                    await self._drive(tenant, run_id)
            except Interrupted:
                return
            except Exception:
                log.exception("run %s broke; it goes on when it is taken up again", run_id)
