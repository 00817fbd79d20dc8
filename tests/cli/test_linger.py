"""Does a server stay awake where that is worth it, and sleep where it is not?"""

import asyncio

from holdfast.cli.linger import IDLE_S, MOMENT_S, SELDOM, Linger


class Clock:
    """Passes a little with every look, as turns of a loop with nothing to do take a little."""

    def __init__(self) -> None:
        self.at = 0.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.at += IDLE_S / 4
        return self.at


TURNS = round(MOMENT_S / (IDLE_S / 4)) + 2


async def turns(count: int = TURNS) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def called(linger: Linger, *, slowly: bool) -> bool:
    """One request, answered at once or late; whether anybody stayed awake for it."""
    linger.asked()
    awake = linger.awake
    await turns(TURNS if slowly else 2)
    linger.answered()
    linger.over()
    return awake


async def test_it_stays_awake_for_an_answer_and_for_the_next_request() -> None:
    linger = Linger(Clock())
    for _ in range(5):
        assert await called(linger, slowly=False)
        assert linger.awake
        await turns(2)


async def test_what_does_not_come_within_a_moment_is_slept_for() -> None:
    clock = Clock()
    linger = Linger(clock)
    linger.asked()
    await turns()
    assert not linger.awake
    before = clock.looks
    await turns()
    assert clock.looks == before


async def test_time_in_which_the_loop_works_is_not_time_in_vain() -> None:
    clock = Clock()
    linger = Linger(clock)
    linger.asked()
    for _ in range(3):
        clock.at += MOMENT_S
        await turns(1)
    assert linger.awake


async def test_where_answers_take_long_it_is_hardly_ever_tried() -> None:
    linger = Linger(Clock())
    tried = [await called(linger, slowly=True) for _ in range(20 * SELDOM)]
    assert 0 < sum(tried[SELDOM:]) <= 20


async def test_where_answers_come_at_once_again_it_is_noticed() -> None:
    linger = Linger(Clock())
    for _ in range(4 * SELDOM):
        await called(linger, slowly=True)
    tried = []
    for _ in range(2 * SELDOM):
        await turns()  # callers take their time
        tried.append(await called(linger, slowly=False))
    assert all(tried[SELDOM + 1 :])


async def test_callers_who_take_their_time_are_slept_for() -> None:
    linger = Linger(Clock())
    awake = []
    for _ in range(20 * SELDOM):
        await called(linger, slowly=False)
        awake.append(linger.awake)
        await turns()
    assert 0 < sum(awake[SELDOM:]) <= 20


async def test_several_at_once_keep_nobody_awake() -> None:
    clock = Clock()
    linger = Linger(clock)
    seen = []
    linger.asked()
    seen.append(linger.awake)
    linger.asked()
    seen.append(linger.awake)
    await turns(2)
    looks = clock.looks
    linger.answered()
    seen.append(linger.awake)
    await turns(3)
    assert (seen, clock.looks) == ([True, False, False], looks)
    linger.over()
    linger.answered()
    linger.over()
    assert await called(linger, slowly=False)
