"""Do approvals, plans and releases work over HTTP as they do elsewhere?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import PEOPLE, app, as_person, desk, gateway, short
from tests.servers.desk import Desk
from tests.servers.test_operate import MAIL, fits

__all__ = ["app", "as_person", "desk", "gateway", "short"]


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": PEOPLE},
        "limits": {"budgets": [{"per": "session", "kind": "write", "calls": 1}]},
    }


As = Callable[[str], Client]


@requirement("NAM-3", "APR-4")
async def test_the_packet_and_its_answer_are_looked_up_by_id(as_person: As, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    held = (await ann.post("/v1/calls", MAIL)).json()
    path = f"/v1/approvals/{held['approval']['id']}"
    asked = fits("Approval", (await olga.get(path)).json())
    assert asked["packet"]["arguments"] == {"to": "x@example.com"}
    assert asked["packet"]["if_rejected"].startswith("nothing runs")
    said = fits("Approval", (await olga.post(f"{path}/decision", {"decision": "approve"})).json())
    assert said["token"]
    after = fits("Approval", (await olga.get(path)).json())
    assert (after["answer"], after["votes"][0]["person"], "token" in after) == ("APPROVED", "olga", False)
    forged = await ann.post("/v1/calls", {**MAIL, "approval_token": said["token"] + "x"})
    assert (forged.status, forged.json()["code"], desk.sent) == (403, "APPROVAL_DENIED", [])
    good = await ann.post("/v1/calls", {**MAIL, "approval_token": said["token"]})
    assert (good.status, desk.sent) == (200, ["x@example.com"])


@requirement("NAM-3", "LIF-3")
async def test_a_caller_polls_what_the_gateway_releases(as_person: As, gateway: Gateway, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    held = (await ann.post("/v1/calls", {**MAIL, "release": "gateway"})).json()
    await olga.post(f"/v1/approvals/{held['approval']['id']}/decision", {"decision": "approve"})
    while gateway._house._releasing:
        await next(iter(gateway._house._releasing))
    found = (await ann.get(f"/v1/calls/{held['call_id']}")).json()
    assert (found["status"], desk.sent) == ("done", ["x@example.com"])
    wrong = await ann.post("/v1/calls", {**MAIL, "key": "m-2", "release": "somebody"})
    assert (wrong.status, wrong.json()["field_errors"][0]["path"]) == (400, "/release")


@requirement("NAM-3", "APR-6")
async def test_a_plan_token_is_carried_in_the_body(as_person: As) -> None:
    ann = as_person("ann")
    add = {"tool": "desk.add", "arguments": {"text": "hello"}}
    plan = (await ann.post("/v1/calls", {**add, "preview": True})).json()["preview"]["plan_token"]
    other = {**add, "arguments": {"text": "bye"}, "key": "n-1", "plan_token": plan}
    stale = await ann.post("/v1/calls", other)
    assert (stale.status, stale.json()["code"]) == (412, "STALE_STATE")
    assert (await ann.post("/v1/calls", {**add, "key": "n-2", "plan_token": plan})).status == 200


@requirement("NAM-3", "POL-4")
async def test_an_exhausted_budget_is_429_without_retry_after(as_person: As) -> None:
    add = {"tool": "desk.add", "arguments": {"text": "hello"}, "session": "s-1"}
    answers = [await as_person("ann").post("/v1/calls", {**add, "key": f"n-{n}"}) for n in range(2)]
    assert [a.status for a in answers] == [200, 429]
    assert answers[1].json()["code"] == "BUDGET_EXHAUSTED"
    assert "retry-after" not in answers[1].headers
