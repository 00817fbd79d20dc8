"""Can a tenant read its log over HTTP, and prove it to somebody else?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.gateway import Gateway
from holdfast.records import checkpoint
from holdfast.records.chain import record_hash
from holdfast.records.merkle import is_included, leaf_hash
from holdfast.records.note import Verifier
from holdfast.servers.app import build
from holdfast.servers.openapi import document
from tests.audit.world import CONFIG, Place
from tests.requirements import requirement
from tests.servers.asgi import Client

PEOPLE = {
    "ana": {"roles": ["operator"], "scopes": ["**"], "trust": 60},
    "aud": {"scopes": ["holdfast:audit"]},
    "eve": {"scopes": ["things:read"]},
    "zoe": {"scopes": ["**"], "tenant": "acme", "trust": 60},
}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    config = {**CONFIG, "store": f"sqlite:///{tmp_path}/holdfast.db", "auth": {"people": PEOPLE}}
    async with Gateway.open(config) as opened:
        yield opened


def client(gateway: Gateway, name: str) -> Client:
    return Client(build(gateway), {"host": "127.0.0.1:8080", "x-holdfast-user": name})


async def made(gateway: Gateway, name: str, thing: str = "t") -> str:
    answer = await client(gateway, name).post(
        "/v1/calls", {"tool": "test.look", "arguments": {"thing": thing}}
    )
    assert answer.status == 200
    return str(answer.json()["call_id"])


def fits(name: str, said: Any) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(said)
    return said


@requirement("NAM-3", "AUT-6")
async def test_the_records_of_a_call_are_shown_to_its_tenant_only(gateway: Gateway) -> None:
    mine, theirs = await made(gateway, "ana"), await made(gateway, "zoe")
    for name, call, count in (("ana", mine, 2), ("aud", mine, 2), ("zoe", mine, 0), ("zoe", theirs, 2)):
        answer = await client(gateway, name).get(f"/v1/audit?call={call}")
        assert answer.status == 200
        page = fits("AuditPage", answer.json())
        assert len(page["records"]) == count
    everything = (await client(gateway, "zoe").get("/v1/audit")).json()["records"]
    assert {record["call_id"] for record in everything} == {theirs}


@requirement("NAM-3", "AUT-6")
async def test_whoever_may_not_read_the_log_is_told_what_it_takes(gateway: Gateway) -> None:
    call = await made(gateway, "ana")
    for path in ("/v1/audit", f"/v1/audit?call={call}", "/v1/audit/proof/w:1"):
        answer = await client(gateway, "eve").get(path)
        assert answer.status == 403
        assert "holdfast:audit" in answer.json()["error"]


@requirement("NAM-3")
async def test_pages_follow_each_other_without_gap_or_overlap(gateway: Gateway) -> None:
    calls = [await made(gateway, "ana", f"t-{n}") for n in range(4)]
    seen: list[str] = []
    path = "/v1/audit?limit=3"
    while path:
        page = fits("AuditPage", (await client(gateway, "ana").get(path)).json())
        seen += [record["record"] for record in page["records"]]
        path = f"/v1/audit?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert len(seen) == len(set(seen)) == 8
    two = (await client(gateway, "ana").get(f"/v1/audit?call={calls[1]}&limit=1")).json()
    rest = (await client(gateway, "ana").get(f"/v1/audit?call={calls[1]}&cursor={two['next_cursor']}")).json()
    assert [r["kind"] for r in (*two["records"], *rest["records"])] == ["intent", "outcome"]
    assert (await client(gateway, "ana").get("/v1/audit?since=2999-01-01")).json()["records"] == []


@requirement("NAM-3")
@pytest.mark.parametrize("query", ["limit=0", "limit=x", "since=soon", "cursor=%21", "cursor=abc", "of=me"])
async def test_a_parameter_that_cannot_be_used_is_named(gateway: Gateway, query: str) -> None:
    answer = await client(gateway, "ana").get(f"/v1/audit?{query}")
    assert answer.status == 400
    assert query.partition("=")[0] in answer.json()["message"]


@requirement("NAM-3", "AUD-1")
async def test_a_proof_is_all_that_somebody_else_needs(gateway: Gateway, tmp_path: Path) -> None:
    call = await made(gateway, "zoe")
    await made(gateway, "ana")
    (first, _) = (await client(gateway, "zoe").get(f"/v1/audit?call={call}")).json()["records"]
    early = await client(gateway, "zoe").get(f"/v1/audit/proof/{first['record']}")
    assert fits("AuditProof", early.json())["size"] >= 2
    await gateway._auditing.tidy(sign_now=True)
    proof = fits(
        "AuditProof", (await client(gateway, "zoe").get(f"/v1/audit/proof/{first['record']}")).json()
    )
    key = Verifier.parse(str(Place(tmp_path).key))
    signed = checkpoint.opened(proof["checkpoint"], key)
    record = {**proof["record"], "prev": bytes.fromhex(proof["record"]["prev"])}
    hashed = bytes.fromhex(record.pop("hash"))
    assert record_hash(**record) == hashed
    path = [bytes.fromhex(step) for step in proof["path"]]
    assert is_included(leaf_hash(hashed), proof["leaf"], signed.size, path, signed.root)
    for name, wanted in (("ana", first["record"]), ("zoe", "w_none:1"), ("zoe", "nonsense")):
        assert (await client(gateway, name).get(f"/v1/audit/proof/{wanted}")).status == 404
