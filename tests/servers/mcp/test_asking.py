"""How is a client asked what a running tool wants to know?"""

from typing import Any

import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect, seen, text
from tests.servers.mcp.office import ELICIT, Office
from tests.servers.mcp.raw import LEGACY, MODERN, speaking
from tests.servers.serving import Served, serving
from tests.spoiled import spoiled

BOTH_WAYS = True

CAN: dict[str, Any] = {"elicitation": {"form": {}}}
BACK = {"action": "accept", "content": {"name": "Ada"}, "x-more": [None]}


async def say_ada(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    assert params.message == "What is your name?"
    return ElicitResult(action="accept", content={"name": "Ada"})


@pytest.mark.parametrize(
    ("era", "tool", "said"),
    [
        (LEGACY, "office__ask_name", "hello Ada"),
        (MODERN, "office__ask_name", "hello Ada"),
        (MODERN, "office__ask_back", "thank you"),
    ],
)
@requirement("PRO-1")
async def test_a_client_of_either_era_answers_what_a_tool_asks(
    connect: Connect, era: str, tool: str, said: str, office: Office
) -> None:
    async with connect(era, elicitation_callback=say_ada) as client:
        result = await client.call_tool(tool, {"text": "hi"})
    assert text(result) == said
    assert len(office.notes) == 1
    assert seen(result)["status"] == "done"


@requirement("PRO-1")
async def test_a_modern_client_is_asked_by_the_answer_and_the_call_goes_on_when_it_comes_back(
    served: Served, office: Office
) -> None:
    params = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    async with speaking(served, MODERN, capabilities=CAN) as line:
        asked = (await line.ask("tools/call", params))["result"]
        assert asked["resultType"] == "input_required"
        [(name, request)] = asked["inputRequests"].items()
        assert request == {"method": "elicitation/create", "params": ELICIT}
        assert office.notes == []
        back = {"inputResponses": {name: BACK}, "requestState": asked["requestState"]}
        answer = (await line.ask("tools/call", {**params, **back}))["result"]
        assert answer["content"][0]["text"] == "hello Ada"
        once_more = (await line.ask("tools/call", {**params, **back}))["error"]
    assert office.notes == ["hi Ada"]
    assert office.told == [BACK]
    assert (once_more["code"], "is over" in once_more["message"]) == (-32602, True)


@requirement("PRO-1")
async def test_a_question_left_unanswered_is_asked_again(served: Served, office: Office) -> None:
    params = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    async with speaking(served, MODERN, capabilities=CAN) as line:
        first = (await line.ask("tools/call", params))["result"]
        second = (await line.ask("tools/call", {**params, "requestState": first["requestState"]}))["result"]
        assert second["inputRequests"] == first["inputRequests"]
        [name] = second["inputRequests"]
        back = {"inputResponses": {name: BACK}, "requestState": second["requestState"]}
        assert "result" in await line.ask("tools/call", {**params, **back})
    assert office.notes == ["hi Ada"]


@requirement("IDM-1")
async def test_what_a_modern_upstream_asks_is_passed_on_with_its_state_sealed(
    served: Served, office: Office
) -> None:
    params = {"name": "office__ask_back", "arguments": {"text": "hi"}}
    async with speaking(served, MODERN, capabilities=CAN) as line:
        asked = (await line.ask("tools/call", params))["result"]
        assert "mine-1" not in asked["requestState"]
        assert asked["inputRequests"]["q"]["method"] == "elicitation/create"
        back = {"inputResponses": {"q": BACK}, "requestState": asked["requestState"]}
        answer = (await line.ask("tools/call", {**params, **back}))["result"]
    assert office.told == [("mine-1", {"q": BACK})]
    assert office.notes == ["hi"]
    keys = {attempt.key for attempt in office.seen}
    assert len(keys) == 1  # one operation, however many requests it took
    assert answer["_meta"]["holdfast/observation"]["key_source"] == "request"


@requirement("AUT-1", "AUT-6")
async def test_a_state_of_somebody_else_of_another_tool_or_made_up_is_refused(
    served: Served, office: Office
) -> None:
    params = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    bob = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with speaking(served, MODERN, capabilities=CAN) as line:
        state = (await line.ask("tools/call", params))["result"]["requestState"]
        other = {"name": "office__ask_back", "arguments": {"text": "hi"}, "requestState": state}
        wrong = [
            await line.ask("tools/call", other),
            await line.ask("tools/call", {**params, "requestState": "made-up"}),
            await line.ask("tools/call", {**params, "requestState": spoiled(state)}),
            await line.ask("tools/call", {**params, "arguments": {"text": "no"}, "requestState": state}),
        ]
        line.headers = {**bob, "x-holdfast-user": "olga", "x-holdfast-agent": "bot"}
        wrong.append(await line.ask("tools/call", {**params, "requestState": state}))
    assert [answer["error"]["code"] for answer in wrong] == [-32602] * 5
    assert office.notes == []


@ERAS
@requirement("PRO-1")
async def test_a_client_that_did_not_say_it_can_be_asked_is_not(served: Served, era: str) -> None:
    async with speaking(served, era) as line:
        result = (await line.ask("tools/call", {"name": "office__ask_name", "arguments": {"text": "hi"}}))[
            "result"
        ]
    code = -32021 if era == MODERN else -32601
    assert result["content"][0]["text"].startswith("nobody to ask")
    assert str(code) in result["content"][0]["text"]


@ERAS
@requirement("PRO-1")
async def test_progress_comes_with_the_clients_own_token_and_only_to_who_asked_for_it(
    served: Served, era: str
) -> None:
    params: dict[str, Any] = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    async with speaking(served, era) as line:
        heard = await line.hear("tools/call", {**params, "_meta": {"progressToken": "tok"}})
        unasked = await line.hear("tools/call", params)
    progress = [message for message in heard if message.get("method") == "notifications/progress"]
    told = {"progress": 1, "total": 2, "x-more": True, "progressToken": "tok"}
    assert [message["params"] for message in progress] == [told]
    assert not any(message.get("method") == "notifications/progress" for message in unasked)


@requirement("PRO-1")
async def test_a_modern_client_hears_a_tools_log_only_at_the_level_it_asked_for(served: Served) -> None:
    params: dict[str, Any] = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    heard = []
    async with speaking(served, MODERN) as line:
        for level in ("info", "error", None):
            meta = {} if level is None else {"io.modelcontextprotocol/logLevel": level}
            messages = await line.hear("tools/call", {**params, "_meta": meta})
            heard.append(
                [m["params"]["data"] for m in messages if m.get("method") == "notifications/message"]
            )
    assert heard == [["asking"], [], []]


@requirement("PRO-1")
async def test_a_call_whose_client_never_comes_back_is_told_that_nobody_answers(
    gateway: Gateway, office: Office
) -> None:
    app = build(gateway)
    params = {"name": "office__ask_name", "arguments": {"text": "hi"}}
    async with app.state.mcp.running(), serving(app) as served:
        async with speaking(served, MODERN, capabilities=CAN) as line:
            await line.ask("tools/call", params)
        assert office.told == []
    await office.go_on.wait()
    assert office.told == ["the gateway is shutting down"]
    assert office.notes == []
