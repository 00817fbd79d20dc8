"""Which connection carries a request, and which does so never again?"""

import asyncio
import os
import socket

import pytest

from holdfast.upstreams.http import pool as pools
from holdfast.upstreams.http.errors import Broken
from tests.requirements import requirement
from tests.upstreams.http.raw import JSON_HEAD, Visitor, facing

ANSWER = JSON_HEAD + b"content-length: 2\r\n\r\n{}"


async def faithful(visitor: Visitor) -> None:
    while body := await visitor.asked():
        await visitor.answer(body)


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with facing(faithful) as (client, raw):
        for number in range(50):
            assert (await client.post(b"%d" % number)).whole == b"%d" % number
        assert len(raw.visitors) == 1


async def test_requests_at_once_have_a_connection_each_and_get_their_own_answers() -> None:
    held: list[tuple[Visitor, bytes]] = []

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            held.append((visitor, body))
            if len(held) == 20:
                for one, said in reversed(held):
                    await one.answer(said)
                held.clear()

    async with facing(serve) as (client, raw):
        for _ in range(3):
            asked = [b"%d" % number for number in range(20)]
            answers = await asyncio.gather(*(client.post(body) for body in asked))
            assert [answer.whole for answer in answers] == asked
        assert len(raw.visitors) == 20


async def test_the_connection_used_last_is_used_next() -> None:
    both = asyncio.Barrier(2)
    carried: list[int] = []

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            carried.append(visitor.number)
            if body == b"both":
                await both.wait()
            await visitor.answer(body)

    async with facing(serve) as (client, _):
        await asyncio.gather(client.post(b"both"), client.post(b"both"))
        for _ in range(5):
            await client.post(b"one")
    assert len(set(carried[2:])) == 1


@pytest.mark.parametrize(
    "said",
    [
        JSON_HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        ANSWER + b"more than was said",
        ANSWER + ANSWER,
        ANSWER + b"\0",
        JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + ANSWER[:20],
    ],
    ids=[
        "told to close",
        "of HTTP/1.0",
        "with trailing bytes",
        "answered twice",
        "a zero byte",
        "half another",
    ],
)
@requirement("AUT-6")
async def test_a_connection_that_may_carry_more_than_one_answer_is_not_used_again(said: bytes) -> None:
    """What is left over on it would be taken for the answer to somebody else's request."""

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(said if visitor.number == 0 else ANSWER.replace(b"{}", b"[]"))
        await visitor.gone()

    async with facing(serve) as (client, raw):
        assert (await client.post()).whole == b"{}"
        assert (await client.post()).whole == b"[]"
        assert len(raw.visitors) == 2


@requirement("AUT-6")
async def test_what_a_server_says_unasked_ends_the_connection() -> None:
    speak = asyncio.Event()

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.answer(b"%d" % visitor.number)
        if visitor.number == 0:
            await speak.wait()
            await visitor.answer(b"nobody asked for this")
        await visitor.gone()

    async with facing(serve) as (client, raw):
        assert (await client.post()).whole == b"0"
        speak.set()
        await raw.left.wait()
        assert (await client.post()).whole == b"1"


@pytest.mark.parametrize("how", ["closed", "reset"])
@requirement("IDM-5")
async def test_a_connection_the_server_closed_while_it_was_idle_is_not_written_to(how: str) -> None:
    close = asyncio.Event()

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            await visitor.answer(body)
            if visitor.number == 0:
                await close.wait()
                if how == "reset":
                    visitor.reset()
                return

    async with facing(serve) as (client, raw):
        await client.post()
        close.set()
        await raw.left.wait()
        async with asyncio.timeout(20):
            while client.pool._idle[0].usable:  # noqa: ASYNC110  # until the end has arrived
                await asyncio.sleep(0)
        assert (await client.post(b"again")).whole == b"again"
        assert len(raw.visitors) == 2


@requirement("IDM-5")
async def test_a_connection_that_rested_is_looked_at_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end has arrived at the socket, and the loop has had no turn to see it."""
    monkeypatch.setattr(pools, "LOOKED_AT_S", 0.0)
    async with facing(faithful) as (client, raw):
        await client.post()
        bound = raw.visitors[0].writer.get_extra_info("socket")
        with socket.socket(fileno=os.dup(bound.fileno())) as end:
            end.shutdown(socket.SHUT_WR)  # the kernel has sent the end when this returns
        assert (await client.post(b"again")).whole == b"again"
        assert len(raw.visitors) == 2


@requirement("IDM-5")
async def test_what_was_written_to_a_connection_that_just_closed_is_lost_and_not_sent_again() -> None:
    bodies: list[bytes] = []

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            bodies.append(body)
            if body == b"second":
                return
            await visitor.answer(body)

    async with facing(serve) as (client, _):
        await client.post(b"first")
        with pytest.raises(Broken):
            await client.post(b"second")
        assert (await client.post(b"third")).whole == b"third"
    assert bodies == [b"first", b"second", b"third"]


async def test_a_question_that_may_be_asked_twice_is_asked_again_where_a_kept_connection_broke() -> None:
    asked: list[int] = []

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.answer()
        await visitor.asked()
        asked.append(visitor.number)
        if visitor.number == 1:
            await visitor.answer(b"heard")

    async def other(visitor: Visitor) -> None:
        if visitor.number == 0:
            return await serve(visitor)
        await visitor.asked()
        return await visitor.answer(b"heard")

    async with facing(other) as (client, raw):
        await client.post()
        assert (await client.get()).whole == b"heard"
        assert asked == [0]
        assert len(raw.visitors) == 2


async def test_a_new_connection_that_breaks_is_not_tried_again() -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()

    async with facing(serve) as (client, raw):
        with pytest.raises(Broken):
            await client.get()
        assert len(raw.visitors) == 1


async def test_idle_connections_are_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "KEEP_ALIVE_S", 0.02)
    async with facing(faithful) as (client, raw):
        await client.post()
        async with asyncio.timeout(20):
            await raw.left.wait()  # the client has closed it by itself
        assert (await client.post(b"again")).whole == b"again"
        assert len(raw.visitors) == 2


async def test_an_answer_that_comes_before_the_request_is_written_leaves_no_connection_behind() -> None:
    """The rest of the body is still on its way: what follows it would be read as a part of it."""

    async def serve(visitor: Visitor) -> None:
        await visitor.reader.readuntil(b"\r\n\r\n")
        await visitor.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await visitor.gone()

    async with facing(serve) as (client, raw):
        for _ in range(2):
            assert (await client.post(b"x" * 50_000_000)).status == 413
        assert len(raw.visitors) == 2


async def test_a_large_request_arrives_whole() -> None:
    async with facing(faithful) as (client, raw):
        body = bytes(range(256)) * 40_000
        response = await client.post(body)
        assert b"".join([chunk async for chunk in response.chunks()]) == body
        assert len(raw.visitors) == 1


async def test_a_closed_pool_leaves_nothing_open() -> None:
    async with facing(faithful) as (client, raw):
        await asyncio.gather(*(client.post() for _ in range(5)))
        await client.pool.close()
        async with asyncio.timeout(20):
            while raw.over < len(raw.visitors):
                raw.left.clear()
                await raw.left.wait()
