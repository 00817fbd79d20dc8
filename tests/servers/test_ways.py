"""Is a call over HTTP or JSON-RPC answered the same, whichever way it takes to the gateway?

Every request here is sent to two gateways that differ in nothing else: one lets plain calls take the short
way, the other does not. What comes back may differ in ids and times.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from holdfast.servers.front import Front
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL
from tests.servers.desk import DESKS, Desk
from tests.servers.ways import alike

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
ADD = {"tool": "desk.add", "arguments": {"text": "a"}}
COUNT: dict[str, Any] = {"tool": "desk.count", "arguments": {}}

Said = tuple[Any, Mapping[str, str] | Sequence[tuple[str, str]]]
"""A body, as JSON data or as bytes, and headers beside the usual ones."""

CALLS: dict[str, Said] = {
    "a read": (COUNT, {}),
    "a write without a key": (ADD, {}),
    "a write": ({**ADD, "key": "k-1"}, {}),
    "the same again": ({**ADD, "key": "k-1"}, {}),
    "another under the same key": ({**ADD, "key": "k-1", "arguments": {"text": "b"}}, {}),
    "a key in a header": (ADD, {"Idempotency-Key": "k-2"}),
    "a key in quotes": (ADD, {"Idempotency-Key": '"k-3"'}),
    "a key twice": ({**ADD, "key": "k-4"}, {"Idempotency-Key": "k-4"}),
    "two keys": ({**ADD, "key": "k-5"}, {"Idempotency-Key": "k-6"}),
    "two headers": (ADD, [("Idempotency-Key", "k-7"), ("Idempotency-Key", "k-8")]),
    "a target's version": ({**COUNT, "if_match": "v1"}, {"If-Match": '"v1"'}),
    "a session": (COUNT, {"X-Holdfast-Session": "s"}),
    "a trace": (COUNT, {"traceparent": TRACE, "tracestate": "x=y"}),
    "a trace that is none": (COUNT, {"traceparent": "00-x"}),
    "every member": (
        {**COUNT, "version": None, "task": "t", "step": "s", "deadline_ms": 5000, "preview": False},
        {},
    ),
    "arguments as text": ({"tool": "desk.count", "arguments": "{}"}, {}),
    "arguments as broken text": ({"tool": "desk.count", "arguments": "{"}, {}),
    "a preview": ({**ADD, "key": "k-9", "preview": True}, {}),
    "a preview that is no flag": ({**ADD, "preview": "yes"}, {}),
    "a deadline of nothing": ({**COUNT, "deadline_ms": 0}, {}),
    "a deadline that is a flag": ({**COUNT, "deadline_ms": True}, {}),
    "an approval": ({"tool": "desk.send", "arguments": {"to": "x"}, "key": "m-1"}, {}),
    "once an hour": ({"tool": "desk.hourly", "arguments": {}}, {}),
    "again in that hour": ({"tool": "desk.hourly", "arguments": {}}, {}),
    "a lost answer": ({"tool": "desk.add_and_break", "arguments": {"text": "x"}, "key": "l-1"}, {}),
    "a semantic fault": ({"tool": "desk.read", "arguments": {"number": 99}}, {}),
    "wrong arguments": ({"tool": "desk.add", "arguments": {"text": 1}}, {}),
    "no such tool": ({"tool": "desk.nothing", "arguments": {}}, {}),
    "a version there is not": ({**COUNT, "version": "9.9.9"}, {}),
    "no arguments": ({"tool": "desk.count"}, {}),
    "null arguments": ({"tool": "desk.count", "arguments": None}, {}),
    "arguments in a list": ({"tool": "desk.count", "arguments": []}, {}),
    "no tool": ({"arguments": {}}, {}),
    "a tool that is none": ({"tool": 5, "arguments": {}}, {}),
    "a member nobody knows": ({**COUNT, "kee": "x"}, {}),
    "a member nobody knows that says nothing": ({**COUNT, "kee": None}, {}),
    "a release nobody knows": ({**COUNT, "release": "me"}, {}),
    "a list": ([COUNT], {}),
    "a text": ("hello", {}),
    "somebody with fewer rights": (ADD, [("x-holdfast-user", "bob")]),
    "nobody we know": (COUNT, {"x-holdfast-agent": "a b"}),
    "a secret": (COUNT, {"x-holdfast-approver-secret": "guess"}),
    "a foreign page": (COUNT, {"origin": "http://evil.example"}),
    "its own page": (COUNT, {"origin": "http://127.0.0.1:8080"}),
    "a length that is none": (COUNT, {"content-length": "many"}),
    "a length that is too large": (COUNT, {"content-length": "99999999999999999999"}),
}
RAW: dict[str, bytes] = {
    "nothing at all": b"",
    "half of it": b'{"tool": "desk.count", ',
    "a member twice": b'{"tool":"desk.count","arguments":{},"tool":"desk.add"}',
    "broken text": b'{"tool":"desk.count","arguments":{"a":"\xff"}}',
    "half a character": b'{"tool":"desk.add","arguments":{"text":"\\ud800"}}',
    "a number that overflows": b'{"tool":"desk.read","arguments":{"number":1e999}}',
    "a very large number": b'{"tool":"desk.read","arguments":{"number":%d}}' % 10**30,
    "too deep": b'{"tool":"desk.count","arguments":{"a":%b}}' % (b"[" * 20 + b"]" * 20),
    "too many": b'{"tool":"desk.count","arguments":{"a":[%b1]}}' % (b"1," * 200),
    "too long": b'{"tool":"desk.add","arguments":{"text":"%b"}}' % (b"x" * 3_000),
    "too large": b'{"tool":"desk.count","arguments":{}}' + b" " * 30_000,
    "blanks": b' { "tool" :\n"desk.count" , "arguments" : { } } ',
}
REQUESTS: dict[str, Any] = {
    "a request": {},
    "a text for an id": {"id": "seven"},
    "a fraction for an id": {"id": 1.5},
    "null for an id": {"id": None},
    "a flag for an id": {"id": True},
    "another protocol": {"jsonrpc": "1.0"},
    "another method": {"method": "tools.list", "params": {}},
    "a method nobody knows": {"method": "tools.fly"},
    "a method that is none": {"method": 5},
    "a member more": {"key": "k"},
    "params in a list": {"params": [1]},
    "params as text": {"params": "x"},
}


VARYING = ("content-length", "retry-after")
"""Headers that differ from call to call."""


@pytest.fixture
async def two(config: dict[str, Any], tmp_path: Path) -> AsyncIterator[list[Client]]:
    """The same desk twice: with the short way, and without."""
    async with AsyncExitStack() as stack:
        clients = []
        for short in (True, False):
            DESKS.append(Desk())
            stack.callback(DESKS.pop)
            mine = {**config, "store": f"sqlite:///{tmp_path}/{short}.db"}
            gateway = await stack.enter_async_context(Gateway.open(mine))
            clients.append(Client(build(gateway, short=short), {**LOCAL, "x-holdfast-user": "ann"}))
        yield clients


def asked() -> dict[str, tuple[str, bytes, Any]]:
    """All requests: the path, the body and headers beside the usual ones."""
    found = {}
    for name, (said, headers) in CALLS.items():
        request = {"jsonrpc": "2.0", "id": 7, "method": "tools.call", "params": said}
        found[f"{name}, over HTTP"] = ("/v1/calls", orjson.dumps(said), headers)
        found[f"{name}, over JSON-RPC"] = ("/rpc", orjson.dumps(request), headers)
    for name, raw in RAW.items():
        request_raw = b'{"jsonrpc":"2.0","id":7,"method":"tools.call","params":%b}' % raw
        found[f"{name}, over HTTP"] = ("/v1/calls", raw, {})
        found[f"{name}, over JSON-RPC"] = ("/rpc", request_raw, {})
    for name, members in REQUESTS.items():
        request = {"jsonrpc": "2.0", "id": 7, "method": "tools.call", "params": COUNT, **members}
        found[name] = ("/rpc", orjson.dumps(request), {})
    notification = {"jsonrpc": "2.0", "method": "tools.call", "params": COUNT}
    found["a notification"] = ("/rpc", orjson.dumps(notification), {})
    found["a batch"] = ("/rpc", orjson.dumps([{**notification, "id": 1}, {**notification, "id": 2}]), {})
    return found


async def answer(client: Client, path: str, body: bytes, headers: Any) -> tuple[int, Any, Any]:
    said = await client.send("POST", path, [body[:20], body[20:]], headers)
    told = dict(said.headers) | {name: name for name in VARYING if name in said.headers}
    return said.status, told, alike(said.json() if said.body else None)


@requirement("PRO-2", "NAM-3")
async def test_every_call_is_answered_the_same_by_either_way(two: list[Client]) -> None:
    faults = []
    for name, request in asked().items():
        one, other = [await answer(client, *request) for client in two]
        if one != other:
            faults.append(f"{name}:\n  short   {one}\n  general {other}")
    assert not faults, "\n".join(faults)


@requirement("PRO-2")
async def test_what_is_plainly_a_call_takes_the_short_way(two: list[Client]) -> None:
    app = two[0].app
    assert isinstance(app, Front)
    taken: list[bool] = []

    def counted(way: Any) -> Any:
        async def count(plain: Any) -> bool:
            taken.append(await way(plain))
            return taken[-1]

        return count

    app._ways = {path: counted(way) for path, way in app._ways.items()}
    plain = ["a read", "a write", "the same again", "a key in a header", "a trace", "every member", "blanks"]
    for name in plain:
        for over in ("HTTP", "JSON-RPC"):
            await answer(two[0], *asked()[f"{name}, over {over}"])
    assert taken == [True] * len(plain) * 2
    taken.clear()
    for name in ("two keys", "no tool", "a member nobody knows", "a list", "a member twice"):
        await answer(two[0], *asked()[f"{name}, over HTTP"])
    assert taken == [False] * 5
