"""What is known when a connection breaks, or when what comes on it makes no sense?"""

import asyncio

import pytest

from holdfast.upstreams.http.errors import Broken, Unreachable
from tests.requirements import requirement
from tests.upstreams.http.raw import JSON_HEAD, Client, Raw, Visitor, facing, pooled, read

GARBAGE = {
    "no HTTP at all": b"hello, who is there?\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "another version": b"HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n",
    "a request": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "no status": b"HTTP/1.1 xyz OK\r\n\r\n",
    "a change of protocol": b"HTTP/1.1 101 Now\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nabc",
    "a bare change of protocol": b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + JSON_HEAD,
    "two lengths": JSON_HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
    "a length and chunks": JSON_HEAD
    + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a length that is none": JSON_HEAD + b"content-length: -2\r\n\r\n{}",
    "a name with a space": b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
}
CUT = {
    "at once": b"",
    "in the first line": b"HTTP/1.1 2",
    "in a header": JSON_HEAD + b"content-le",
    "after a 100": b"HTTP/1.1 100 Continue\r\n\r\n",
}
CUT_WITHIN = {
    "before the body": JSON_HEAD + b"content-length: 9\r\n\r\n",
    "within the body": JSON_HEAD + b'content-length: 9\r\n\r\n{"a"',
    "within a chunk": JSON_HEAD + b'transfer-encoding: chunked\r\n\r\n9\r\n{"a"',
    "before the last chunk": JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "within a stream": b"HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n3\r\na",
}
HOW = pytest.mark.parametrize("how", ["closed", "reset"])


@pytest.mark.parametrize("what", GARBAGE)
@requirement("IDM-5")
async def test_what_is_not_http_breaks_the_exchange_and_is_not_waited_for(what: str) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(GARBAGE[what])
        await visitor.gone()

    async with facing(serve) as (client, raw):
        with pytest.raises(Broken):
            await read(await client.post())
        await raw.left.wait()


@HOW
@pytest.mark.parametrize("where", CUT)
@requirement("IDM-5")
async def test_a_connection_that_ends_before_the_head_breaks_the_exchange(where: str, how: str) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(CUT[where])
        if how == "reset":
            visitor.reset()

    async with facing(serve) as (client, _):
        with pytest.raises(Broken):
            await client.post()


async def _all(client: Client) -> bytes:
    """A reset may overtake the head."""
    response = await client.post()
    assert response.whole is None
    return await read(response)


@HOW
@pytest.mark.parametrize("where", CUT_WITHIN)
@requirement("IDM-5")
async def test_a_connection_that_ends_within_the_body_is_never_a_shorter_answer(where: str, how: str) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(CUT_WITHIN[where])
        if how == "reset":
            visitor.reset()

    async with facing(serve) as (client, _):
        with pytest.raises(Broken):
            await _all(client)


@requirement("IDM-5")
async def test_a_body_that_ends_with_its_connection_is_broken_when_the_connection_is() -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(JSON_HEAD + b"\r\n{}")
        visitor.reset()

    async with facing(serve) as (client, _):
        with pytest.raises(Broken):
            await read(await client.post())


@pytest.mark.parametrize("filler", [b"x-more: " + b"y" * 1000 + b"\r\n", b"z" * 1000], ids=["many", "one"])
@pytest.mark.parametrize(
    "begun",
    [b"HTTP/1.1 200 OK\r\nx: ", JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: "],
    ids=["head", "trailer"],
)
async def test_headers_without_end_are_not_held(begun: bytes, filler: bytes) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(begun)
        while True:
            await visitor.say(filler)

    async with facing(serve) as (client, raw):
        with pytest.raises(Broken, match="around its answer"):
            await read(await client.post())
        await raw.left.wait()


async def test_hints_without_end_are_not_waited_for() -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        while True:
            await visitor.say(b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n" * 100)

    async with facing(serve) as (client, _):
        with pytest.raises(Broken, match="around its answer"):
            await client.post()


@requirement("IDM-5")
async def test_without_a_connection_nothing_was_sent() -> None:
    async with Raw(Visitor.gone).open() as there:
        pass
    async with pooled(there) as client:
        with pytest.raises(Unreachable, match=r"connection refused$"):
            await client.post()


@requirement("EXE-1")
async def test_whoever_gives_up_takes_the_connection_along_and_nobody_elses() -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            if body == b"slow":
                waiting.set()
                await visitor.gone()
                go_on.set()
            await visitor.answer(body)

    async with facing(serve) as (client, _):
        assert (await client.post(b"1")).whole == b"1"
        slow = asyncio.ensure_future(client.post(b"slow"))
        await waiting.wait()
        quick = [await client.post(b"%d" % number) for number in range(3)]
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        async with asyncio.timeout(20):
            await go_on.wait()  # the server has seen the end
        assert [response.whole for response in quick] == [b"0", b"1", b"2"]
        assert (await client.post(b"after")).whole == b"after"


async def test_a_caller_that_gives_up_in_the_turn_the_answer_comes_hurts_nobody() -> None:
    """The future has its result and the task is cancelled all the same; the connection is free again."""

    async def serve(visitor: Visitor) -> None:
        while body := await visitor.asked():
            await visitor.answer(body)

    async with facing(serve) as (client, raw):
        for number in range(200):
            asked = asyncio.ensure_future(client.post(b"gone"))
            for _ in range(number % 20):
                await asyncio.sleep(0)
            asked.cancel()
            said = b"kept %d" % number
            assert (await client.post(said)).whole == said
            await asyncio.gather(asked, return_exceptions=True)
        assert len(raw.visitors) <= 201


async def test_closing_the_pool_ends_what_is_under_way() -> None:
    begun = asyncio.Event()

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nhalf")
        begun.set()
        await visitor.gone()

    async with facing(serve) as (client, raw):
        response = await client.post()
        reading = asyncio.ensure_future(read(response))
        await begun.wait()
        await client.pool.close()
        with pytest.raises(Broken, match="given up"):  # and no end, which would look like a whole body
            await reading
        with pytest.raises(Unreachable):
            await client.post()
        await raw.left.wait()
