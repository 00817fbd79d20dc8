"""Does a version leave when its time has come, and nobody is left behind?"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast import Effect, tool
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.gateway.retiring import Retiring
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.vocabulary import ToolStatus
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from tests.catalog.contracts import get_order, offer
from tests.lifecycle.world import opened
from tests.requirements import requirement

START = ManualClock().now()


def day(days: int) -> str:
    return (datetime.fromtimestamp(START, UTC) + timedelta(days=days)).date().isoformat()


def versions(**old: Any) -> list[object]:
    @tool(effect=Effect.READ_ONLY, name="weigh", version="1.0.0", **old)
    async def weigh_in_pounds(pounds: float) -> dict[str, float]:
        """Weigh something.

        Args:
            pounds: how heavy it is
        """
        return {"grams": pounds * 453.6}

    @tool(effect=Effect.READ_ONLY, name="weigh", version="2.0.0")
    async def weigh(grams: float) -> dict[str, float]:
        """Weigh something.

        Args:
            grams: how heavy it is
        """
        return {"grams": grams}

    return [weigh_in_pounds, weigh]


MOVED = {"to": "2.0.0", "arguments": {"grams": "=args.pounds * 500.0"}}


def status(gateway: Any, version: str) -> ToolStatus:
    listing = gateway._ports.catalog.exact("test.weigh", version)
    assert listing is not None
    return ToolStatus(listing.status)


@requirement("REG-6")
async def test_a_version_is_deprecated_on_its_day_and_says_so(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(
        store, tmp_path, versions(deprecated_on=day(1), successor="2.0.0"), clock=clock
    ) as gateway:
        before = await gateway.call("test.weigh", {"pounds": 1.0}, version="1.0.0")
        await clock.advance(2 * 86_400)
        await gateway.tidy()
        after = await gateway.call("test.weigh", {"pounds": 1.0}, version="1.0.0")
    assert before.warnings == ()
    assert after.status is Status.DONE
    assert "deprecated" in after.warnings[0]
    assert after.deprecation is not None
    assert after.deprecation["successor"] == "2.0.0"


@requirement("REG-6")
async def test_a_version_still_in_use_is_not_taken_away_and_somebody_is_told(
    store: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with opened(store, tmp_path, versions(sunset_on=day(1)), clock=clock) as gateway:
        await clock.advance(86_400)
        await gateway.call("test.weigh", {"pounds": 1.0}, version="1.0.0")
        await gateway.tidy()
        assert status(gateway, "1.0.0") is ToolStatus.DEPRECATED
        said = await gateway._retiring.tend()  # looked a moment ago
        await clock.advance(3_600)
        again = await gateway._retiring.tend()
        notes = list(await gateway.usage(gateway.identity.at_terminal(), 0.0))
        await clock.advance(86_400)
        await gateway.tidy()
        assert status(gateway, "1.0.0") is ToolStatus.SUNSET
    assert (said, again) == ([], [])
    assert [(use.tool, use.calls) for use in notes] == [("test.weigh@1.0.0", 1)]


@requirement("REG-6")
async def test_a_version_that_comes_later_leaves_in_time_as_well() -> None:
    clock, catalog = ManualClock(), MemoryCatalog()
    retiring = Retiring(catalog, MemoryStore(clock).audit, clock)

    def status() -> ToolStatus | None:
        found = catalog.exact("shop.get_order", "1.0.0")
        return None if found is None else ToolStatus(found.status)

    await retiring.tend()
    dates = {"deprecated_on": day(1), "sunset_on": day(2)}
    catalog.register([offer(get_order(identity={"version": "1.0.0", **dates}))])
    seen = []
    for _ in range(4):
        await retiring.tend()
        seen.append(status())
        await clock.advance(86_400)
    assert seen == [ToolStatus.ACTIVE, ToolStatus.DEPRECATED, ToolStatus.SUNSET, ToolStatus.SUNSET]
    catalog.set_status("shop.get_order", "1.0.0", ToolStatus.ACTIVE)
    await retiring.tend()
    assert status() is ToolStatus.SUNSET


@requirement("REG-6")
async def test_an_alert_names_who_still_calls_it(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(store, tmp_path, versions(sunset_on=day(1)), clock=clock) as gateway:
        await clock.advance(86_400)
        await gateway.call("test.weigh", {"pounds": 1.0}, version="1.0.0")
        [alert] = await gateway._retiring.tend()
        assert "test.weigh@1.0.0" in alert
        assert "1 times" in alert
        assert gateway.identity.at_terminal().user in alert


@requirement("REG-6")
async def test_calls_of_a_version_that_is_gone_are_translated_where_its_contract_says_how(
    store: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with opened(store, tmp_path, versions(sunset_on=day(1), migration=MOVED), clock=clock) as gateway:
        await clock.advance(2 * 86_400)
        await gateway.tidy()
        moved = await gateway.call("test.weigh", {"pounds": 2.0}, version="1.0.0")
        wrong = await gateway.call("test.weigh", {"stones": 2.0}, version="1.0.0")
    assert (moved.status, moved.version, moved.data) == (Status.DONE, "2.0.0", {"grams": 1000.0})
    assert "translated to 2.0.0" in moved.warnings[0]
    assert wrong.code is Code.STRUCTURAL_VIOLATION
    assert "pounds" in str(wrong.field_errors)


@requirement("REG-6")
async def test_without_a_migration_a_version_that_is_gone_says_what_to_use(tmp_path: Path) -> None:
    clock = ManualClock()
    old = versions(sunset_on=day(1), successor="2.0.0")
    async with opened("memory", tmp_path, old, clock=clock) as gateway:
        await clock.advance(2 * 86_400)
        await gateway.tidy()
        gone = await gateway.call("test.weigh", {"pounds": 2.0}, version="1.0.0")
    assert gone.code is Code.VERSION_INCOMPATIBLE
    assert "2.0.0" in (gone.message or "")
