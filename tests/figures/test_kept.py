"""Does every store keep alerts alike, one of a kind and subject at a time?"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.people import Alert
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import Store, stored

NOW = ManualClock().now()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def kept(store: str, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    async with stored(store, tmp_path, clock) as opened:
        yield opened


def alert(
    number: int = 1, kind: str = "degraded", subject: str = "shop.find", *, tenant: str = "default"
) -> Alert:
    facts = {"calls": 41, "p99_ms": None, "codes": {"INTERNAL": number}}
    return Alert(
        tenant=tenant,
        id=f"alert_{number}",
        kind=kind,
        subject=subject,
        text="it fails \N{SNOWMAN}",
        facts=facts,
        at=NOW + number,
        seen_at=NOW + number,
    )


@requirement("TEL-3")
async def test_an_alert_is_new_once_and_then_seen_again(kept: Store) -> None:
    first = alert()
    assert await kept.alerts.raise_(first)
    assert await kept.alerts.open("default") == [first]
    again = replace(alert(2), text="it fails more", facts={"calls": 50})
    assert not await kept.alerts.raise_(again)
    assert await kept.alerts.open("default") == [replace(again, id=first.id, at=first.at)]
    assert not await kept.alerts.raise_(first)  # what somebody saw before changes nothing
    assert (await kept.alerts.open("default"))[0].text == "it fails more"


@requirement("TEL-3")
async def test_of_many_who_raise_it_at_once_one_is_first(kept: Store) -> None:
    new = await asyncio.gather(*(kept.alerts.raise_(alert(number)) for number in range(1, 9)))
    assert sorted(new) == [False] * 7 + [True]
    assert len(await kept.alerts.open("default")) == 1


@requirement("TEL-3")
async def test_an_alert_ends_once_and_may_come_again(kept: Store, clock: ManualClock) -> None:
    first = alert()
    await kept.alerts.raise_(first)
    await clock.advance(10)
    assert sorted(await asyncio.gather(kept.alerts.end(first), kept.alerts.end(first))) == [False, True]
    assert await kept.alerts.open("default") == []
    assert await kept.alerts.list("default", 0.0, 10) == [replace(first, ended_at=clock.now())]
    assert await kept.alerts.raise_(alert(2))
    assert [one.id for one in await kept.alerts.list("default", 0.0, 10)] == ["alert_2", "alert_1"]
    assert not await kept.alerts.end(alert(3))


@requirement("TEL-3")
async def test_alerts_are_listed_newest_first_from_a_time_on(kept: Store) -> None:
    for number, kind in enumerate(("degraded", "timeouts", "quarantined"), start=1):
        await kept.alerts.raise_(alert(number, kind))
    assert [one.kind for one in await kept.alerts.list("default", NOW + 2, 10)] == ["quarantined", "timeouts"]
    assert [one.kind for one in await kept.alerts.list("default", 0.0, 1)] == ["quarantined"]
    assert [one.kind for one in await kept.alerts.open("default")] == ["quarantined", "timeouts", "degraded"]


@requirement("TEL-3", "AUT-6")
async def test_tenants_share_no_alerts(kept: Store) -> None:
    assert await kept.alerts.raise_(alert())
    assert await kept.alerts.raise_(alert(2, tenant="acme"))
    assert [one.id for one in await kept.alerts.open("acme")] == ["alert_2"]
    assert not await kept.alerts.end(replace(alert(), tenant="acme"))


@requirement("TEL-3")
async def test_only_what_is_over_is_forgotten(kept: Store, clock: ManualClock) -> None:
    await kept.alerts.raise_(alert())
    await kept.alerts.raise_(alert(2, tenant="acme"))
    await kept.alerts.end(alert())
    assert await kept.alerts.forget(clock.now()) == 0
    await clock.advance(1)
    assert await kept.alerts.forget(clock.now()) == 1
    assert [one.id for one in await kept.alerts.open("acme")] == ["alert_2"]
