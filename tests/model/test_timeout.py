"""Does a deadline hold where a task cleans up because it is cancelled?"""

import asyncio
import re
from pathlib import Path

from holdfast.model.timeout import timeout
from tests.requirements import requirement

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"


@requirement("EXE-1")
async def test_the_end_of_the_time_is_no_cancellation_even_in_a_task_that_is_being_cancelled() -> None:
    ended: list[str] = []

    async def clean_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                async with timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                ended.append("in time")

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (ended, task.cancelled()) == (["in time"], True)


@requirement("EXE-1")
async def test_whoever_is_cancelled_while_time_is_left_is_cancelled() -> None:
    async def work() -> None:
        async with timeout(60):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


def test_nothing_here_relies_on_the_one_that_gets_it_wrong() -> None:
    own = [path for path in SOURCE.rglob("*.py") if path.name != "timeout.py"]
    assert [path for path in own if re.search(r"asyncio\.(timeout|wait_for)\(", path.read_text())] == []
