"""Does the token service work on one's own machine, where nobody shows a credential?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast import Gateway
from holdfast.servers.app import build
from holdfast.servers.token import ACCESS, GRANT
from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.servers.desk import DESKS, Desk
from tests.spoiled import spoiled

PEOPLE = {"ann": {"scopes": ["notes:*", "mail:*"], "trust": 80}}


@pytest.fixture(params=[True, False], ids=["short", "general"])
async def client(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    DESKS.append(Desk())
    config: dict[str, Any] = {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": PEOPLE},
    }
    async with Gateway.open(config) as gateway:
        yield Client(
            build(gateway, short=request.param), {"host": "127.0.0.1:8080", "x-holdfast-user": "ann"}
        )
    DESKS.pop()


async def ask(client: Client, **said: str) -> Answer:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    agent = said.pop("asker", None)
    if agent is not None:
        headers["x-holdfast-agent"] = agent
    return await client.send(
        "POST", "/oauth/token", [urlencode({"grant_type": GRANT, **said}).encode()], headers
    )


@requirement("AUT-2")
async def test_whoever_is_on_this_machine_hands_on_without_a_credential(client: Client) -> None:
    said = (await ask(client, agent="reader", scope="notes:read")).json()
    shown = {"authorization": f"Bearer {said['access_token']}"}
    seen = await client.post("/v1/calls", {"tool": "desk.count", "arguments": {}}, shown)
    assert (seen.status, seen.json()["status"]) == (200, "done")
    write = await client.post(
        "/v1/calls", {"tool": "desk.add", "arguments": {"text": "x"}, "key": "k"}, shown
    )
    assert (write.status, write.json()["code"]) == (404, "TOOL_NOT_FOUND")


async def test_an_agent_hands_on_in_its_own_name(client: Client) -> None:
    first = (await ask(client, asker="planner", agent="reader")).json()["access_token"]
    answer = await ask(
        client, subject_token=first, subject_token_type=ACCESS, agent="helper", tools="desk.count"
    )
    assert answer.status == 200


async def test_a_credential_that_is_refused_is_not_taken_for_none(client: Client) -> None:
    token = (await ask(client, agent="reader", scope="notes:read")).json()["access_token"]
    wrong = {"authorization": f"Bearer {spoiled(token)}"}
    for path, body in (("/v1/calls", {"tool": "desk.count", "arguments": {}}), ("/rpc", {})):
        answer = await client.post(path, body, wrong)
        assert answer.status == 401
    assert (await ask(client, subject_token="nonsense", subject_token_type=ACCESS, agent="x")).status == 400
