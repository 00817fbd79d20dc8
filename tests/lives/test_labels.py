"""Does a session that read something confidential still hold it when a backup from before takes the place?"""

from dataclasses import replace

import pytest

from holdfast import Principal, Status
from holdfast.stores.backup.labels import LabelsTold
from tests.lives.town import ANA, Town
from tests.requirements import requirement

OPERATOR = replace(ANA, agent="local")


async def read(home: Town, session: str, who: Principal = ANA) -> None:
    async with home.open() as gateway:
        seen = await gateway.call("town.confidential", {"name": "x"}, principal=who, session=session)
        assert seen.status is Status.DONE, seen


async def held(home: Town) -> list[str]:
    async with home.open() as gateway:
        return sorted(one.holder for one in await gateway.labels.held(OPERATOR))


@requirement("PPL-5", "OBS-6")
async def test_what_was_read_since_the_backup_is_held_again_and_what_was_lifted_since_still_is(
    home: Town,
) -> None:
    await read(home, "early")
    noon = await home.back_up()
    await read(home, "late")
    async with home.open() as gateway:
        await gateway.labels.lift(OPERATOR, "early", "confidential", "a drill")
    assert await held(home) == ["session:ana/late"]
    await home.restore(noon)
    assert await held(home) == ["session:ana/early"]
    await home.recover()
    assert await held(home) == ["session:ana/early", "session:ana/late"]


@requirement("PPL-5", "OBS-6")
@pytest.mark.parametrize("session", ["late", "early"])
async def test_an_exported_log_tells_what_was_read(home: Town, session: str) -> None:
    await read(home, "early")
    noon = await home.back_up()
    await read(home, session)
    log = await home.export()
    await home.restore(noon)
    await home.recover(log, note="the disk died")
    assert await held(home) == sorted({"session:ana/early", f"session:ana/{session}"})


@requirement("PPL-5", "OBS-6", "IDM-5")
async def test_an_exported_log_tells_what_a_probe_found_out(home: Town) -> None:
    await read(home, "early")
    noon = await home.back_up()
    async with home.open() as gateway:
        seen = await gateway.call("town.probed", {"name": "lost"}, key="k", principal=ANA, session="late")
        assert seen.status is Status.DONE, seen
    log = await home.export()
    await home.restore(noon)
    await home.recover(log, note="the disk died")
    assert await held(home) == ["session:ana/early", "session:ana/late"]


@requirement("PPL-5", "OBS-6")
@pytest.mark.parametrize("tool", ["confidential", "probed"])
async def test_the_order_of_a_calls_records_does_not_matter(home: Town, tool: str) -> None:
    """They may be of several chains, between which the log has no order."""
    async with home.open() as gateway:
        key = "k" if tool == "probed" else None
        seen = await gateway.call(f"town.{tool}", {"name": "lost"}, key=key, principal=ANA, session="late")
        await gateway.tidy()
        entries = await gateway.log.of_call(OPERATOR, seen.call_id, -1, 100)
        told = []
        for order in (entries, entries[::-1]):
            labels = LabelsTold(gateway._ports.secrets, {"default"})
            for entry in order:
                labels.see(entry.record)
            told.append(sorted((gain.holder, gain.label) for gain in labels.gained))
    assert "session:ana/late" in {holder for holder, _ in told[0]}
    assert told[0] == told[1]
