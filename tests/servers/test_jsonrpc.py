"""Is this JSON-RPC 2.0, batches and notifications included?"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import orjson
import pytest

from holdfast.gateway import Gateway
from holdfast.model.errors import TABLE, Code
from holdfast.servers.app import build
from holdfast.servers.jsonrpc import LARGEST_BATCH
from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.servers.conftest import LOCAL
from tests.servers.desk import Desk

BOTH_WAYS = True

Observed = Callable[[Any], Any]
RESPONSE = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/components/schemas/RpcResponse", "components": document()["components"]}
)


def request(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {} if params is None else params, "id": id}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    said = request(method, params)
    del said["id"]
    return said


def add(text: str, key: str) -> dict[str, Any]:
    return {"tool": "desk.add", "arguments": {"text": text}, "key": key}


async def rpc(client: Client, body: Any, headers: dict[str, str] | None = None) -> Any:
    answer = await client.post("/rpc", body, headers)
    assert answer.status == 200
    for response in (
        answer.json() if isinstance(body, list) and isinstance(answer.json(), list) else [answer.json()]
    ):
        RESPONSE.validate(response)
        assert ("result" in response) != ("error" in response)
    return answer.json()


@requirement("NAM-3", "PRO-2")
async def test_a_call_that_went_through_is_a_result(client: Client, desk: Desk, observed: Observed) -> None:
    said = await rpc(client, request("tools.call", add("x", "k"), id="a"))
    assert said["id"] == "a"
    assert observed(said["result"])["status"] == "done"
    assert desk.notes == ["x"]


@requirement("PRO-2")
async def test_a_refused_call_is_an_error_of_the_code_table(client: Client, observed: Observed) -> None:
    said = await rpc(client, request("tools.call", {"tool": "desk.add", "arguments": {"text": "x"}}))
    assert said["error"]["code"] == TABLE[Code.KEY_REQUIRED].jsonrpc
    assert observed(said["error"]["data"])["code"] == "KEY_REQUIRED"


@requirement("PRO-2")
async def test_an_uncertain_call_is_an_error(client: Client, observed: Observed) -> None:
    body = {"tool": "desk.add_and_break", "arguments": {"text": "x"}, "key": "k"}
    said = await rpc(client, request("tools.call", body))
    assert said["error"]["code"] == TABLE[Code.OUTCOME_UNKNOWN].jsonrpc
    assert observed(said["error"]["data"])["status"] == "unknown"


@requirement("PRO-2")
async def test_a_held_call_and_a_preview_are_results(client: Client, observed: Observed) -> None:
    mail = {"tool": "desk.send", "arguments": {"to": "x@example.com"}, "key": "k"}
    held = await rpc(client, request("tools.call", mail))
    preview = await rpc(client, request("tools.call", {**mail, "preview": True}))
    assert observed(held["result"])["status"] == "held"
    assert observed(preview["result"])["status"] == "preview"


@requirement("PRO-2", "IDM-1")
async def test_a_replay_over_rpc_has_the_bytes_of_the_first_answer(client: Client, desk: Desk) -> None:
    first = await client.post("/v1/calls", add("x", "k"))
    again = await client.post("/rpc", request("tools.call", add("x", "k")))
    assert first.body in again.body.replace(b'"replayed":true', b'"replayed":false')
    assert desk.notes == ["x"]


@requirement("NAM-3")
async def test_a_call_is_looked_up_and_that_is_a_success_whatever_became_of_it(
    client: Client, observed: Observed
) -> None:
    body = {"tool": "desk.add_and_break", "arguments": {"text": "x"}, "key": "k"}
    made = (await client.post("/v1/calls", body)).json()
    said = await rpc(client, request("calls.get", {"call_id": made["call_id"]}))
    assert observed(said["result"])["status"] == "unknown"


@requirement("NAM-3")
async def test_a_call_nobody_knows_is_an_error(client: Client) -> None:
    said = await rpc(client, request("calls.get", {"call_id": "call_0"}))
    assert said["error"]["code"] == -32001


@requirement("NAM-3")
async def test_tools_are_listed_as_over_rest(client: Client) -> None:
    said = await rpc(client, request("tools.list", {"q": "note", "limit": 2}))
    assert said["result"] == (await client.get("/v1/tools?q=note&limit=2")).json()


@requirement("PRO-2")
@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        ({}, -32600, None),
        (1, -32600, None),
        ("x", -32600, None),
        (None, -32600, None),
        ([], -32600, None),
        ({"jsonrpc": "1.0", "method": "tools.list", "id": 7}, -32600, 7),
        ({"method": "tools.list", "id": 7}, -32600, 7),
        ({"jsonrpc": "2.0", "id": 7}, -32600, 7),
        ({"jsonrpc": "2.0", "method": 3, "id": 7}, -32600, 7),
        ({"jsonrpc": "2.0", "method": "tools.list", "id": {}}, -32600, None),
        ({"jsonrpc": "2.0", "method": "tools.list", "id": True}, -32600, None),
        ({"jsonrpc": "2.0", "method": "tools.list", "params": 3, "id": 7}, -32600, 7),
        ({"jsonrpc": "2.0", "method": "tools.list", "key": "lost", "id": 7}, -32600, 7),
        ({"jsonrpc": "2.0", "method": "tools.drop", "id": 7}, -32601, 7),
        ({"jsonrpc": "2.0", "method": "tools.drop", "params": [1], "id": 7}, -32601, 7),
        ({"jsonrpc": "2.0", "method": "tools.list", "params": [1], "id": 7}, -32602, 7),
        ({"jsonrpc": "2.0", "method": "tools.list", "params": {"lim": 1}, "id": 7}, -32602, 7),
        ({"jsonrpc": "2.0", "method": "tools.call", "params": {"tool": "desk.count"}, "id": 7}, -32602, 7),
        ({"jsonrpc": "2.0", "method": "calls.get", "params": {}, "id": 7}, -32602, 7),
        ({"jsonrpc": "2.0", "method": "tools.drop", "id": 1.5}, -32601, 1.5),
        ({"jsonrpc": "2.0", "method": "tools.drop", "id": None}, -32601, None),
    ],
)
async def test_a_wrong_request_gets_the_error_the_standard_names(
    client: Client, body: Any, code: int, id: Any
) -> None:
    said = await rpc(client, body)
    assert (said["error"]["code"], said["id"]) == (code, id)
    assert said["error"]["message"]


@requirement("PRO-2", "VAL-4")
@pytest.mark.parametrize("raw", [b"", b"{", b'[{"jsonrpc": "2.0"', b'{"id": 1, "id": 2}', b"\xff"])
async def test_what_is_not_json_is_a_parse_error(client: Client, observed: Observed, raw: bytes) -> None:
    said = (await client.send("POST", "/rpc", [raw])).json()
    RESPONSE.validate(said)
    assert (said["error"]["code"], said["id"]) == (-32700, None)
    assert observed(said["error"]["data"])["code"] == "SYNTACTIC_PARSE_FAIL"


@requirement("PRO-2")
async def test_params_may_be_left_out(client: Client) -> None:
    assert "result" in await rpc(client, {"jsonrpc": "2.0", "method": "tools.list", "id": 1})


@requirement("PRO-2")
async def test_a_batch_answers_every_request_and_no_notification(client: Client, desk: Desk) -> None:
    said = await rpc(
        client,
        [
            request("tools.call", add("a", "k1"), id=1),
            notification("tools.call", add("b", "k2")),
            7,
            request("tools.drop", id=2),
            request("tools.call", {"tool": "desk.count", "arguments": {}}, id=3),
        ],
    )
    assert [response["id"] for response in said] == [1, None, 2, 3]
    assert said[3]["result"]["data"] == 2  # in order: the count saw both writes
    assert desk.notes == ["a", "b"]


@requirement("PRO-2")
@pytest.mark.parametrize("many", [False, True])
async def test_notifications_run_and_are_not_answered(client: Client, desk: Desk, many: bool) -> None:
    one = notification("tools.call", add("x", "k"))
    answer: Answer = await client.post("/rpc", [one, notification("tools.drop")] if many else one)
    assert (answer.status, answer.body) == (204, b"")
    assert desk.notes == ["x"]


@requirement("PRO-2", "VAL-4")
async def test_a_batch_has_a_largest_size(client: Client, desk: Desk) -> None:
    said = await rpc(client, [1] * (LARGEST_BATCH + 1))
    assert said["error"]["code"] == -32600
    assert str(LARGEST_BATCH) in said["error"]["message"]


@requirement("IDM-1")
async def test_the_key_of_a_single_call_may_be_a_header(client: Client, desk: Desk) -> None:
    body = request("tools.call", {"tool": "desk.add", "arguments": {"text": "x"}})
    said = await rpc(client, body, {"Idempotency-Key": "k"})
    assert said["result"]["key"] == "k"
    mismatch = await rpc(client, request("tools.call", add("x", "k")), {"Idempotency-Key": "other"})
    assert mismatch["error"]["code"] == -32602


@requirement("IDM-1")
async def test_one_key_for_a_whole_batch_is_refused(client: Client, desk: Desk) -> None:
    said = await rpc(client, [request("tools.call", add("x", "k"))], {"Idempotency-Key": "k"})
    assert said["error"]["code"] == -32600
    assert desk.notes == []


@requirement("VAL-4")
async def test_a_body_that_is_too_large_is_no_rpc_at_all(client: Client) -> None:
    answer = await client.send("POST", "/rpc", [b" " * 30_000])
    assert answer.status == 413
    assert set(orjson.loads(answer.body)) == {"error", "next"}


@requirement("LIF-5", "PRO-2")
async def test_what_breaks_inside_spares_the_rest_of_a_batch(
    config: dict[str, Any], desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    async with Gateway.open(config) as gateway:
        client = Client(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
    closed = [
        request("tools.list", id=1),
        request("calls.get", {"call_id": "x"}, id=2),
        request("tools.list", id=3),
    ]
    said = await rpc(client, closed)
    assert ["result" in response for response in said] == [True, False, True]
    assert said[1]["error"]["code"] == -32603
    assert set(said[1]["error"]["data"]) == {"incident", "next"}
    assert said[1]["error"]["data"]["incident"] in caplog.text
