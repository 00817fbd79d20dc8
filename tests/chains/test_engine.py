"""Does the engine know of its own workflows whether they are at work?"""

import asyncio
from pathlib import Path

from holdfast.chains.engine import Interrupted
from holdfast.chains.engines.dbos import DbosEngine
from holdfast.testing import ManualClock
from tests.polling import until
from tests.requirements import requirement
from tests.stored import durable

PATIENCE_S = 60.0


@requirement("CHN-7")
async def test_a_workflow_that_was_begun_and_is_not_at_work_does_not_keep_its_run_from_being_driven(
    tmp_path: Path,
) -> None:
    driven: list[str] = []
    at_work, may_end = asyncio.Event(), asyncio.Event()

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)
        if len(driven) == 1:  # to DBOS it stays begun, as one that a lost database cut short does
            raise Interrupted
        at_work.set()
        await may_end.wait()

    async with asyncio.timeout(PATIENCE_S), durable("sqlite", tmp_path, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{tmp_path / 'chains.db'}", store.slots)
        await engine.start(drive)
        try:
            await engine.enqueue("acme", "run-1", 0)
            await until(lambda: driven == ["run-1"])
            assert not await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            await at_work.wait()
            assert await engine.drives("acme", "run-1")
            await engine.enqueue("acme", "run-1", 0)
            may_end.set()
            assert driven == ["run-1", "run-1"]
        finally:
            await engine.close()
