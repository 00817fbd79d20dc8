"""Do runs that wait cost the database next to nothing?"""

import json
from dataclasses import replace
from pathlib import Path

from holdfast.model.call import Principal
from holdfast.model.run import RunState
from holdfast.stores.sql.runs import DUE, SqlRuns
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import durable, place
from tests.stores.calls import make_call
from tests.stores.test_runs import RUN

WAITING = 1000
ONE = {"operator": 1}


@requirement("CHN-7")
async def test_a_look_at_runs_that_wait_reads_each_of_them_once(tmp_path: Path) -> None:
    clock = ManualClock()
    async with place("postgres", tmp_path), durable("postgres", tmp_path, clock) as store:
        for number in range(WAITING):
            call = make_call(clock, f"k-{number}", principal=Principal(user=f"user-{number % 25}"))
            asked = await store.approvals.ask(call, ONE, {})
            await store.runs.begin(replace(RUN, id=f"run_{number}", key=f"k-{number}"))
            taken = await store.runs.take_up("default", f"run_{number}")
            assert taken is not None
            journal = store.runs.journal(taken)
            await journal.move(RunState.RUNNING, waits_for="somebody", waits_on=asked.id)
        assert await store.runs.due() == []
        blocks = await _blocks(store.runs)
    assert blocks < 10 * WAITING, blocks


async def _blocks(runs: SqlRuns) -> int:
    """How much of its tables the server looks at for one answer: the same whatever else the machine does."""
    [(told,)] = await runs._reader.all("*", f"EXPLAIN (ANALYZE, FORMAT JSON) {DUE}")
    plan = json.loads(told)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
