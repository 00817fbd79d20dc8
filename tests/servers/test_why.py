"""Can a caller ask over HTTP why something is not allowed?"""

from collections.abc import Callable

import jsonschema_rs

from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import PETRAS_SECRET

As = Callable[[str], Client]
EXPLANATION = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/components/schemas/Explanation", "components": document()["components"]}
)


@requirement("POL-7", "NAM-3")
async def test_whoever_may_not_know_learns_whom_to_ask(as_person: As) -> None:
    answer = await as_person("bob").get("/v1/why?tool=desk.add")
    assert answer.status == 200
    EXPLANATION.validate(answer.json())
    assert set(answer.json()) == {"tool", "allowed", "call_id", "ask"}


@requirement("POL-7", "NAM-3")
async def test_an_operator_is_told_in_full(as_person: As) -> None:
    headers = {"x-holdfast-approver-secret": PETRAS_SECRET}
    answer = await as_person("petra").post("/v1/why", {"tool": "desk.add", "arguments": {}}, headers)
    EXPLANATION.validate(answer.json())
    assert answer.json()["gate"] == "authorize"
    assert answer.json()["changes"] == ["grant 'petra' 'notes:write', and give arguments that it takes"]
    allowed = await as_person("olga").post("/v1/why", {"tool": "desk.add", "arguments": {"text": "a"}})
    EXPLANATION.validate(allowed.json())
    assert (allowed.json()["allowed"], allowed.json()["policies"][0]["id"]) == (True, "starter.writes")


async def test_a_question_without_a_tool_is_refused(client: Client) -> None:
    assert (await client.get("/v1/why")).status == 400
    assert (await client.post("/v1/why", {"tol": "x"})).status == 400


@requirement("POL-7")
async def test_an_empty_list_of_tools_says_why_it_is_empty(as_person: As, client: Client) -> None:
    nothing = (await as_person("petra").get("/v1/tools")).json()
    assert nothing["tools"] == []
    assert "you hold no scope for any tool here" in nothing["hint"]
    unmentioned = (await client.get("/v1/tools?q=zzz")).json()
    assert unmentioned["hint"] == "no tool that you may use mentions all these words"
    assert "hint" not in (await client.get("/v1/tools")).json()
