"""A backup taken at noon and restored at one o'clock: does any key run a second time?"""

import asyncio
from pathlib import Path

import pytest

from holdfast.model.errors import Code, HoldfastError, NotFound
from holdfast.model.observation import Status
from holdfast.model.restored import RESTORED
from tests.lives.tools import Slow, effects
from tests.lives.town import ANA, BEN, ZOE, Town
from tests.requirements import requirement


@requirement("PPL-5")
async def test_a_key_used_after_the_backup_does_not_run_again(home: Town) -> None:
    await home.call("morning")
    noon = await home.back_up()
    await home.call("lunch")
    restored = await home.restore(noon)
    assert (restored.life.number, restored.unknown) == (2, 0)
    refused = await home.call("lunch")
    assert (refused.status, refused.code) == (Status.REFUSED, Code.TOOL_UNAVAILABLE)
    assert "holdfast store recover" in str(refused.message)
    recovered = await home.recover()
    assert (recovered.operations, recovered.lost) == (1, None)
    again = await home.call("lunch")
    assert (again.status, again.replayed) == (Status.DONE, True)
    assert (await home.call("evening")).status is Status.DONE
    assert effects() == {"morning": 1, "lunch": 1, "evening": 1}


@requirement("PPL-5", "AUD-1")
async def test_the_log_grows_again_out_of_everything_that_was_signed(home: Town) -> None:
    for hour in ("eight", "nine"):
        await home.call(hour)
    noon = await home.back_up()
    for hour in ("ten", "eleven"):
        await home.call(hour)
    before = await home.verify()
    await home.restore(noon)
    await home.call("ten")  # a refusal, recorded in the new life
    recovered = await home.recover()
    assert recovered.merged[0].log_fault is None
    report = await home.verify()
    assert report.ok, report.lines()
    assert report.restarts == []
    assert report.records > before.records
    assert report.checkpoints > before.checkpoints
    assert report.tail == 0


@requirement("PPL-5")
async def test_what_is_known_is_still_answered_and_reads_go_on_meanwhile(home: Town) -> None:
    await home.call("morning")
    await home.restore(await home.back_up())
    async with home.open() as gateway:
        known = await gateway.call("town.plain", {"name": "morning"}, key="morning", principal=ANA)
        read = await gateway.call("town.seen", {"name": "morning"}, principal=ANA)
        asked = await gateway.call("town.grave", {"name": "grave"}, key="grave", principal=ANA)
        assert list(await gateway.halts()) == [RESTORED]
        assert await gateway.approvals(BEN) == []
    assert (known.status, known.replayed) == (Status.DONE, True)
    assert (read.status, read.data) == (Status.DONE, {"times": 1})
    assert (asked.status, asked.code) == (Status.REFUSED, Code.TOOL_UNAVAILABLE)
    assert effects() == {"morning": 1}


@requirement("PPL-5", "PPL-4")
async def test_the_halt_of_a_restore_is_nobodys_to_set_or_lift_by_hand(home: Town) -> None:
    await home.restore(await home.back_up())
    async with home.open() as gateway:
        for lever in (gateway.halt, gateway.resume):
            with pytest.raises(NotFound, match="is lifted by 'holdfast store recover' alone"):
                await lever(ANA, RESTORED)
        assert list(await gateway.halts()) == [RESTORED]


@requirement("PPL-5", "IDM-4")
async def test_what_was_running_when_the_backup_was_taken_is_unknown_and_then_what_became_of_it(
    home: Town,
) -> None:
    async with home.open() as gateway:
        running = asyncio.create_task(gateway.call("town.slow", {"name": "slow"}, key="slow", principal=ANA))
        await Slow.begun.wait()
        await gateway.back_up(ANA, home.folder / "noon")
        Slow.go.set()
        assert (await running).status is Status.DONE
    restored = await home.restore(home.folder / "noon")
    assert restored.unknown == 1
    assert (await home.call("slow", "slow")).status is Status.UNKNOWN
    await home.recover()
    again = await home.call("slow", "slow")
    assert (again.status, again.replayed) == (Status.DONE, True)
    assert effects() == {"slow": 1}
    assert (await home.verify()).ok


