"""How do applications call tools over plain HTTP?"""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.servers.desk import LEAK, Desk

BOTH_WAYS = True

Observed = Callable[[Any], Any]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def call(tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"tool": f"desk.{tool}", "arguments": arguments or {}, **more}


def without_replayed(answer: Answer) -> bytes:
    return answer.body.replace(b'"replayed":true', b'"replayed":false')


@requirement("NAM-3", "NAM-4")
async def test_a_read_answers_its_observation(client: Client, observed: Observed) -> None:
    answer = await client.post("/v1/calls", call("count"))
    said = observed(answer.json())
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert (said["status"], said["data"], said["tool"]) == ("done", 0, "desk.count")


@requirement("NAM-3")
async def test_arguments_may_come_as_text(client: Client, desk: Desk) -> None:
    answer = await client.post("/v1/calls", {"tool": "desk.add", "arguments": '{"text": "x"}', "key": "k"})
    assert answer.status == 200
    assert desk.notes == ["x"]


@requirement("NAM-3", "IDM-1")
@pytest.mark.parametrize("second", ["body", "header", "both"])
async def test_a_repeated_key_gets_the_same_bytes_and_no_second_effect(
    client: Client, desk: Desk, observed: Observed, second: str
) -> None:
    first = await client.post("/v1/calls", call("add", {"text": "once"}, key="k-1"))
    body = call("add", {"text": "once"}, **({} if second == "header" else {"key": "k-1"}))
    again = await client.post("/v1/calls", body, {} if second == "body" else {"Idempotency-Key": "k-1"})
    assert (first.status, again.status) == (200, 200)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert observed(again.json())["replayed"] is True
    assert without_replayed(again) == first.body
    assert desk.notes == ["once"]


@requirement("NAM-3")
async def test_two_different_keys_for_one_call_are_refused(
    client: Client, desk: Desk, observed: Observed
) -> None:
    answer = await client.post("/v1/calls", call("add", {"text": "x"}, key="a"), {"Idempotency-Key": "b"})
    said = observed(answer.json())
    assert (answer.status, said["code"]) == (400, "STRUCTURAL_VIOLATION")
    assert said["field_errors"][0]["path"] == "/key"
    assert desk.notes == []


@requirement("NAM-3", "IDM-1")
async def test_a_write_without_a_key_is_refused(client: Client, desk: Desk, observed: Observed) -> None:
    answer = await client.post("/v1/calls", call("add", {"text": "x"}))
    assert (answer.status, observed(answer.json())["code"]) == (400, "KEY_REQUIRED")
    assert desk.notes == []


@requirement("IDM-1", "LIF-4")
async def test_task_and_step_make_a_key(client: Client, desk: Desk) -> None:
    body = call("add", {"text": "x"}, task="t-1", step="s-1")
    first, again = await client.post("/v1/calls", body), await client.post("/v1/calls", body)
    assert first.json()["key_source"] == "derived"
    assert again.json()["replayed"] is True
    assert desk.notes == ["x"]


@requirement("NAM-3")
async def test_a_key_with_other_arguments_is_a_mismatch(client: Client, desk: Desk) -> None:
    await client.post("/v1/calls", call("add", {"text": "a"}, key="k"))
    answer = await client.post("/v1/calls", call("add", {"text": "b"}, key="k"))
    assert (answer.status, answer.json()["code"]) == (422, "KEY_MISMATCH")
    assert desk.notes == ["a"]


@requirement("NAM-3", "LIF-2")
async def test_an_invisible_tool_and_an_unknown_one_are_the_same_404(
    as_person: Callable[[str], Client], observed: Observed
) -> None:
    bob = as_person("bob")
    hidden = await bob.post("/v1/calls", call("add", {"text": "x"}, key="k"))
    unknown = await bob.post("/v1/calls", call("nothing", {"text": "x"}, key="k"))
    assert (hidden.status, unknown.status) == (404, 404)
    assert observed(hidden.json())["message"] == observed(unknown.json())["message"].replace("nothing", "add")


@requirement("NAM-3")
async def test_wrong_arguments_name_their_fields(client: Client, observed: Observed) -> None:
    answer = await client.post("/v1/calls", call("read", {"number": "3"}))
    said = observed(answer.json())
    assert (answer.status, said["code"]) == (400, "TYPE_MISMATCH")
    assert [fault["path"] for fault in said["field_errors"]] == ["/number"]


