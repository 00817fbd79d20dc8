"""Which answers are understood, however they come?"""

import asyncio
import gzip
import zlib

import pytest

from holdfast.upstreams.http.errors import Broken
from tests.requirements import requirement
from tests.upstreams.http.raw import JSON_HEAD, Visitor, facing, read

ANSWER = JSON_HEAD + b"content-length: 2\r\n\r\n{}"
BODY = b'{"found":"' + b"x" * 300 + b'"}'
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
WHOLE = {
    "with its length": JSON_HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY,
    "in one chunk": JSON_HEAD + CHUNKED + b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "in two chunks": JSON_HEAD
    + CHUNKED
    + b"9\r\n"
    + BODY[:9]
    + b"\r\n%x\r\n" % len(BODY[9:])
    + BODY[9:]
    + b"\r\n0\r\n\r\n",
    "in chunks of a byte": JSON_HEAD
    + CHUNKED
    + b"".join(b"1\r\n%c\r\n" % one for one in BODY)
    + b"0\r\n\r\n",
    "with an extension": JSON_HEAD + CHUNKED + b"%x;a=b\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n",
    "with a trailer": JSON_HEAD
    + CHUNKED
    + b"%x\r\n" % len(BODY)
    + BODY
    + b"\r\n0\r\nx-sum: 7\r\ncontent-type: a/b\r\n\r\n",
    "after a 100": b"HTTP/1.1 100 Continue\r\n\r\n"
    + JSON_HEAD
    + b"content-length: %d\r\n\r\n" % len(BODY)
    + BODY,
    "after a 103": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 3
    + JSON_HEAD
    + b"content-length: %d\r\n\r\n" % len(BODY)
    + BODY,
    "without a reason": b"HTTP/1.1 200\r\nContent-Type: Application/JSON; a=b\r\nContent-Length: %d\r\n\r\n"
    % len(BODY)
    + BODY,
    "with bare line feeds": b"HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: %d\n\n"
    % len(BODY)
    + BODY,
}
"""Bytes a server may send that mean the same."""


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("step", [1, 2, 7, 64, 100_000])
async def test_an_answer_is_the_same_however_it_is_cut_into_pieces(form: str, step: int) -> None:
    said = WHOLE[form]

    async def serve(visitor: Visitor) -> None:
        while True:
            await visitor.asked()
            await visitor.say(*(said[at : at + step] for at in range(0, len(said), step)))

    async with facing(serve) as (client, raw):
        for _ in range(2):  # the second shows that the first left nothing behind
            response = await client.post()
            assert (response.status, response.content_type) == (200, "application/json")
            assert response.whole == BODY
        assert len(raw.visitors) == 1


async def test_a_body_may_end_with_its_connection() -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(JSON_HEAD + b"\r\n", BODY[:50], BODY[50:])

    async with facing(serve) as (client, raw):
        assert (await client.post()).whole == BODY
        assert (await client.post()).whole == BODY
        assert len(raw.visitors) == 2


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_a_body_is_over_with_its_head(status: int) -> None:
    async def serve(visitor: Visitor) -> None:
        while await visitor.asked():
            await visitor.say(b"HTTP/1.1 %d Nothing\r\n\r\n" % status)

    async with facing(serve) as (client, raw):
        for _ in range(3):
            response = await client.post()
            assert (response.status, response.whole) == (status, b"")
        assert len(raw.visitors) == 1


async def test_what_is_not_json_is_handed_over_as_soon_as_its_head_is_there() -> None:
    go_on = asyncio.Event()

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + CHUNKED)
        await go_on.wait()
        await visitor.say(b"5\r\nhello\r\n", b"0\r\n\r\n")

    async with facing(serve) as (client, _):
        response = await client.post()
        assert not response.ended
        assert response.whole is None
        go_on.set()
        assert await read(response) == b"hello"


