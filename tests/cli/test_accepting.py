"""Do connections that come at once go to all who accept from one socket?"""

import asyncio
import contextlib
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from holdfast.cli import accepting
from holdfast.cli.accepting import OneByOne
from holdfast.cli.tally import Tally
from tests.requirements import requirement


class Taken(asyncio.Protocol):
    def __init__(self, taken: Callable[[], None]) -> None:
        self._taken = taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._taken()
        transport.close()


class Workers:
    """Several who accept from one socket, as processes do: each has a descriptor of its own."""

    def __init__(self, count: int, pause_s: float = 0.01, has: Sequence[int] = ()) -> None:
        """`has` is what each of them serves already, as the others know."""
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.took: Counter[int] = Counter()
        self._news = asyncio.Event()
        self._sockets = [self.bound.dup() for _ in range(count)]
        self.tally = Tally.made(len(has)) if has else None
        self.doors = [self._door(number, one, pause_s, has) for number, one in enumerate(self._sockets)]

    def _door(self, number: int, one: socket.socket, pause_s: float, has: Sequence[int]) -> OneByOne:
        make = partial(Taken, partial(self._note, number))
        if self.tally is None:
            return OneByOne(one, make, pause_s)
        tally = Tally(self.tally.descriptor, number)
        return OneByOne(one, make, pause_s, has=lambda: has[number], tally=tally)

    def _note(self, number: int) -> None:
        self.took[number] += 1
        self._news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while self.took.total() < count:
                self._news.clear()
                await self._news.wait()

    async def close(self) -> None:
        for door in self.doors:
            await door.close()
        for one in (self.bound, *self._sockets):
            one.close()


@contextlib.contextmanager
def clients(workers: Workers, count: int) -> Iterator[None]:
    """So many that have connected, and wait to be accepted."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(workers.bound.getsockname()))
        yield


@requirement("NAM-1")
async def test_connections_that_come_at_once_go_to_all_workers_alike() -> None:
    workers = Workers(3)
    with clients(workers, 30):
        await workers.until(30)
    assert workers.took == {0: 10, 1: 10, 2: 10}
    await workers.close()


async def test_who_has_more_leaves_them_to_who_has_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "LEAVE_S", 3600.0)
    workers = Workers(3, has=(100, 10, 11))
    with clients(workers, 30):
        await workers.until(30)
    assert workers.took[0] == 0
    assert workers.took[1] == workers.took[2] == 15
    await workers.close()


async def test_who_is_stopped_is_waited_for_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "LEAVE_S", 0.0)
    workers = Workers(1, has=(100, 0))
    assert workers.tally is not None
    Tally(workers.tally.descriptor, 1).say(0)  # and was stopped
    with clients(workers, 100):
        await workers.until(100)
    assert workers.took == {0: 100}
    assert workers.doors[0]._after == accepting.AFTER == 64  # after 1, 2, 4, 8, 16 and 32
    await workers.close()


async def test_who_has_the_place_of_one_that_has_left_is_heard_of_again() -> None:
    workers = Workers(1, has=(3, 5))
    assert workers.tally is not None
    other = Tally(workers.tally.descriptor, 1)
    workers.tally.gone(0)
    assert other.least() is None
    workers.doors[0].tell()
    assert other.least() == 3
    await workers.close()


async def test_who_has_closed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "LEAVE_S", 3600.0)
    workers = Workers(2, has=(100, 0))
    await workers.doors[1].close()
    with clients(workers, 8):
        await workers.until(8)
    assert workers.took == {0: 8}
    await workers.close()


async def test_who_closes_takes_nothing_more_and_the_others_take_it() -> None:
    workers = Workers(2)
    await workers.doors[0].close()
    with clients(workers, 8):
        await workers.until(8)
    assert workers.took == {1: 8}
    await workers.close()


async def test_what_was_taken_is_there_when_the_door_is_closed() -> None:
    workers = Workers(1)
    with clients(workers, 1):
        while not workers.doors[0]._taking:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await workers.close()
    assert workers.took == {0: 1}


async def test_where_no_descriptor_is_left_it_is_said_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workers = Workers(1)
    with clients(workers, 2):
        usual = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, usual[1]))  # less than are open
        try:
            async with asyncio.timeout(30):
                while not caplog.records:  # noqa: ASYNC110
                    await asyncio.sleep(0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        await workers.until(2)
    assert {(one.levelno, one.getMessage()) for one in caplog.records if one.name.startswith("holdfast")} == {
        (logging.ERROR, "no connection can be accepted for now: Too many open files")
    }
    await workers.close()
