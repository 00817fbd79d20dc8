"""Can policies be tried on past calls over HTTP?"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from holdfast.servers import policy
from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.desk import Desk

As = Callable[[str], Client]
OPEN = '@id("open") permit (principal, action, resource);\n'
SHUT = OPEN + '@id("no") @reason("no") forbid (principal, action == Action::"desk.count", resource);\n'


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "policy_review": {"required": True, "days": 1}}


def fits(name: str, said: Any) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(said)
    return said


@requirement("POL-8", "NAM-3")
async def test_an_operator_tries_policies_and_is_told_what_flips(as_person: As, desk: Desk) -> None:
    ann, olga = as_person("ann"), as_person("olga")
    seen = (await ann.post("/v1/calls", {"tool": "desk.count", "arguments": {}})).json()
    body = fits("Candidate", {"files": {"a.cedar": SHUT}, "name": "next", "examples": 1, "accept": True})
    tried = await olga.post("/v1/policy/diff", body)
    assert tried.status == 200, tried.json()
    said = fits("Diff", tried.json())
    assert (said["flips"], said["accepted"]) == (1, True)
    [flip] = said["groups"][0]["examples"]
    assert (flip["call_id"], flip["after"]["policies"]) == (seen["call_id"], ["no"])
    assert (await ann.post("/v1/policy/diff", body)).status == 403


@requirement("POL-8")
async def test_what_cannot_be_tried_says_why(as_person: As, desk: Desk) -> None:
    olga = as_person("olga")
    neither = await olga.post("/v1/policy/diff", {})
    assert neither.status == 400
    assert "name a promoted 'version', or give 'files'" in neither.json()["message"]
    assert (await olga.post("/v1/policy/diff", {"files": {"a.cedar": OPEN}, "name": "No Good"})).status == 400
    assert (await olga.post("/v1/policy/diff", {"version": "x/0123456789ab"})).status == 404
    bad = await olga.post("/v1/policy/diff", {"files": {"a.cedar": "permit (principal"}})
    assert bad.status == 409
    assert "cannot be put in force" in bad.json()["error"]
    some = await olga.post("/v1/policy/diff", {"files": {"a.cedar": OPEN}, "tool": "x.*", "accept": True})
    assert some.status == 409


def test_the_described_body_has_the_members_that_are_checked() -> None:
    described = document()["components"]["schemas"]["Candidate"]
    assert set(described["properties"]) == set(policy.DIFF)
