"""Does an outbox keep what is to be told, hand each notice to one sender at a time, and forget in the end?"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.approval import Answer
from holdfast.model.call import Principal
from holdfast.model.people import Notice, Untold
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import DURABLE, Store, rows, stored
from tests.stores.calls import make_call


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def kept(store: str, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Store]:
    async with stored(store, tmp_path, clock) as opened:
        yield opened


def notice(clock: ManualClock, id: str = "ntc_1", **said: str) -> Notice:
    about = {"tenant": "default", "channel": "ops", "event": "asked", "about": "apr_1"} | said
    return Notice(id=id, body={"tool": "shop.refund"}, at=clock.now(), due_at=clock.now(), **about)  # type: ignore[arg-type]


@requirement("APR-7")
async def test_the_same_notice_is_kept_once(kept: Store, clock: ManualClock) -> None:
    assert await kept.outbox.put(notice(clock))
    assert not await kept.outbox.put(replace(notice(clock), body={"tool": "other"}))
    assert await kept.outbox.put(notice(clock, tenant="acme"))
    assert [one.body for one in await kept.outbox.list("default", 10)] == [{"tool": "shop.refund"}]


@requirement("APR-7")
async def test_what_is_taken_is_nobody_elses_until_its_time_is_over(kept: Store, clock: ManualClock) -> None:
    for number in range(3):
        await kept.outbox.put(notice(clock, f"ntc_{number}"))
    until = clock.now() + 30.0
    takes = [kept.outbox.take(2, until), kept.outbox.take(2, until), kept.outbox.take(2, until)]
    taken = [one.id for some in await asyncio.gather(*takes) for one in some]
    while len(taken) < 3:
        taken += [one.id for one in await kept.outbox.take(2, until)]
    assert sorted(taken) == ["ntc_0", "ntc_1", "ntc_2"]
    assert list(await kept.outbox.take(9, until)) == []
    await clock.advance(30.0)
    assert len(await kept.outbox.take(9, until + 30.0)) == 3


@requirement("APR-7")
async def test_who_was_too_slow_changes_nothing_any_more(kept: Store, clock: ManualClock) -> None:
    await kept.outbox.put(notice(clock))
    [slow] = await kept.outbox.take(1, clock.now() + 30.0)
    await clock.advance(30.0)
    [quick] = await kept.outbox.take(1, clock.now() + 30.0)
    await kept.outbox.again(slow, None, "given up")
    await kept.outbox.sent(slow)
    [still] = await kept.outbox.list("default", 1)
    assert (still.sent_at, still.failed_at, still.tries) == (None, None, 2)
    await kept.outbox.sent(quick)
    await kept.outbox.again(quick, clock.now(), "again")
    [done] = await kept.outbox.list("default", 1)
    assert (done.sent_at, done.said) == (clock.now(), "")
    assert await kept.outbox.next_due() is None


@requirement("APR-7")
async def test_what_waits_and_what_was_given_up_is_counted_and_forgotten_last(
    kept: Store, clock: ManualClock
) -> None:
    for number, channel in enumerate(("ops", "ops", "ops", "post")):
        await kept.outbox.put(notice(clock, f"ntc_{number}", channel=channel))
        await clock.advance(1.0)
    taken = {one.id: one for one in await kept.outbox.take(9, clock.now() + 30.0)}
    await kept.outbox.sent(taken["ntc_0"])
    await kept.outbox.again(taken["ntc_1"], None, "gone")
    await kept.outbox.again(taken["ntc_2"], clock.now() + 5.0, "busy")
    ops, post = await kept.outbox.tally("default")
    assert (ops.channel, ops.sent, ops.waiting, ops.failed, ops.said) == ("ops", 1, 1, 1, "busy")
    assert (ops.last_sent_at, post.last_sent_at, post.waiting) == (clock.now(), None, 1)
    assert await kept.outbox.tally("acme") == []
    assert await kept.outbox.forget(clock.now()) == 2
    assert {one.id for one in await kept.outbox.list("default", 9)} == {"ntc_2", "ntc_3"}


@requirement("APR-7")
async def test_a_question_is_untold_until_each_of_its_steps_was_told(kept: Store, clock: ManualClock) -> None:
    asked = await kept.approvals.ask(make_call(clock, "k"), {"operator": 1}, {"action": "pay"})

    def untold(level: int) -> list[Untold]:
        return [Untold(tenant="default", approval_id=asked.id, level=level)]

    async def told(level: int, ended: bool) -> None:
        await kept.outbox.told("default", asked.id, level, ended)

    assert await kept.outbox.untold(9) == untold(-1)
    await told(0, False)
    assert await kept.outbox.untold(9) == []
    await kept.approvals.escalate(asked, 1, ["lead"])
    assert await kept.outbox.untold(9) == untold(0)
    await told(1, False)
    answered = await kept.approvals.decide(asked, Principal(user="olga"), "operator", True, "")
    assert answered.answer is Answer.APPROVED
    assert await kept.outbox.untold(9) == untold(1)
    await told(1, True)
    await told(0, False)  # somebody who comes late takes nothing back
    assert await kept.outbox.untold(9) == []


@requirement("APR-7", "AUD-4")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_what_a_notice_says_is_sealed(
    kept: Store, store: str, clock: ManualClock, tmp_path: Path
) -> None:
    await kept.outbox.put(notice(clock))
    [(body,)] = rows(store, tmp_path, "SELECT body FROM {}notice")
    assert b"refund" not in bytes(body)