@requirement("NAM-3", "LIF-5")
async def test_a_lost_outcome_is_a_504_that_leaks_nothing(client: Client, observed: Observed) -> None:
    answer = await client.post("/v1/calls", call("add_and_break", {"text": "x"}, key="k"))
    said = observed(answer.json())
    assert (answer.status, said["status"], said["code"]) == (504, "unknown", "OUTCOME_UNKNOWN")
    for word in (*LEAK.split(), "RuntimeError", "Traceback"):
        if len(word) > 4:
            assert word not in answer.body.decode()


@requirement("NAM-3")
async def test_too_fast_says_how_long_to_wait(client: Client, observed: Observed) -> None:
    assert (await client.post("/v1/calls", call("hourly"))).status == 200
    answer = await client.post("/v1/calls", call("hourly"))
    said = observed(answer.json())
    assert (answer.status, said["code"]) == (429, "RATE_LIMITED")
    wait_ms = said["remedy"]["retry_after_ms"]
    assert int(answer.headers["retry-after"]) == -(-wait_ms // 1000)


@requirement("NAM-3")
async def test_if_match_is_taken_from_the_header(client: Client, desk: Desk, observed: Observed) -> None:
    desk.notes.append("abc")
    body = call("change", {"number": 0, "text": "abcdef"}, key="k")
    stale = await client.post("/v1/calls", body, {"If-Match": '"v9"'})
    assert (stale.status, observed(stale.json())["code"]) == (412, "STALE_STATE")
    assert desk.notes == ["abc"]
    assert (await client.post("/v1/calls", body, {"If-Match": '"v3"'})).status == 200
    assert desk.notes == ["abcdef"]


@requirement("NAM-3")
async def test_a_preview_does_nothing(client: Client, desk: Desk, observed: Observed) -> None:
    answer = await client.post("/v1/calls", call("send", {"to": "x@example.com"}, preview=True))
    assert (answer.status, observed(answer.json())["status"]) == (200, "preview")
    assert desk.sent == []


@requirement("LIF-4")
async def test_the_trace_of_the_caller_goes_all_the_way(client: Client, desk: Desk) -> None:
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    assert (await client.post("/v1/calls", call("count"), headers)).json()["trace_id"] == TRACE
    assert desk.traces == [TRACE]
    broken = await client.send("POST", "/v1/calls", [b"{"], headers)
    assert broken.json()["trace_id"] == TRACE


@requirement("LIF-4")
async def test_a_bad_trace_is_replaced_and_not_believed(client: Client) -> None:
    said = (await client.post("/v1/calls", call("count"), {"traceparent": "00-zz-zz-01"})).json()
    assert len(said["trace_id"]) == 32
    assert "z" not in said["trace_id"]


@requirement("VAL-4", "NAM-3")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "SYNTACTIC_PARSE_FAIL"),
        (b"{", "SYNTACTIC_PARSE_FAIL"),
        (b"\xff\xfe", "SYNTACTIC_PARSE_FAIL"),
        (b'{"tool": "desk.count", "tool": "desk.add", "arguments": {}}', "SYNTACTIC_PARSE_FAIL"),
        (b'{"tool": "desk.add", "arguments": {"text": "a", "text": "b"}}', "SYNTACTIC_PARSE_FAIL"),
        (b'{"tool": "desk.count", "arguments": {"a": NaN}}', "SYNTACTIC_PARSE_FAIL"),
        (b'{"tool": "desk.add", "arguments": {"text": "' + b"x" * 2_001 + b'"}}', "STRUCTURAL_VIOLATION"),
        (b'{"tool": "desk.add", "arguments": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}", "STRUCTURAL_VIOLATION"),
        (b'{"tool": "desk.add", "arguments": {"a": [' + b"1," * 900 + b"1]}}", "STRUCTURAL_VIOLATION"),
        (b"[]", "STRUCTURAL_VIOLATION"),
        (b'"tool"', "STRUCTURAL_VIOLATION"),
        (b'{"tool": "desk.count", "argumens": {}}', "STRUCTURAL_VIOLATION"),
        (b'{"tool": "desk.count", "arguments": {}, "deadline_ms": "3"}', "STRUCTURAL_VIOLATION"),
    ],
)
async def test_a_body_that_cannot_be_a_call_is_refused_with_a_reason(
    client: Client, observed: Observed, body: bytes, code: str
) -> None:
    answer = await client.send("POST", "/v1/calls", [body])
    said = observed(answer.json())
    assert (answer.status, said["status"], said["code"]) == (400, "refused", code)
    assert said["message"]
    assert said["field_errors"]