@requirement("PPL-5", "IDM-5")
async def test_what_was_running_when_the_store_was_lost_is_settled_by_its_probe(home: Town) -> None:
    noon = await home.back_up()
    lost = await home.call("lost-1", "probed")
    assert lost.status in (Status.UNKNOWN, Status.DONE)
    async with home.open() as gateway:
        running = asyncio.create_task(gateway.call("town.slow", {"name": "slow"}, key="slow", principal=ANA))
        await Slow.begun.wait()
        await gateway.back_up(ANA, home.folder / "later")
        Slow.go.set()
        await running
    await home.restore(noon)
    recovered = await home.recover(home.folder / "later", note="the disk is gone")
    assert recovered.operations == 2
    assert recovered.unknown == 1  # `slow` has no probe: a person must look
    assert (await home.call("lost-1", "probed")).status is Status.DONE
    assert (await home.call("slow", "slow")).status is Status.UNKNOWN
    assert effects() == {"lost-1": 1, "slow": 1}


@requirement("PPL-5", "APR-4")
async def test_an_approval_that_was_used_since_is_used(home: Town) -> None:
    async with home.open() as gateway:
        held = await gateway.call("town.grave", {"name": "grave"}, key="grave", principal=ANA)
        assert held.status is Status.HELD
    noon = await home.back_up()
    async with home.open() as gateway:
        [asked] = await gateway.approvals(BEN)
        await gateway.decide(BEN, asked.id, approve=True)
    assert (await home.call("grave", "grave")).status is Status.DONE
    await home.restore(noon)
    recovered = await home.recover()
    assert recovered.merged[0].approvals == 1
    again = await home.call("grave", "grave")
    assert (again.status, again.replayed) == (Status.DONE, True)
    assert effects() == {"grave": 1}


@requirement("PPL-5", "POL-4")
async def test_what_was_spent_since_is_spent(home: Town) -> None:
    await home.call("one")
    noon = await home.back_up()
    await home.call("two")
    await home.call("three")
    await home.restore(noon)
    await home.recover()
    async with home.open() as gateway:
        [account] = await gateway._ports.ledger.budgets("default")
    assert (account.used.calls, account.reserved.calls) == (3, 0)


@requirement("PPL-5", "CON-6")
async def test_a_tenant_born_since_is_there_and_one_erased_since_stays_erased(home: Town) -> None:
    await home.call("old", principal=ZOE)
    noon = await home.back_up()
    await home.call("ours")
    async with home.open() as gateway:
        await gateway.log.erase(ANA, "acme")
    await home.restore(noon)
    assert (await home.call("old", principal=ZOE)).data == {"name": "old"}, "the backup could still be read"
    recovered = await home.recover()
    assert recovered.merged[0].erased == 1
    gone = await home.call("old", principal=ZOE)
    assert (gone.status, gone.code) == (Status.REFUSED, Code.KEY_EXPIRED)
    assert (await home.call("ours")).data == {"name": "ours"}


@requirement("PPL-5", "PPL-4")
async def test_a_brake_that_was_pulled_since_is_pulled(home: Town) -> None:
    noon = await home.back_up()
    async with home.open() as gateway:
        await gateway.halt(ANA, "town.plain", "it misbehaves")
    await home.restore(noon)
    recovered = await home.recover()
    assert recovered.merged[0].halts == ["town.plain"]
    refused = await home.call("one")
    assert (refused.status, refused.code) == (Status.REFUSED, Code.TOOL_UNAVAILABLE)
    assert "it misbehaves" in str(refused.message)


@requirement("PPL-5")
async def test_a_second_restore_before_the_first_is_recovered_loses_nothing(home: Town) -> None:
    early = await home.back_up("early")
    await home.call("morning")
    late = await home.back_up("late")
    await home.call("lunch")
    assert (await home.restore(late)).life.number == 2
    assert (await home.restore(early)).life.number == 3
    recovered = await home.recover()
    assert len(recovered.merged) == 2
    for key in ("morning", "lunch"):
        assert (await home.call(key)).replayed
    assert effects() == {"morning": 1, "lunch": 1}
    assert (await home.verify()).ok


@requirement("PPL-5")
async def test_a_restored_store_that_was_recovered_can_be_lost_and_restored_again(home: Town) -> None:
    noon = await home.back_up()
    await home.call("one")
    await home.restore(noon)
    await home.recover()
    await home.call("two")
    assert (await home.restore(noon)).life.number == 3
    recovered = await home.recover()
    assert recovered.operations == 2
    for key in ("one", "two"):
        assert (await home.call(key)).replayed
    assert effects() == {"one": 1, "two": 1}


@requirement("PPL-5")
async def test_there_is_nothing_to_recover_where_nothing_was_restored(home: Town) -> None:
    await home.call("one")
    with pytest.raises(NotFound, match="was not put back"):
        await home.recover()


@requirement("PPL-5")
async def test_only_an_operator_backs_up_and_recovers(home: Town) -> None:
    async with home.open() as gateway:
        with pytest.raises(HoldfastError, match="no operator"):
            await gateway.back_up(ZOE, Path("nowhere"))
