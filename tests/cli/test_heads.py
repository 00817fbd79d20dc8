"""Is a request whose head came before answered like the first, and is nothing taken for it that is not?"""

import asyncio
import json
from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.heads import LONGEST, MOST, Heads
from tests.cli.test_protocol import served
from tests.cli.test_turn import POST, closing
from tests.requirements import requirement

HEAD = POST.partition(b"hi")[0]
HOST = [(b"host", b"x"), (b"content-length", b"2")]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Says everything it was told, but for what is a connection's own."""
    message = await receive()
    told = {
        name: scope[name]
        for name in ("type", "method", "path", "raw_path", "query_string", "http_version", "headers", "state")
    }
    text = json.dumps([sorted(scope["extensions"]), told, message], default=bytes.decode).encode()
    scope["headers"].append((b"spoiled", b"by the application"))
    scope["state"]["spoiled"] = True
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"%d" % len(text))],
        }
    )
    await send({"type": "http.response.body", "body": text})


async def answers(*reads: bytes, state: dict[str, Any] | None = None) -> list[bytes]:
    """What is said to each request on one connection; each is written when the one before it is answered."""
    said = []
    async with served({} if state is None else state, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for data in reads:
            writer.write(data)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            said.append(await reader.readexactly(length))
        writer.close()
    return said


@requirement("AUT-6")
async def test_the_same_head_means_the_same_to_the_application() -> None:
    first, second, third = await answers(POST, POST, POST, state={"kept": 1})
    assert first == second == third
    assert b'"content-length", "2"' in first


async def test_bodies_are_each_requests_own() -> None:
    bodies = [b"h1", b"h2", b"\r\n", b"h4"]
    said = await answers(*(HEAD + body for body in bodies))
    assert [json.loads(one)[2]["body"].encode() for one in said] == bodies


async def test_a_body_of_another_length_has_another_head() -> None:
    longer = POST.replace(b"Length: 2", b"Length: 5").replace(b"hi", b"hello")
    said = await answers(POST, longer, POST, longer)
    assert [json.loads(one)[2]["body"] for one in said] == ["hi", "hello", "hi", "hello"]


async def test_another_header_is_not_overlooked() -> None:
    other = POST.replace(b"Host: x\r\n", b"Host: x\r\nHoldfast-User: eve\r\n")
    first, second, third = await answers(POST, other, POST)
    assert b"eve" in second
    assert first == third
    assert b"eve" not in third


async def test_a_request_that_ends_the_connection_is_not_taken_for_one_that_does_not() -> None:
    async with served({}, app) as port:
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(POST)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(closing(POST))
            said = await asyncio.wait_for(reader.read(), 20)
            assert b"connection: close" in said.lower()
            writer.close()


@pytest.mark.parametrize("cut", range(1, len(POST)))
async def test_a_known_head_in_several_reads_is_waited_for(cut: int) -> None:
    async with served({}, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answered = []
        for parts in ((POST,), (POST[:cut], POST[cut:]), (POST,)):
            for part in parts:
                writer.write(part)
                await asyncio.sleep(0)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answered.append(json.loads(await reader.readexactly(length))[2]["body"])
        writer.close()
    assert answered == ["hi", "hi", "hi"]


async def test_known_requests_on_top_of_one_another_are_answered_in_their_order() -> None:
    async with served({}, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"h1" + HEAD + b"h2")
        writer.write(closing(POST).replace(b"hi", b"h3"))
        said = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    assert 0 < said.find(b'"h1"') < said.find(b'"h2"') < said.find(b'"h3"')


def test_what_is_no_whole_request_is_not_found() -> None:
    heads = Heads()
    heads.learn(POST, b"/mcp", HOST, b"hi")
    assert heads.find(POST) is not None
    for other in (b"", b"\r\n\r\n", HEAD, POST[:-1], POST + b"!", POST[1:], POST.lower()):
        assert heads.find(other) is None


@pytest.mark.parametrize(
    ("data", "headers", "body"),
    [
        (POST, [*HOST, (b"host", b"y")], b"hi"),
        (POST, [(b"host", b"x")], b"hi"),
        (POST, [(b"host", b"x"), (b"content-length", b"02")], b"hi"),
        (POST + b"more", HOST, b"hi"),
        (b"x" * LONGEST + POST, HOST, b"hi"),
    ],
    ids=["said twice", "no length", "an odd length", "more than one request", "too long"],
)
def test_what_is_not_plain_is_not_learnt(
    data: bytes, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    heads = Heads()
    heads.learn(data, b"/mcp", headers, body)
    assert heads.find(data) is None


def test_nobody_fills_the_memory_by_making_up_heads() -> None:
    heads = Heads()
    for number in range(3 * MOST):
        heads.learn(POST.replace(b"Host: x", b"Host: %d" % number), b"/mcp", HOST, b"hi")
    found = [heads.find(POST.replace(b"Host: x", b"Host: %d" % number)) for number in range(3 * MOST)]
    assert 0 < sum(one is not None for one in found) <= MOST


class Parsed:
    """What a parser that knows nothing yet makes of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.url, self.body, self.whole = b"", b"", 0
        self.headers: list[tuple[bytes, bytes]] = []
        httptools.HttpRequestParser(self).feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.whole += 1


@given(body=st.binary(max_size=40), other=st.binary(max_size=40), user=st.sampled_from(["ana", "ben"]))
def test_whatever_is_found_is_what_a_parser_would_have_found(body: bytes, other: bytes, user: str) -> None:
    def request(body: bytes) -> bytes:
        length, name = len(body), user.encode()
        return b"POST /mcp HTTP/1.1\r\nHost: x\r\nUser: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            name,
            length,
            body,
        )

    heads, first = Heads(), Parsed(request(body))
    heads.learn(request(body), first.url, first.headers, first.body)
    found, second = heads.find(request(other)), Parsed(request(other))
    assert second.whole == 1
    assert (found is not None) == (len(body) == len(other))
    if found is not None:
        head, rest = found
        assert (head.url, head.headers, rest) == (second.url, second.headers, second.body)
        assert head.fields == dict(second.headers)
