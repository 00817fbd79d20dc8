"""Is everybody told, and told once, when processes die and when several do the telling?"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.model import defaults
from tests.approvals.bank import BEN, Bank, pay
from tests.approvals.opening import House
from tests.channels.bench import hook, told
from tests.channels.receiver import KEY, Receiver
from tests.polling import until
from tests.requirements import requirement
from tests.stored import DURABLE

pytestmark = pytest.mark.parametrize("store", DURABLE, indirect=True)
NOW = 1_800_000_000.0
QUESTIONS = 12
PATIENCE_S = 60.0


@asynccontextmanager
async def worker(kind: str, folder: Path, url: str, mode: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process, ready to begin."""
    command = (sys.executable, "-m", "tests.channels.worker", kind, str(folder), url, mode, str(NOW))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def begin(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"go\n")


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


@requirement("APR-7", "APR-5")
async def test_a_process_that_dies_between_asking_and_telling_leaves_it_to_the_next(
    store: str, receiver: Receiver, tmp_path: Path
) -> None:
    async with worker(store, tmp_path, receiver.url, "ask") as process:
        begin(process)
        assert await ended(process) == -9
    assert receiver.got == []
    house = House(store, tmp_path)
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await gateway.notices.round()
        await gateway.notices.round()
    assert receiver.events == ["approval.asked"]
    assert receiver.got[0].signed_by(KEY)


@requirement("APR-7", "APR-5")
async def test_a_process_that_dies_while_it_tells_is_followed_by_one_that_says_the_same_again(
    store: str, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers += [None, None]  # both channels hang
    async with worker(store, tmp_path, receiver.url, "start") as process:
        begin(process)
        await until(lambda: len(receiver.got) == 2)
        process.kill()
        await ended(process)
    house = House(store, tmp_path)
    tree = told(tmp_path, {"ops": hook(receiver.url), "too": hook(f"{receiver.url}/too")})
    async with house.gateway(Bank(), config=tree) as gateway:
        await gateway.notices.round()
        assert len(receiver.got) == 2  # whoever took them may yet be sending
        await house.clock.advance(defaults.NOTICE_LEASE_S)
        await gateway.notices.round()
        await gateway.notices.round()
        assert all(one.sent_at is not None for one in await gateway.notices.list(BEN))
    assert len(receiver.got) == 4
    assert len({got.id for got in receiver.got}) == 2  # whoever drops what has been there sees each once


@requirement("APR-7", "PPL-6")
async def test_several_processes_send_each_notice_once(
    store: str, receiver: Receiver, tmp_path: Path
) -> None:
    house = House(store, tmp_path)
    tree = told(tmp_path, {"ops": hook(receiver.url), "too": hook(f"{receiver.url}/too")})
    async with (
        house.gateway(Bank(), config=tree) as gateway,
        worker(store, tmp_path, receiver.url, "send") as first,
        worker(store, tmp_path, receiver.url, "send") as second,
    ):
        for number in range(QUESTIONS):
            await pay(gateway, f"k-{number}")
        await gateway.notices.look()
        for process in (first, second):
            begin(process)
        assert [await ended(first), await ended(second)] == [0, 0]
    assert len(receiver.got) == 2 * QUESTIONS
    assert len({got.id for got in receiver.got}) == 2 * QUESTIONS
