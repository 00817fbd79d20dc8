"""What does a failure over HTTP prove, and whom does it hurt?"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.mcp.errors import Garbage, Lost, Refused, Rejected
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.mcp.callers import AT_ONCE, SOON_S, Caller, Heard, attempt, upstream
from tests.upstreams.mcp.places import serving, workshop_http
from tests.upstreams.mcp.rogue_http import Act, RogueHttp, Visit
from tests.upstreams.mcp.workshop import Workshop

A_DEADLINE_S = 0.2
DONE = {"text": "done"}
BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])


@asynccontextmanager
async def facing(act: Act, legacy: bool = False, **options: Any) -> AsyncIterator[McpUpstream]:
    async with RogueHttp(act, legacy).open() as target, upstream(target, **options) as rogue:
        yield rogue


async def fine(visit: Visit) -> None:
    visit.answer(**visit.result()["result"])


@BOTH
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, Code.SEMANTIC_INVALIDITY),
        (401, Code.PERMISSION_DENIED),
        (403, Code.PERMISSION_DENIED),
        (405, Code.TOOL_UNAVAILABLE),
        (413, Code.OUT_OF_BOUNDS),
        (422, Code.SEMANTIC_INVALIDITY),
    ],
)
@requirement("IDM-5")
async def test_most_client_errors_prove_that_nothing_happened(legacy: bool, status: int, code: Code) -> None:
    async def act(visit: Visit) -> None:
        visit.reply(b"go away", status, "text/plain")

    async with facing(act, legacy) as rogue:
        with pytest.raises(NoEffect, match=f"status {status}") as told:
            await rogue.invoke(attempt("tool"))
    assert told.value.code is code


@BOTH
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
@requirement("IDM-5")
async def test_other_statuses_prove_nothing(legacy: bool, status: int) -> None:
    async def act(visit: Visit) -> None:
        visit.reply(b"", status, retry_after="7")

    async with facing(act, legacy) as rogue:
        with pytest.raises(Rejected) as told:
            await rogue.invoke(attempt("tool"))
    assert told.value.status == status
    assert told.value.retry_after_ms == 7000


@BOTH
@pytest.mark.parametrize(
    ("code", "status", "none"),
    [
        (-32601, 200, True),
        (-32601, 404, True),
        (-32602, 200, True),
        (-32602, 500, True),
        (-32021, 400, True),
        (-32603, 200, False),
        (-32000, 200, False),
        (-32603, 500, False),
        (-32000, 429, False),
    ],
)
@requirement("IDM-5")
async def test_what_a_json_rpc_error_proves(legacy: bool, code: int, status: int, none: bool) -> None:
    async def act(visit: Visit) -> None:
        visit.error(code, status)

    async with facing(act, legacy) as rogue:
        with pytest.raises(NoEffect if none else Refused):
            await rogue.invoke(attempt("tool"))


@BOTH
@requirement("IDM-5")
async def test_a_connection_that_breaks_after_the_request_leaves_it_open(legacy: bool) -> None:
    async def act(visit: Visit) -> None:
        visit.writer.transport.abort()
        raise ConnectionError

    async with facing(act, legacy) as rogue:
        with pytest.raises(Lost):
            await rogue.invoke(attempt("tool"))


@BOTH
@requirement("IDM-5")
async def test_a_connection_that_breaks_within_the_answer_leaves_it_open(legacy: bool) -> None:
    async def act(visit: Visit) -> None:
        visit.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        visit.writer.write(b"content-length: 99\r\n\r\n{")
        await visit.writer.drain()
        raise ConnectionError

    async with facing(act, legacy) as rogue:
        with pytest.raises(Lost):
            await rogue.invoke(attempt("tool"))


@BOTH
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b'{"jsonrpc":"2.0","id":99,"result":{}}', b'{"id":1}', b"\xff"]
)
@requirement("IDM-5")
async def test_what_is_no_answer_leaves_it_open(legacy: bool, body: bytes) -> None:
    async def act(visit: Visit) -> None:
        visit.reply(body)

    async with facing(act, legacy) as rogue:
        with pytest.raises(Garbage):
            await rogue.invoke(attempt("tool"))


@requirement("IDM-5")
async def test_a_page_for_people_is_no_answer() -> None:
    async def act(visit: Visit) -> None:
        visit.reply(b"<h1>Welcome</h1>", kind="text/html")

    async with facing(act) as rogue:
        with pytest.raises(Garbage, match="text/html"):
            await rogue.invoke(attempt("tool"))


@requirement("IDM-5", "REG-3")
async def test_a_server_that_is_not_there_gets_nothing_sent_and_is_found_when_it_comes() -> None:
    server, heard = RogueHttp(fine), Heard()
    async with server.open() as target:
        port = int(target.url.rpartition(":")[2].partition("/")[0])
    late = McpUpstream("shop", target, backoff=AT_ONCE, on_change=heard)
    late.start()
    try:
        assert not await late.ready(SOON_S)
        with pytest.raises(NoEffect, match="cannot connect") as told:
            await late.invoke(attempt("tool"))
        assert told.value.code is Code.DEPENDENCY_UNAVAILABLE
        async with RogueHttp(fine).open(port):
            await heard.until("up")
            assert (await late.invoke(attempt("tool"))).data == DONE
    finally:
        await late.close()


@requirement("IDM-5", "REG-3")
async def test_a_server_that_went_away_is_noticed_by_the_first_call() -> None:
    heard = Heard()
    async with RogueHttp(fine).open() as target:
        shop = McpUpstream("shop", target, backoff=AT_ONCE, on_change=heard)
        shop.start()
        assert await shop.ready(SOON_S)
        await shop.invoke(attempt("tool"))
    port = int(target.url.rpartition(":")[2].partition("/")[0])
    try:
        with pytest.raises((NoEffect, Lost)):
            await shop.invoke(attempt("tool"))
        with pytest.raises(NoEffect):
            await shop.invoke(attempt("tool"))
        await heard.until("down")
        async with RogueHttp(fine).open(port):
            await heard.until("up", 2)
            assert (await shop.invoke(attempt("tool"))).data == DONE
    finally:
        await shop.close()


async def hang(visit: Visit) -> None:
    await asyncio.Event().wait()


async def drip(visit: Visit) -> None:
    visit.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n")
    for byte in b'{"jsonrpc":':
        visit.writer.write(bytes([byte]))
        await visit.writer.drain()
        await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=1)


async def flood(visit: Visit) -> None:
    visit.stream()
    while True:
        visit.event({"jsonrpc": "2.0", "method": "notifications/whatever", "params": {"text": "x" * 1000}})
        await visit.writer.drain()


async def strangers(visit: Visit) -> None:
    """Answers to other requests, for ever."""
    visit.stream()
    while True:
        visit.event({**visit.result("not yours"), "id": 4711})
        await visit.writer.drain()
        await asyncio.sleep(0)


@BOTH
@pytest.mark.parametrize("act", [hang, drip, flood, strangers])
@requirement("EXE-1")
async def test_a_deadline_is_kept_whatever_comes_instead_of_an_answer(legacy: bool, act: Act) -> None:
    good = asyncio.Event()

    async def either(visit: Visit) -> None:
        await (fine(visit) if good.is_set() else act(visit))

    async with facing(either, legacy) as rogue:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(A_DEADLINE_S):
                    await rogue.invoke(attempt("tool"))
        good.set()
        assert (await rogue.invoke(attempt("tool"))).data == DONE
        assert rogue.starts == 1


@requirement("EXE-9")
async def test_another_upstream_goes_on_while_one_floods() -> None:
    async with facing(flood) as rogue, facing(fine) as other:
        flooding = asyncio.ensure_future(rogue.invoke(attempt("tool")))
        async with asyncio.timeout(SOON_S):
            answers = [(await other.invoke(attempt("tool"))).data for _ in range(300)]
        assert answers == [DONE] * 300
        assert not flooding.done()
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)


@pytest.mark.parametrize("how", ["told", "chunked", "event"])
async def test_an_answer_that_is_too_long_is_an_error_that_says_so(how: str) -> None:
    async def act(visit: Visit) -> None:
        if how == "told":
            visit.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            visit.writer.write(b"content-length: 99999999\r\n\r\n")
            return await visit.gone()
        kind = b"application/json" if how == "chunked" else b"text/event-stream"
        visit.writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: " + kind + b"\r\n\r\n")
        if how == "event":
            visit.writer.write(b"data: ")
        while True:
            visit.writer.write(b"x" * 65536)
            await visit.writer.drain()

    async with facing(act) as rogue:
        with pytest.raises(Garbage, match="16777216 bytes"):
            await rogue.invoke(attempt("tool"))


@BOTH
async def test_the_answer_is_found_on_a_stream_among_everything_else(legacy: bool) -> None:
    async def act(visit: Visit) -> None:
        visit.stream()
        visit.event("{not json")
        visit.event([])
        visit.event("7")
        visit.event({"jsonrpc": "2.0", "method": 7})
        visit.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": 3})
        visit.event({**visit.result("not yours"), "id": 4711})
        visit.event(visit.result(), name="surprise")
        visit.writer.write(b": comment\n\n")
        visit.event(visit.result())

    async with facing(act, legacy) as rogue:
        assert (await rogue.invoke(attempt("tool", peer=Caller(modern=not legacy)))).data == DONE


@requirement("IDM-5")
async def test_a_stream_that_ends_without_the_answer_leaves_it_open() -> None:
    async def act(visit: Visit) -> None:
        visit.stream()
        raise ConnectionError

    async with facing(act) as rogue:
        with pytest.raises(Lost):
            await rogue.invoke(attempt("tool"))


@requirement("PRO-1")
async def test_a_stream_that_ends_early_is_taken_up_again_where_it_was() -> None:
    """The handshake era lets a server close a stream and go on later."""
    asked: list[dict[str, Any]] = []

    async def act(visit: Visit) -> None:
        visit.stream()
        if visit.verb == "POST":
            asked.append(visit.message)
            visit.event("", id="e-1", retry="1")
        else:
            assert visit.headers["last-event-id"] == "e-1"
            assert visit.headers["mcp-session-id"] == "s-1"
            result = {"content": [], "structuredContent": DONE}
            visit.event({"jsonrpc": "2.0", "id": asked[0]["id"], "result": result})
        await visit.writer.drain()
        raise ConnectionError

    async with facing(act, legacy=True) as rogue:
        assert (await rogue.invoke(attempt("tool"))).data == DONE
    assert len(asked) == 1


@requirement("IDM-5")
async def test_a_forgotten_session_is_begun_anew_and_nothing_was_done() -> None:
    forgot, heard = asyncio.Event(), Heard()

    async def act(visit: Visit) -> None:
        if forgot.is_set():
            return await fine(visit)
        forgot.set()
        return visit.reply(b"", 404)

    async with facing(act, legacy=True, on_change=heard) as rogue:
        with pytest.raises(NoEffect, match="forgotten"):
            await rogue.invoke(attempt("tool"))
        await heard.until("up", 2)
        assert (await rogue.invoke(attempt("tool"))).data == DONE


async def test_a_redirect_within_the_origin_is_followed() -> None:
    async def act(visit: Visit) -> None:
        if visit.path == "/mcp":
            visit.reply(b"", 307, location="/mcp/")
        else:
            await fine(visit)

    async with facing(act) as rogue:
        assert (await rogue.invoke(attempt("tool"))).data == DONE


@requirement("IDM-5")
async def test_a_redirect_to_elsewhere_is_not_followed() -> None:
    async with RogueHttp(fine).open() as elsewhere:

        async def act(visit: Visit) -> None:
            visit.reply(b"", 307, location=elsewhere.url)

        async with facing(act) as rogue:
            with pytest.raises(NoEffect, match="points elsewhere"):
                await rogue.invoke(attempt("tool"))


@requirement("REG-2")
async def test_a_modern_server_of_another_version_is_an_error_that_names_both_sides() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        error = {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"], "requested": "x"}}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with serving(app) as origin:
        shop = McpUpstream("shop", HttpTarget(f"{origin}/mcp"))
        shop.start()
        assert not await shop.ready(SOON_S)
        await shop.close()
    assert shop.last_error is not None
    assert "2031-01-01" in shop.last_error
    assert "2026-07-28" in shop.last_error


@requirement("EXE-1")
async def test_a_server_that_hangs_from_the_start_is_given_up() -> None:
    class Silent(RogueHttp):
        async def _serve(self, visit: Visit) -> None:
            await hang(visit)

    async with Silent(hang).open() as target:
        shop = McpUpstream("shop", target, connect_s=A_DEADLINE_S)
        shop.start()
        assert not await shop.ready(SOON_S)
        await shop.close()
    assert shop.last_error is not None
    assert "did not answer" in shop.last_error


@requirement("IDM-5")
async def test_mixed_up_answers_reach_the_right_calls() -> None:
    """Answers come in the opposite order of the requests."""
    held: list[Visit] = []

    async def act(visit: Visit) -> None:
        held.append(visit)
        if len(held) == 20:
            for other in reversed(held):
                other.answer(**other.result(other.message["params"]["arguments"]["text"])["result"])

    async with facing(act) as rogue, asyncio.timeout(SOON_S):
        calls = [rogue.invoke(attempt("tool", {"text": f"t-{n}"})) for n in range(20)]
        answers = await asyncio.gather(*calls)
    assert [answer.data["text"] for answer in answers] == [f"t-{n}" for n in range(20)]


async def test_an_answer_beyond_the_limit_of_a_real_server_is_refused_too() -> None:
    async with workshop_http(Workshop()) as (target, _), upstream(target) as shop:
        with pytest.raises(Garbage, match="longer than"):
            await shop.invoke(attempt("large"))
        assert (await shop.invoke(attempt("echo"))).data["arguments"] == {}
