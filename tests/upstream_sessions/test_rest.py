"""Sessions at upstreams over HTTP: callers see and end their own, operators everybody's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.servers.app import build
from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.upstream_sessions.world import World, opened

PEOPLE = {"ada": {"trust": 90}, "bob": {"trust": 90}, "olga": {"roles": ["operator"]}}


class Desk:
    def __init__(self, world: World) -> None:
        self.world, self.app = world, build(world.gateway)

    def client(self, name: str) -> Client:
        return Client(self.app, {"host": "127.0.0.1:8080", "x-holdfast-user": name})

    async def call(self, tool: str, key: str, **arguments: Any) -> dict[str, Any]:
        body = {"tool": f"till.{tool}", "arguments": arguments, "key": key}
        said = (await self.client("ada").post("/v1/calls", body)).json()
        return dict(fits("Observation", said))

    async def begun(self) -> str:
        return str((await self.call("begin", "begin"))["data"]["tx"])

    async def committed(self) -> str:
        tx = await self.begun()
        await self.call("add", "one", tx=tx, name="tea", amount=3)
        await self.call("commit", "commit", tx=tx)
        return tx


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened("sqlite", tmp_path, config={"auth": {"mode": "local", "people": PEOPLE}}) as world:
        yield Desk(world)


def fits(name: str, said: Any) -> Any:
    """What was said, if the published schema of that name says the same."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(said)
    return said


def shown(answer: Answer, status: int = 200, name: str = "UpstreamSessionShown") -> dict[str, Any]:
    assert answer.status == status, answer.body
    return dict(fits(name, answer.json()))


@requirement("EXE-8", "PRO-2")
async def test_a_session_is_shown_with_what_was_done_in_it_and_never_by_its_handle(desk: Desk) -> None:
    tx = await desk.committed()
    answer = await desk.client("ada").get(f"/v1/sessions/{tx}")
    said = shown(answer)
    assert (said["id"], said["state"], said["begun_by"]) == (tx, "COMMITTED", "ada/local")
    assert [(one["tool"], one["undone_by"]) for one in said["steps"]] == [("till.add", "till.remove")]
    assert b"transaction-1" not in answer.body


@requirement("EXE-8", "AUT-6")
async def test_callers_see_their_own_sessions_and_operators_all(desk: Desk) -> None:
    tx = await desk.begun()
    for name, seen in (("ada", [tx]), ("bob", []), ("olga", [tx])):
        listed = await desk.client(name).get("/v1/sessions")
        assert [one["id"] for one in fits("UpstreamSessions", listed.json())["sessions"]] == seen
    for path in (f"/v1/sessions/{tx}", f"/v1/sessions/{tx}/rollback"):
        method = "POST" if path.endswith("back") else "GET"
        assert (await desk.client("bob").send(method, path)).status == 404
    assert desk.world.till.open


@requirement("EXE-8")
async def test_a_session_is_rolled_back_once_however_often_that_is_asked(desk: Desk) -> None:
    tx = await desk.begun()
    for _ in range(2):
        said = shown(await desk.client("ada").send("POST", f"/v1/sessions/{tx}/rollback"))
        assert said["state"] == "ROLLED_BACK"
    assert [tool for tool, _ in desk.world.till.heard] == ["rollback"]
    committed = await desk.call("begin", "other")
    await desk.call("commit", "commit", tx=committed["data"]["tx"])
    late = await desk.client("ada").send("POST", f"/v1/sessions/{committed['data']['tx']}/rollback")
    assert late.status == 409


@requirement("EXE-8")
async def test_what_was_committed_is_taken_back(desk: Desk) -> None:
    tx = await desk.committed()
    said = shown(await desk.client("ada").post(f"/v1/sessions/{tx}/undo", {}), 200, "UpstreamSessionUndone")
    assert said["state"] == "UNDONE"
    assert [(one["tool"], one["status"]) for one in said["undone"]] == [("till.remove", "done")]
    assert desk.world.till.entries == {}
    assert (await desk.client("ada").post(f"/v1/sessions/{tx}/undo", {})).status == 409


@requirement("EXE-8")
async def test_only_operators_settle_a_session(desk: Desk) -> None:
    tx = await desk.begun()
    desk.world.till.breaks["rollback"] = ConnectionError("the line is dead")
    await desk.call("rollback", "back", tx=tx)
    ended = {"outcome": "rolled-back", "note": "looked"}
    assert (await desk.client("ada").post(f"/v1/sessions/{tx}/settle", ended)).status == 403
    said = shown(await desk.client("olga").post(f"/v1/sessions/{tx}/settle", ended))
    assert (said["state"], said["why"]) == ("ROLLED_BACK", "settled by 'olga': looked")
