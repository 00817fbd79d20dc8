"""How do people decide, settle, cancel and halt over HTTP?"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import PETRAS_SECRET
from tests.servers.desk import Desk

As = Callable[[str], Client]
MAIL = {"tool": "desk.send", "arguments": {"to": "x@example.com"}, "key": "m-1"}


def fits(name: str, said: Any) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(said)
    return said


async def hold(client: Client) -> dict[str, Any]:
    answer = await client.post("/v1/calls", MAIL)
    assert (answer.status, answer.json()["status"]) == (202, "held")
    held: dict[str, Any] = answer.json()
    return held


@requirement("NAM-3")
async def test_a_held_call_runs_once_another_person_approved_it(as_person: As, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    held = await hold(ann)
    (asked,) = fits("Approvals", (await olga.get("/v1/approvals")).json())["approvals"]
    assert (asked["id"], asked["call_id"], asked["answer"]) == (
        held["approval"]["id"],
        held["call_id"],
        "PENDING",
    )
    assert (await olga.get(f"/v1/approvals/{asked['id']}")).json() == asked
    answered = await olga.post(
        f"/v1/approvals/{asked['id']}/decision", {"decision": "approve", "note": "fine"}
    )
    assert (answered.status, fits("Approval", answered.json())["answer"]) == (200, "APPROVED")
    assert desk.sent == []
    assert (await ann.post("/v1/calls", MAIL)).status == 200
    assert desk.sent == ["x@example.com"]


@requirement("NAM-3")
async def test_a_denied_call_stays_denied(as_person: As, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    path = f"/v1/approvals/{(await hold(ann))['approval']['id']}/decision"
    assert (await olga.post(path, {"decision": "deny"})).json()["answer"] == "DENIED"
    answer = await ann.post("/v1/calls", MAIL)
    assert (answer.status, answer.json()["code"]) == (403, "APPROVAL_DENIED")
    assert desk.sent == []


@requirement("NAM-3")
@pytest.mark.parametrize("who", ["ann", "bob"])
async def test_who_has_not_the_role_may_not_decide(as_person: As, desk: Desk, who: str) -> None:
    path = f"/v1/approvals/{(await hold(as_person('ann')))['approval']['id']}/decision"
    refused = await as_person(who).post(path, {"decision": "approve"})
    assert refused.status == 403
    fits("TransportError", refused.json())
    assert (await as_person("ann").post("/v1/calls", MAIL)).status == 202


@pytest.mark.parametrize(
    "body", [{}, {"decision": "yes"}, {"decision": "approve", "notes": "x"}, {"decision": True}]
)
async def test_a_decision_must_be_plain(as_person: As, body: Any, observed: Callable[[Any], Any]) -> None:
    path = f"/v1/approvals/{(await hold(as_person('ann')))['approval']['id']}/decision"
    answer = await as_person("olga").post(path, body)
    assert answer.status == 400
    assert observed(answer.json())["code"] == "STRUCTURAL_VIOLATION"
    assert (await as_person("ann").post("/v1/calls", MAIL)).status == 202


async def test_an_approval_nobody_knows_is_404(as_person: As) -> None:
    olga = as_person("olga")
    assert (await olga.get("/v1/approvals/nothing")).status == 404
    assert (await olga.post("/v1/approvals/nothing/decision", {"decision": "deny"})).status == 404


async def test_a_stranger_sees_no_questions(as_person: As) -> None:
    held = await hold(as_person("ann"))
    assert (await as_person("bob").get("/v1/approvals")).json() == {"approvals": []}
    assert (await as_person("bob").get(f"/v1/approvals/{held['approval']['id']}")).status == 404


@requirement("PPL-4")
@pytest.mark.parametrize(("outcome", "status"), [("committed", "done"), ("no-effect", "failed")])
async def test_an_operator_settles_an_uncertain_call(
    as_person: As, observed: Callable[[Any], Any], outcome: str, status: str
) -> None:
    body = {"tool": "desk.add_and_break", "arguments": {"text": "x"}, "key": "k"}
    unknown = (await as_person("ann").post("/v1/calls", body)).json()
    path = f"/v1/calls/{unknown['call_id']}/settle"
    said = {"outcome": outcome, "note": "looked at the desk"}
    assert (await as_person("ann").post(path, said)).status == 403
    settled = await as_person("olga").post(path, said)
    assert settled.status == 200
    assert observed(settled.json())["status"] == status
    again = await as_person("olga").post(path, said)
    assert again.status == 409
    fits("TransportError", again.json())


async def test_a_settlement_says_why(as_person: As) -> None:
    answer = await as_person("olga").post("/v1/calls/call_0/settle", {"outcome": "committed"})
    assert (answer.status, answer.json()["field_errors"][0]["path"]) == (400, "/note")


@requirement("PPL-4")
async def test_what_is_done_cannot_be_cancelled(as_person: As) -> None:
    ann = as_person("ann")
    done = (await ann.post("/v1/calls", {"tool": "desk.add", "arguments": {"text": "x"}, "key": "k"})).json()
    late = await ann.post(f"/v1/calls/{done['call_id']}/cancel", {})
    assert (late.status, fits("Cancellation", late.json())["result"]) == (409, "too late")
    assert (await as_person("bob").post(f"/v1/calls/{done['call_id']}/cancel", {})).status == 404


@requirement("PPL-4")
async def test_a_held_call_is_cancelled(as_person: As, desk: Desk) -> None:
    ann = as_person("ann")
    held = await hold(ann)
    stopped = await ann.post(f"/v1/calls/{held['call_id']}/cancel", {})
    assert (stopped.status, fits("Cancellation", stopped.json())["result"]) == (200, "cancelled")


@requirement("PPL-4")
@pytest.mark.parametrize("target", ["all", "desk", "desk.add", "ann/local"])
async def test_an_operator_halts_and_resumes(as_person: As, desk: Desk, target: str) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    body = {"tool": "desk.add", "arguments": {"text": "x"}, "key": "k"}
    assert (await ann.post("/v1/halts", {"target": target})).status == 403
    halted = await olga.post("/v1/halts", {"target": target, "note": "strange"})
    assert (halted.status, fits("Halted", halted.json())["halted"]) == (200, True)
    assert fits("Halts", (await olga.get("/v1/halts")).json())["halts"].keys() == {target}
    assert (await ann.post("/v1/calls", body)).status == 503
    assert desk.notes == []
    assert (await ann.send("DELETE", f"/v1/halts/{target}")).status == 403
    resumed = await olga.send("DELETE", f"/v1/halts/{target}")
    assert (resumed.status, fits("Halted", resumed.json())["halted"]) == (200, False)
    assert (await ann.post("/v1/calls", body)).status == 200
    assert (await olga.send("DELETE", f"/v1/halts/{target}")).status == 404


@requirement("AUT-1")
@pytest.mark.parametrize(("secret", "status"), [(None, 403), ("wrong", 401), (PETRAS_SECRET, 200)])
async def test_a_role_that_needs_a_secret_is_had_only_with_it(
    as_person: As, secret: str | None, status: int
) -> None:
    headers = {} if secret is None else {"X-Holdfast-Approver-Secret": secret}
    answer = await as_person("petra").post("/v1/halts", {"target": "all"}, headers)
    assert answer.status == status
    assert PETRAS_SECRET not in answer.body.decode()


async def test_a_halt_of_what_does_not_exist_is_404(as_person: As) -> None:
    assert (await as_person("olga").post("/v1/halts", {"target": "dsk"})).status == 404


@requirement("LIF-2")
async def test_a_halt_does_not_tell_of_tools_one_may_not_see(as_person: As) -> None:
    for target in ("desk.add", "desk.count", "ann/local", "bob/local"):
        assert (await as_person("olga").post("/v1/halts", {"target": target})).status == 200
    assert (await as_person("bob").get("/v1/halts")).json()["halts"].keys() == {"desk.count", "bob/local"}
