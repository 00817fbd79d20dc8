"""How are scopes given, taken back and asked for over HTTP, and how soon do the doors know?"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.desk import Desk
from tests.servers.test_operate import fits

BOTH_WAYS = True
As = Callable[[str], Client]
WRITE: dict[str, Any] = {"tool": "desk.add", "arguments": {"text": "hello"}, "key": "n-1"}
GRANT = {"person": "bob", "scope": "notes:write", "note": "for the move"}


async def write(client: Client, key: str) -> int:
    return (await client.post("/v1/calls", {**WRITE, "key": key})).status


@requirement("AUT-4", "NAM-3")
async def test_a_grant_is_felt_by_the_next_request_and_so_is_its_end(as_person: As, desk: Desk) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    assert await write(bob, "n-1") == 404
    given = await olga.post("/v1/grants", GRANT)
    assert (given.status, fits("Grant", given.json())["state"]) == (201, "held")
    assert await write(bob, "n-2") == 200
    [seen] = fits("Grants", (await bob.get("/v1/grants")).json())["grants"]
    assert seen == given.json()
    gone = await olga.send("DELETE", f"/v1/grants/{seen['id']}")
    assert (gone.status, fits("Grant", gone.json())["state"]) == (200, "revoked")
    assert await write(bob, "n-3") == 404


@requirement("AUT-4", "NAM-3")
async def test_who_is_no_operator_gives_nothing_and_sees_their_own(as_person: As) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    refused = await ann.post("/v1/grants", GRANT)
    assert (refused.status, "operator" in fits("TransportError", refused.json())["error"]) == (403, True)
    given = (await olga.post("/v1/grants", {**GRANT, "for_s": 60, "agent": "bot"})).json()
    assert (await ann.get("/v1/grants")).json() == {"grants": []}
    assert (await ann.send("DELETE", f"/v1/grants/{given['id']}")).status == 404
    assert (await olga.send("DELETE", "/v1/grants/grn_unheard_of")).status == 404


@requirement("AUT-8", "NAM-3")
async def test_an_elevation_is_asked_for_approved_and_held(as_person: As, desk: Desk) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    asked = await bob.post("/v1/elevations", {"scope": "notes:write", "reason": "the move", "for_s": 60})
    said = fits("Elevation", asked.json())
    assert asked.status == 202
    assert fits("Grants", (await bob.get("/v1/grants")).json())["grants"][0]["state"] == "waiting"
    shown = fits("Approval", (await olga.get(f"/v1/approvals/{said['approval']['id']}")).json())
    assert shown["packet"]["arguments"]["scope"] == "notes:write"
    assert await write(bob, "n-1") == 404
    answer = {"decision": "approve"}
    assert (await olga.post(f"/v1/approvals/{said['approval']['id']}/decision", answer)).status == 200
    assert await write(bob, "n-2") == 200


@pytest.mark.parametrize(
    "body",
    [
        {"scope": "notes:write"},
        {"scope": "notes:write", "reason": "x", "for_s": 0},
        {"scope": "notes:write", "reason": "x", "for_s": True},
        {"scope": 7, "reason": "x"},
        {"scopes": "notes:write", "reason": "x"},
    ],
)
async def test_an_elevation_must_be_plain(as_person: As, body: Any) -> None:
    assert (await as_person("bob").post("/v1/elevations", body)).status == 400


async def test_what_is_held_already_is_a_conflict(as_person: As) -> None:
    answer = await as_person("bob").post("/v1/elevations", {"scope": "notes:read", "reason": "x"})
    assert (answer.status, answer.json()["error"]) == (409, "you hold 'notes:read' already")


@requirement("AUT-8", "POL-7")
async def test_why_not_names_what_to_ask_for_to_those_who_may_know(as_person: As) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    refused = await bob.post("/v1/calls", WRITE)
    assert "notes:write" not in refused.body.decode()
    assert "changes" not in (await bob.post("/v1/why", {"tool": "desk.add"})).json()
    await olga.post("/v1/grants", {"person": "bob", "scope": "holdfast:explain"})
    told = (await bob.post("/v1/why", {"tool": "desk.add"})).json()
    assert told["changes"] == ["grant 'bob' 'notes:write'"]
