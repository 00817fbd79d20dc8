"""Is a request answered the same, whichever way it takes to the gateway?

Every request here is sent to two gateways that differ in nothing else: one lets plain calls take the short
way, the other does not. What comes back may differ in ids and times; and to an older client a stream of one
event says the same as a body.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, opened
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, Line, messages, speaking
from tests.servers.serving import Served, serving
from tests.servers.ways import alike

INFO = "io.modelcontextprotocol/clientInfo"
CAN = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
VERSION = "io.modelcontextprotocol/protocolVersion"

Request = tuple[Any, dict[str, str]]
"""A body, as JSON data or as bytes, and headers."""
Change = Callable[[Any, dict[str, str]], Request]


def calling(name: str, arguments: Any = None, **meta: Any) -> Change:
    """A call of a tool of the office; `meta` is in its `_meta`, with a slash for two underscores."""

    def change(body: Any, headers: dict[str, str]) -> Request:
        said = {key.replace("__", "/"): value for key, value in meta.items()}
        params = {**body["params"], "name": f"office__{name}", "arguments": arguments or {}}
        if said or "_meta" in params:
            params["_meta"] = {**params.get("_meta", {}), **said}
        return {**body, "params": params}, _named(headers, f"office__{name}")

    return change


def params(**members: Any) -> Change:
    return lambda body, headers: ({**body, "params": {**body["params"], **members}}, headers)


def without(member: str) -> Change:
    def change(body: Any, headers: dict[str, str]) -> Request:
        return {**body, "params": {k: v for k, v in body["params"].items() if k != member}}, headers

    return change


def meta(**members: Any) -> Change:
    def change(body: Any, headers: dict[str, str]) -> Request:
        said = {**body["params"].get("_meta", {}), **{_KEYS.get(k, k): v for k, v in members.items()}}
        return {**body, "params": {**body["params"], "_meta": said}}, headers

    return change


def body(**members: Any) -> Change:
    return lambda body, headers: ({**body, **members}, headers)


def head(**members: str | None) -> Change:
    def change(body: Any, headers: dict[str, str]) -> Request:
        said = {**headers, **{name.replace("_", "-"): value for name, value in members.items()}}
        return body, {name: value for name, value in said.items() if value is not None}

    return change


def raw(edit: Callable[[bytes], bytes]) -> Change:
    return lambda body, headers: (edit(orjson.dumps(body)), headers)


def _named(headers: dict[str, str], name: str) -> dict[str, str]:
    return {**headers, "mcp-name": name} if "mcp-name" in headers else headers


_KEYS = {"info": INFO, "can": CAN, "level": LEVEL, "version": VERSION}
WITHOUT: Change = lambda body, headers: ({k: v for k, v in body.items() if k != "jsonrpc"}, headers)  # noqa: E731

CASES: dict[str, Change] = {
    "a read": calling("count"),
    "a write": calling("note", {"text": "a"}),
    "a write under a key": calling("note", {"text": "b"}, holdfast__key="k-1"),
    "the same again": calling("note", {"text": "b"}, holdfast__key="k-1"),
    "another under the same key": calling("note", {"text": "c"}, holdfast__key="k-1"),
    "a key as an argument": calling("note", {"text": "d", "idempotency_key": "k-2"}),
    "two keys": calling("note", {"text": "d", "idempotency_key": "k-3"}, holdfast__key="k-4"),
    "a key that is no text": calling("note", {"text": "d", "idempotency_key": 5}),
    "a key in meta that is no text": calling("note", {"text": "d"}, holdfast__key=5),
    "a key of the tool's own": calling("own_key", {"text": "e", "idempotency_key": "mine"}),
    "a preview": calling("note", {"text": "f"}, holdfast__preview=True),
    "a preview that is no flag": calling("note", {"text": "f"}, holdfast__preview="yes"),
    "a deadline": calling("count", holdfast__deadline_ms=5000),
    "a deadline of nothing": calling("count", holdfast__deadline_ms=0),
    "a task and a step": calling("count", holdfast__task="t", holdfast__step="s"),
    "a version there is not": calling("count", holdfast__version="9.9.9"),
    "a trace": calling("count", traceparent=f"00-{'a' * 32}-{'b' * 16}-01", tracestate="x=y"),
    "a trace that is none": calling("count", traceparent="00-x"),
    "somebody's own meta": calling("count", example__com=[1]),
    "a token for progress": calling("count", progressToken="p"),
    "a token that is none": calling("count", progressToken=[1]),
    "an approval": calling("pay", {"to": "bob"}, holdfast__key="pay-1"),
    "an approval of an operator": calling("pay_much", {"to": "bob"}),
    "a native answer": calling("raw"),
    "a native failure": calling("failing"),
    "a question nobody can be asked": calling("ask_name", {"text": "g"}),
    "a question nobody can be asked, with progress": calling("ask_name", {"text": "h"}, progressToken=7),
    "an answer that asks": calling("ask_back", {"text": "h"}),
    "wrong arguments": calling("note", {"text": 1}),
    "unknown arguments": calling("note", {"text": "i", "more": 1}),
    "missing arguments": calling("note"),
    "no such tool": calling("nothing"),
    "no arguments": without("arguments"),
    "null arguments": params(arguments=None),
    "arguments in a list": params(arguments=[1]),
    "arguments as text": params(arguments="{}"),
    "no name": without("name"),
    "a name that is none": params(name=5),
    "a member more in params": params(more=1),
    "a task of the older kind": params(task={"ttl": 1}),
    "a state that is none": params(requestState="x"),
    "answers to nothing": params(inputResponses={}),
    "meta that is none": params(_meta=[]),
    "null meta": params(_meta=None),
    "no meta": without("_meta"),
    "no version in meta": meta(version=None),
    "another version in meta": meta(version="2025-11-25"),
    "a client without a name": meta(info={}),
    "a client that is none": meta(info="me"),
    "a client with much to say": meta(info={"name": "x", "version": "1", "title": "X", "more": [1]}),
    "capabilities that are none": meta(can=[]),
    "capabilities nobody knows": meta(can={"flying": {}}),
    "a capability that is none": meta(can={"elicitation": 5}),
    "a client that can be asked": meta(can={"elicitation": {"form": {}}}),
    "a log level": meta(level="debug"),
    "a log level that is none": meta(level="loud"),
    "a number as text for an id": body(id="7"),
    "a text for an id": body(id="seven"),
    "a large id": body(id=2**60),
    "a fraction for an id": body(id=1.5),
    "a flag for an id": body(id=True),
    "null for an id": body(id=None),
    "another protocol": body(jsonrpc="1.0"),
    "no protocol": WITHOUT,
    "a member more": body(more=1),
    "params in a list": body(params=[1]),
    "no method": body(method=None),
    "another method": body(method="tools/list"),
    "an unknown method": body(method="tools/fly"),
    "a batch": lambda body, headers: ([body], headers),
    "a text": lambda body, headers: ("hello", headers),
    "nothing at all": raw(lambda said: b""),
    "half of it": raw(lambda said: said[:-3]),
    "a member twice": raw(lambda said: said.replace(b'"jsonrpc"', b'"id":1,"jsonrpc"', 1)),
    "broken text": raw(lambda said: said.replace(b"count", b"\xff\xfe")),
    "half a character": raw(lambda said: said.replace(b'"arguments":{}', b'"arguments":{"a":"\\ud800"}')),
    "a number that overflows": raw(lambda said: said.replace(b'"arguments":{}', b'"arguments":{"a":1e999}')),
    "a very large number": raw(
        lambda said: said.replace(b'"arguments":{}', b'"arguments":{"a":%d}' % 10**30)
    ),
    "too deep": raw(
        lambda said: said.replace(b'"arguments":{}', b'"arguments":{"a":%b}' % (b"[" * 20 + b"]" * 20))
    ),
    "too large": raw(lambda said: said + b" " * 30_000),
    "blanks": raw(lambda said: said.replace(b",", b" , ").replace(b":{", b" :\n{")),
    "another version": head(mcp_protocol_version="1999-01-01"),
    "no version": head(mcp_protocol_version=None),
    "an older version": head(mcp_protocol_version="2025-06-18"),
    "no name in a header": head(mcp_name=None),
    "another name in a header": head(mcp_name="office__note"),
    "a name in base64": head(mcp_name="=?base64?b2ZmaWNlX19jb3VudA==?="),
    "no method in a header": head(mcp_method=None),
    "another method in a header": head(mcp_method="tools/list"),
    "a session that is none": head(mcp_session_id="0" * 32),
    "JSON alone": head(accept="application/json"),
    "a stream alone": head(accept="text/event-stream"),
    "anything": head(accept="*/*"),
    "a picture": head(accept="image/png"),
    "no type": head(content_type="application/octet-stream"),
    "a type with a charset": head(content_type="application/json; charset=utf-8"),
    "a type in capitals": head(content_type="Application/JSON"),
    "a foreign page": head(origin="http://evil.example"),
    "a foreign host": head(host="evil.example"),
    "nobody we know": head(x_holdfast_user="nobody"),
    "a name that is no name": head(x_holdfast_agent="a b"),
    "somebody with fewer rights": head(x_holdfast_user="bob"),
    "a secret": head(x_holdfast_approver_secret="guess"),
}

SHORT = {
    *("a read", "a write", "a write under a key", "the same again", "another under the same key"),
    *("a key as an argument", "two keys", "a key that is no text", "a key in meta that is no text"),
    *("a key of the tool's own", "a preview", "a preview that is no flag", "a deadline"),
    *("a deadline of nothing", "a task and a step", "a version there is not", "a trace"),
    *("a trace that is none", "somebody's own meta", "a token for progress", "an approval"),
    *("an approval of an operator", "a native answer", "a native failure", "an answer that asks"),
    *("a question nobody can be asked", "a question nobody can be asked, with progress"),
    *("wrong arguments", "unknown arguments", "missing arguments", "no arguments"),
    *("a client with much to say", "capabilities nobody knows", "a client that can be asked"),
    *("a number as text for an id", "a text for an id", "a large id", "a very large number", "blanks"),
    *("anything", "a type with a charset"),
}
"""What is plainly a call, right or wrong: the gateway says which."""
SHORT_IN = {
    MODERN: SHORT | {"somebody with fewer rights"},
    # An older client says in no header what it calls, and nothing of itself with each request.
    LEGACY: SHORT
    | {"no name in a header", "another name in a header", "a name in base64", "no method in a header"}
    | {"another method in a header", "no version", "an older version", "no meta", "no version in meta"}
    | {"another version in meta", "a client without a name", "a client that is none"}
    | {"capabilities that are none", "a capability that is none"},
}


@pytest.fixture
async def two(config: dict[str, Any], tmp_path: Path) -> AsyncIterator[tuple[Served, Served]]:
    """The same office twice: with the short way, and without."""
    async with AsyncExitStack() as stack:
        served = []
        for short in (True, False):
            mine = {**config, "store": f"sqlite:///{tmp_path}/{short}.db"}
            gateway = await stack.enter_async_context(opened(mine, Office()))
            app = build(gateway, short=short)
            await stack.enter_async_context(app.state.mcp.running())
            served.append(await stack.enter_async_context(serving(app)))
        yield served[0], served[1]


async def answer(line: Line, change: Change) -> tuple[int, Any]:
    begun, headers = line.request("tools/call", {"name": "office__count", "arguments": {}})
    said, given = change(begun, headers)
    data = said if isinstance(said, bytes) else orjson.dumps(said)
    async with line.http.post(line.url, data=data, headers=given) as response:
        read = await response.read()
        try:
            return response.status, alike(messages(read))
        except orjson.JSONDecodeError:
            return response.status, read


@ERAS
@requirement("PRO-1", "NAM-5")
async def test_every_request_is_answered_the_same_by_either_way(two: tuple[Served, Served], era: str) -> None:
    faults = []
    async with speaking(two[0], era) as short, speaking(two[1], era) as general:
        for name, change in CASES.items():
            one, other = await asyncio.gather(answer(short, change), answer(general, change))
            if one != other:
                faults.append(f"{name}:\n  short   {one}\n  general {other}")
    assert not faults, "\n".join(faults)


@ERAS
@requirement("PRO-1")
async def test_what_is_plainly_a_call_takes_the_short_way(
    config: dict[str, Any], office: Office, era: str
) -> None:
    short = set()
    async with opened(config, office) as gateway:
        app = build(gateway)
        way, taken = app._ways["/mcp"], list[bool]()

        async def counted(plain: Any) -> bool:
            taken.append(bool(await way(plain)))
            return taken[-1]

        app._ways = {"/mcp": counted}
        async with app.state.mcp.running(), serving(app) as served, speaking(served, era) as line:
            for name, change in CASES.items():
                taken.clear()
                await answer(line, change)
                if taken == [True]:
                    short.add(name)
    assert short == SHORT_IN[era]


@requirement("PRO-1")
async def test_a_session_of_somebody_else_is_not_there_by_either_way(two: tuple[Served, Served]) -> None:
    said = []
    for served in two:
        async with speaking(served, LEGACY) as line:
            said.append(await answer(line, head(x_holdfast_user="bob")))
    assert said[0] == said[1]
    assert said[0][0] == 404
