"""Are records dropped when their time is over, and not before? AUD-4."""

import asyncio
from typing import Any

import pytest

from holdfast import config as configuration
from holdfast.config import Config
from holdfast.gateway.auditing import DAY_S, Auditing
from holdfast.records.export import Part
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import SystemClock
from tests.audit.world import CONFIG, Place, check, said
from tests.requirements import requirement


class Later(SystemClock):
    """The same clock, days later."""

    def __init__(self, days: float) -> None:
        self._days = days

    def now(self) -> float:
        return super().now() + self._days * DAY_S


def configured(place: Place, audit: dict[str, Any]) -> Config:
    return configuration.parse({**CONFIG, "audit": audit}, folder=place.folder)


def pruned(place: Place, audit: dict[str, Any], days: float) -> int:
    """Let this many days pass and the gateway look."""

    async def prune() -> int:
        clock = Later(days)
        async with SqliteStore(place.database, clock) as store:
            auditing = Auditing(store.audit, place.notary, clock)
            gone = await auditing.prune(configured(place, audit), {"default", "acme"})
            await auditing.tidy(sign_now=True)
        return gone

    return asyncio.run(prune())


@requirement("AUD-4")
def test_nothing_is_dropped_unless_somebody_says_when(log: Place) -> None:
    assert pruned(log, {}, 10_000) == 0


@requirement("AUD-4", "AUD-1")
def test_old_records_are_dropped_and_the_log_says_so_and_verifies(log: Place) -> None:
    assert pruned(log, {"retention_days": 30}, 29) == 0
    assert pruned(log, {"retention_days": 30}, 31) == 1000
    report = log.verify()
    assert (report.ok, report.pruned, report.tail) == (True, 1000, 0), said(report)
    assert "pruned: 1000 records are past their retention; their hashes are intact" in report.lines()


@requirement("AUD-4", "AUT-6")
def test_each_tenant_has_its_own_time(log: Place) -> None:
    audit = {"retention_days": 365, "tenants": {"acme": {"retention_days": 1}}}
    assert pruned(log, audit, 2) == 200
    report = log.verify()
    assert (report.ok, report.pruned, report.records) == (True, 200, 801), said(report)


@requirement("AUD-4")
def test_what_is_left_is_exported_and_proved(log: Place) -> None:
    pruned(log, {"tenants": {"acme": {"retention_days": 1}}}, 2)
    for part in (Part(), Part("default"), Part("acme")):
        report = check(log.export(part), log.key)
        assert report.ok, said(report)
    assert report.pruned == 200


@requirement("AUD-1", "AUD-4")
@pytest.mark.parametrize("leaf", [0, 999])
def test_pruning_one_tenant_is_no_cover_for_removing_anothers_records(log: Place, leaf: int) -> None:
    pruned(log, {"tenants": {"acme": {"retention_days": 1}}}, 2)
    with log.tampering() as connection:
        place = connection.execute(
            "SELECT tenant, writer, seq FROM tree_leaf WHERE leaf = ?", (leaf,)
        ).fetchone()
        assert place[0] == "default"
        connection.execute("DELETE FROM record WHERE tenant = ? AND writer = ? AND seq = ?", place)
    assert f"record {place[2]} of writer '{place[1]}'" in said(log.verify())


@requirement("AUD-4")
def test_what_is_not_behind_a_checkpoint_stays(log: Place) -> None:
    log.checkpoints.unlink()
    assert pruned(log, {"retention_days": 1}, 2) == 0