@requirement("NAM-3")
async def test_a_misspelt_member_is_told_the_right_one(client: Client) -> None:
    said = (await client.post("/v1/calls", {"tool": "desk.count", "argumens": {}})).json()
    assert "did you mean 'arguments'" in said["field_errors"][1]["message"]


@requirement("VAL-4", "NAM-3")
@pytest.mark.parametrize(
    ("declared", "read"),
    [({"content-length": "20001"}, 0), ({"content-length": "9" * 5_000}, 0), ({}, 5)],
    ids=["declared", "absurd", "streamed"],
)
async def test_a_body_that_is_too_large_is_given_up_while_it_comes(
    client: Client, declared: dict[str, str], read: int
) -> None:
    pieces = iter([b" " * 5_000] * 50)
    answer = await client.send("POST", "/v1/calls", pieces, declared)
    assert answer.status == 413
    assert set(answer.json()) == {"error", "next"}
    assert "20000" in answer.json()["error"]
    assert len(list(pieces)) == 50 - read


@requirement("VAL-4")
async def test_a_body_that_arrives_in_pieces_is_one_body(client: Client) -> None:
    raw = orjson.dumps(call("count"))
    answer = await client.send("POST", "/v1/calls", [raw[:5], raw[5:9], b"", raw[9:]])
    assert answer.status == 200


@requirement("VAL-4")
async def test_arguments_are_held_to_the_limit_exactly(client: Client) -> None:
    def nested(depth: int) -> Any:
        return {} if depth == 1 else {"a": nested(depth - 1)}

    within, beyond = [
        (await client.post("/v1/calls", {"tool": "desk.count", "arguments": nested(depth)})).json()
        for depth in (8, 9)
    ]
    assert within["code"] == "STRUCTURAL_VIOLATION"  # read, and then not in the schema
    assert beyond["code"] == "OUT_OF_BOUNDS"


@requirement("NAM-3")
async def test_a_call_is_found_again_by_its_id(client: Client, observed: Observed) -> None:
    first = observed((await client.post("/v1/calls", call("add", {"text": "x"}, key="k"))).json())
    answer = await client.get(f"/v1/calls/{first['call_id']}")
    assert answer.status == 200
    assert observed(answer.json()) == first


@requirement("NAM-3")
async def test_an_uncertain_call_is_found_with_200(client: Client, observed: Observed) -> None:
    first = (await client.post("/v1/calls", call("add_and_break", {"text": "x"}, key="k"))).json()
    answer = await client.get(f"/v1/calls/{first['call_id']}")
    assert (answer.status, observed(answer.json())["status"]) == (200, "unknown")


@requirement("NAM-3", "AUT-6")
async def test_a_call_of_somebody_else_is_not_found(
    client: Client, as_person: Callable[[str], Client]
) -> None:
    first = (await client.post("/v1/calls", call("add", {"text": "x"}, key="k"))).json()
    theirs = await as_person("bob").get(f"/v1/calls/{first['call_id']}")
    unknown = await as_person("bob").get("/v1/calls/call_0")
    assert (theirs.status, unknown.status) == (404, 404)
    assert theirs.json()["error"].replace(first["call_id"], "call_0") == unknown.json()["error"]


@requirement("NAM-3")
async def test_a_key_in_use_says_when_to_ask_again(client: Client, desk: Desk, observed: Observed) -> None:
    body = call("add_slowly", {"text": "x"}, key="k")
    first = asyncio.create_task(client.post("/v1/calls", body))
    await desk.started.wait()
    second = await client.post("/v1/calls", {**body, "deadline_ms": 1})
    assert (second.status, observed(second.json())["code"]) == (409, "KEY_IN_USE")
    assert int(second.headers["retry-after"]) >= 1
    desk.go_on.set()
    assert (await first).status == 200
    assert desk.notes == ["x"]


KNOWN = st.sampled_from(
    "tool arguments key task step deadline_ms preview version jsonrpc method params id desk.count desk.add "
    "text tools.call tools.list calls.get call_id 2.0 q cursor".split()
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**54)
    | st.floats(allow_nan=False, width=32)
    | KNOWN
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KNOWN | st.text(max_size=9), inner, max_size=6)
    ),
    max_leaves=12,
)


@requirement("LIF-5")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=ANYTHING, path=st.sampled_from(["/v1/calls", "/rpc"]))
async def test_no_body_breaks_anything(client: Client, body: Any, path: str) -> None:
    answer = await client.post(path, body)
    assert answer.status in (200, 204, 400, 404, 422)
    assert b"incident" not in answer.body
