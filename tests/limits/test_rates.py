"""Are calls no faster than was allowed, whoever makes them?"""

from typing import Any

import pytest

from holdfast import Code, Status
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.limits.shop import ACME, ANA, BEN, Shop
from tests.requirements import requirement


def rate(**said: Any) -> dict[str, Any]:
    return {"limits": {"rates": [said]}}


@requirement("POL-5")
async def test_a_rate_per_principal_says_when_to_come_again(open_gateway: Open) -> None:
    clock = ManualClock()
    config = rate(per="principal", match="test.*", calls=2, per_s=10)
    async with open_gateway(Shop(), config=config, clock=clock) as gateway:
        mine = [await gateway.call("test.look", {"thing": "a"}, principal=ANA) for _ in range(3)]
        theirs = await gateway.call("test.look", {"thing": "a"}, principal=BEN)
        await clock.advance(5)
        later = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
    assert [m.status for m in mine] == [Status.DONE, Status.DONE, Status.REFUSED]
    assert (mine[2].code, mine[2].remedy.retry_after_ms) == (Code.RATE_LIMITED, 5000)
    assert (theirs.status, later.status) == (Status.DONE, Status.DONE)


@requirement("POL-5", "AUT-6")
@pytest.mark.parametrize(("per", "foreign"), [("tool", Code.RATE_LIMITED), ("tenant", None)])
async def test_a_rate_per_tool_holds_for_all_tenants_and_one_per_tenant_for_one(
    open_gateway: Open, per: str, foreign: Code | None
) -> None:
    async with open_gateway(Shop(), config=rate(per=per, match="*", calls=1, per_s=60)) as gateway:
        seen = [await gateway.call("test.look", {"thing": "a"}, principal=by) for by in (ANA, BEN, ACME)]
    assert [s.code for s in seen] == [None, Code.RATE_LIMITED, foreign]


@requirement("POL-5", "DEC-1")
async def test_several_rates_hold_at_once_and_a_refused_call_takes_from_none(open_gateway: Open) -> None:
    clock = ManualClock()
    config = {
        "limits": {
            "rates": [
                {"per": "tenant", "match": "test.*", "calls": 3, "per_s": 60},
                {"per": "tool", "match": "test.look", "calls": 1, "per_s": 60},
            ]
        }
    }
    async with open_gateway(Shop(), config=config, clock=clock) as gateway:
        looks = [await gateway.call("test.look", {"thing": "a"}, principal=ANA) for _ in range(4)]
        writes = [
            await gateway.call("test.write", {"thing": f"{n}"}, key=f"{n}", principal=ANA) for n in range(3)
        ]
    assert [s.status for s in looks] == [Status.DONE] + [Status.REFUSED] * 3
    assert [s.status for s in writes] == [Status.DONE, Status.DONE, Status.REFUSED]


@requirement("POL-5")
async def test_a_rate_that_matches_no_tool_bounds_none(open_gateway: Open) -> None:
    async with open_gateway(Shop(), config=rate(per="tool", match="shop.*", calls=1, per_s=60)) as gateway:
        seen = [await gateway.call("test.look", {"thing": "a"}, principal=ANA) for _ in range(3)]
    assert {s.status for s in seen} == {Status.DONE}
