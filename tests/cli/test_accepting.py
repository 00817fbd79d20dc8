"""Do connections that come at once go to all who accept from one socket?"""

import asyncio
import contextlib
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from holdfast.cli.accepting import OneByOne
from tests.requirements import requirement


class Taken(asyncio.Protocol):
    def __init__(self, taken: Callable[[], None]) -> None:
        self._taken = taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._taken()
        transport.close()


class Workers:
    """Several who accept from one socket, as processes do: each has a descriptor of its own."""

    def __init__(self, count: int, pause_s: float = 0.01) -> None:
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.took: Counter[int] = Counter()
        self._news = asyncio.Event()
        self._sockets = [self.bound.dup() for _ in range(count)]
        self.doors = [
            OneByOne(one, partial(Taken, partial(self._note, number)), pause_s)
            for number, one in enumerate(self._sockets)
        ]

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