async def test_a_server_waits_while_nobody_reads() -> None:
    """Of a long body only so much is held, whatever it says of itself."""
    sent = asyncio.Event()
    size = 64 * 1024 * 1024

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(JSON_HEAD + b"content-length: %d\r\n\r\n" % size)
        for _ in range(size // 65536):
            await visitor.say(b"x" * 65536)
        sent.set()

    async with facing(serve) as (client, _):
        response = await client.post()
        assert response.whole is None
        assert not sent.is_set()
        assert len(await read(response)) == size
        assert sent.is_set()


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_an_error_is_told_with_its_head_and_read_like_any_other(status: int) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.say(
            b"HTTP/1.1 %d No\r\ncontent-length: 4\r\nRetry-After: 3\r\n\r\n" % status, b"no", b"no"
        )

    async with facing(serve) as (client, _):
        response = await client.post()
        assert response.status == status
        assert response.header("retry-after") == "3"
        assert response.content_type == "application/octet-stream"
        assert await read(response) == b"nono"


def _raw_deflate(body: bytes) -> bytes:
    bare = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return bare.compress(body) + bare.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        (b"gzip", gzip.compress(BODY)),
        (b"GZIP", gzip.compress(BODY)),
        (b"deflate", zlib.compress(BODY)),
        (b"deflate", _raw_deflate(BODY)),
        (b"identity", BODY),
    ],
    ids=["gzip", "in capitals", "deflate", "deflate without its frame", "not at all"],
)
async def test_a_server_that_compresses_unasked_is_understood(encoding: bytes, packed: bytes) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.answer(packed, b"content-encoding: " + encoding + b"\r\n")

    async with facing(serve) as (client, _):
        assert await read(await client.post()) == BODY


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [(b"gzip", BODY), (b"gzip", gzip.compress(BODY)[:-9]), (b"br", BODY), (b"deflate", b"\xff\xff\xff")],
    ids=["plain", "cut short", "another", "noise"],
)
async def test_what_cannot_be_unpacked_is_broken(encoding: bytes, packed: bytes) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.answer(packed, b"content-encoding: " + encoding + b"\r\n")

    async with facing(serve) as (client, _):
        response = await client.post()
        assert response.whole is None
        with pytest.raises(Broken):
            await read(response)


async def test_few_bytes_that_unfold_into_many_come_in_pieces() -> None:
    packed = gzip.compress(b"0" * 50_000_000)

    async def serve(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.answer(packed, b"content-encoding: gzip\r\n")

    async with facing(serve) as (client, _):
        sizes = [len(chunk) async for chunk in (await client.post()).chunks()]
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 256 * 1024


@requirement("AUT-6")
async def test_answers_under_the_same_head_are_each_their_own() -> None:
    bodies = [b'{"n": 1}', b'{"n": 2}', b"\r\n\r\n\r\n\r\n", b'{"n": 4}', b'{"n": 12}']

    async def serve(visitor: Visitor) -> None:
        for body in bodies:
            await visitor.asked()
            await visitor.answer(body)

    async with facing(serve) as (client, raw):
        said = [await client.post() for _ in bodies]
        assert [one.whole for one in said] == bodies
        assert {one.content_type for one in said} == {"application/json"}
        assert len(raw.visitors) == 1


@requirement("AUT-6")
@pytest.mark.parametrize(
    "second",
    [ANSWER + b"{}", ANSWER + ANSWER, ANSWER + b"\0", ANSWER[:-1] + b"]x"],
    ids=["more body", "two answers", "a zero byte", "one byte too many"],
)
async def test_a_known_head_with_more_behind_it_ends_the_connection(second: bytes) -> None:
    async def serve(visitor: Visitor) -> None:
        for said in (ANSWER, second) if visitor.number == 0 else (ANSWER,):
            await visitor.asked()
            await visitor.say(said)
        await visitor.gone()

    async with facing(serve) as (client, raw):
        for _ in range(3):
            assert (await client.post()).status == 200
        assert len(raw.visitors) == 2


@pytest.mark.parametrize("cut", range(1, len(ANSWER)))
async def test_a_known_head_in_pieces_is_waited_for(cut: int) -> None:
    async def serve(visitor: Visitor) -> None:
        for parts in ((ANSWER,), (ANSWER[:cut], ANSWER[cut:]), (ANSWER,)):
            await visitor.asked()
            for part in parts:
                await visitor.say(part)

    async with facing(serve) as (client, raw):
        for _ in range(3):
            assert (await client.post()).whole == b"{}"
        assert len(raw.visitors) == 1
