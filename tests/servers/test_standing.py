"""Do rules and plans work over HTTP as they do elsewhere?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import PEOPLE
from tests.servers.desk import Desk
from tests.servers.test_operate import MAIL, fits

As = Callable[[str], Client]
RULE = {
    "tool": "desk.send",
    "principals": "ann/*",
    "arguments": {"to": {"domain": "example.com"}},
    "most": 1,
    "note": "our own people",
}
STEP = {"tool": "desk.send", "arguments": {"to": "x@example.com"}}
MARA = {"roles": ["operator"], "scopes": ["mail:*"]}


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": {**PEOPLE, "mara": MARA}},
    }


@requirement("APR-9", "NAM-3")
async def test_a_rule_is_proposed_by_an_operator_who_may_use_the_tool(as_person: As) -> None:
    assert (await as_person("ann").post("/v1/rules", RULE)).status == 403
    assert (await as_person("olga").post("/v1/rules", RULE)).status == 404


@requirement("APR-9", "NAM-3")
async def test_a_rule_goes_its_way_over_http(as_person: As, desk: Desk) -> None:
    ann, mara = as_person("ann"), as_person("mara")
    made = await mara.post("/v1/rules", RULE)
    rule = fits("Rule", made.json())
    assert (made.status, rule["state"], rule["says"]) == (
        202,
        "proposed",
        {"to": "an address at example.com"},
    )
    assert (await ann.post(f"/v1/rules/{rule['id']}/acceptance", {})).status == 403
    live = fits("Rule", (await mara.post(f"/v1/rules/{rule['id']}/acceptance", {"note": "fine"})).json())
    assert (live["state"], live["accepted_by"]) == ("live", ["mara"])
    done = (await ann.post("/v1/calls", MAIL)).json()
    assert (done["status"], done["grant"]["scope"], desk.sent) == (
        "done",
        f"rule:{rule['id']}",
        ["x@example.com"],
    )
    assert (await ann.post("/v1/calls", {**MAIL, "key": "m-2"})).status == 202
    [listed] = fits("Rules", (await mara.get("/v1/rules")).json())["rules"]
    assert (listed["state"], listed["used"]) == ("used up", 1)
    ended = fits("Rule", (await mara.send("DELETE", f"/v1/rules/{rule['id']}")).json())
    assert (ended["state"], ended["ended_by"]) == ("revoked", "mara")
    assert (await mara.send("DELETE", f"/v1/rules/{rule['id']}")).status == 409
    assert (await mara.get("/v1/rules/rul_0")).status == 404


@requirement("APR-9")
async def test_what_past_answers_suggest_is_told_with_its_proof(as_person: As, desk: Desk) -> None:
    ann, mara = as_person("ann"), as_person("mara")
    for n in range(3):
        mail = {"tool": "desk.send", "arguments": {"to": f"x{n}@example.com"}, "key": f"m-{n}"}
        held = (await ann.post("/v1/calls", mail)).json()
        await mara.post(f"/v1/approvals/{held['approval']['id']}/decision", {"decision": "approve"})
    said = fits("RuleProposals", (await mara.get("/v1/rules/proposals")).json())
    [one] = said["proposals"]
    assert (one["arguments"], len(one["proof"]["approved"])) == ({"to": {"domain": ["example.com"]}}, 3)
    assert (said["fatigue"]["asked"], said["fatigue"]["answered_quickly"]) == (3, 1.0)
    assert (await mara.get("/v1/rules/proposals?since=yesterday")).status == 400
    assert (await ann.get("/v1/rules/proposals")).status == 403


@requirement("APR-8", "NAM-3")
async def test_a_plan_goes_its_way_over_http(as_person: As, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    asked = await ann.post("/v1/plans", {"steps": [STEP], "task": "t"})
    planned = fits("Planned", asked.json())
    assert (asked.status, planned["status"]) == (202, "asked")
    await olga.post(f"/v1/approvals/{planned['approval']['id']}/decision", {"decision": "approve"})
    done = (await ann.post("/v1/calls", {**MAIL, "plan": planned["plan"]})).json()
    assert (done["status"], done["grant"]["scope"]) == ("done", f"plan:{planned['plan']}#1")
    [listed] = fits("Plans", (await ann.get("/v1/plans")).json())["plans"]
    assert (listed["state"], listed["steps"][0]["used"]) == ("used up", True)
    ended = fits("Plan", (await ann.send("DELETE", f"/v1/plans/{planned['plan']}")).json())
    assert ended["ended_by"] == "ann"
    assert (await as_person("bob").get(f"/v1/plans/{planned['plan']}")).status == 404


@requirement("APR-8", "NAM-3")
async def test_a_plan_with_a_step_that_would_be_refused_says_so_for_each(as_person: As) -> None:
    ann = as_person("ann")
    wrong = {"tool": "desk.send", "arguments": {"to": 7}}
    refused = await ann.post("/v1/plans", {"steps": [STEP, wrong]})
    said = fits("Planned", refused.json())
    assert (refused.status, "code" in said["steps"][0], said["steps"][1]["code"]) == (
        422,
        False,
        "TYPE_MISMATCH",
    )
    form = await ann.post("/v1/plans", {"steps": [STEP, {"tool": 1}, 7]})
    faults = {fault["path"] for fault in form.json()["field_errors"]}
    assert (form.status, faults) == (400, {"/steps/1/tool", "/steps/1/arguments", "/steps/2"})
    reads = await ann.post("/v1/plans", {"steps": [{"tool": "desk.count", "arguments": {}}]})
    assert (reads.status, reads.json()["status"]) == (200, "unneeded")
