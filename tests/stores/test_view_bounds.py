"""Can what somebody reports stop the view of all calls?"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.stored import ALL
from tests.stores.viewed import Viewed, viewed

MOST = 2**53 - 1


@pytest.fixture(params=ALL)
async def view(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Viewed]:
    async with viewed(request.param, tmp_path) as opened:
        yield opened


@requirement("PPL-2", "TEL-5")
async def test_costs_beyond_what_a_column_holds_do_not_stop_the_view(view: Viewed) -> None:
    said = {"tool": "bank.pay@1.0.0", "caller": "alice", "agent": "bot", "mutation_class": "read_only"}
    said |= {"contract_digest": "d", "status": "done", "task": "t-1"}
    cost = {"currency": "USD", "parts": {"token": MOST}}
    bodies = [json.dumps(said | {"nonce": f"n-{number}", "cost": cost}) for number in range(1100)]
    for start in range(0, len(bodies), 100):
        some = enumerate(bodies[start : start + 100], start)
        await asyncio.gather(*(view.record(f"call_{number}", "outcome", body) for number, body in some))
    await view.catch_up()
    assert await view.counted() == {"done": 1100}
