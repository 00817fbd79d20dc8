"""Is the OpenAPI document true?"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.model.errors import TABLE, Code
from holdfast.model.observation import Observation, Status
from holdfast.servers import chains, figures, jsonrpc, members, standing
from holdfast.servers.app import GOVERNED, PUBLIC, STREAMED
from holdfast.servers.openapi import document
from tests.requirements import requirement
from tests.servers.asgi import Client

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
GUIDE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
ROUTES = {
    (method, path.replace(":path}", "}"))
    for path, methods in [*GOVERNED.items(), *PUBLIC.items(), *STREAMED.items()]
    for method in methods
}

RULES = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "additionalProperties": False,
    "properties": {
        "openapi": {"const": "3.1.0"},
        "info": {"type": "object", "required": ["title", "version"]},
        "security": {"type": "array"},
        "paths": {
            "type": "object",
            "propertyNames": {"pattern": "^/"},
            "additionalProperties": {
                "type": "object",
                "propertyNames": {"enum": ["get", "post", "delete"]},
                "additionalProperties": {"$ref": "#/$defs/operation"},
            },
        },
        "components": {"type": "object", "required": ["schemas", "securitySchemes"]},
    },
    "$defs": {
        "operation": {
            "type": "object",
            "required": ["operationId", "summary", "responses"],
            "properties": {
                "parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}},
                "requestBody": {"type": "object", "required": ["content"]},
                "responses": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"pattern": "^[1-5][0-9]{2}$"},
                    "additionalProperties": {"type": "object", "required": ["description"]},
                },
            },
        },
        "parameter": {
            "type": "object",
            "required": ["name", "in", "schema"],
            "properties": {"in": {"enum": ["path", "query", "header"]}},
            "if": {"properties": {"in": {"const": "path"}}},
            "then": {"required": ["required"], "properties": {"required": {"const": True}}},
        },
    },
}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(found := node.get("$ref"), str):
            yield found
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


@requirement("NAM-3", "PRO-2")
def test_every_route_is_described_and_nothing_else() -> None:
    assert {(method.upper(), path) for path, method, _ in operations()} == ROUTES


def test_the_document_keeps_the_rules_of_openapi() -> None:
    jsonschema_rs.Draft202012Validator(RULES).validate(DOCUMENT)
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))


def test_every_part_of_a_path_is_a_parameter() -> None:
    for path, _, operation in operations():
        declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", path)), path


def test_every_schema_is_a_schema_and_every_reference_has_a_target() -> None:
    for schema in SCHEMAS.values():
        jsonschema_rs.meta.validate(schema)
    assert set(references(DOCUMENT)) == {f"#/components/schemas/{name}" for name in SCHEMAS}


@requirement("AUT-1")
def test_what_needs_no_credential_says_so_and_is_not_governed() -> None:
    public = {path for path, _, operation in operations() if operation.get("security") == []}
    assert public == set(PUBLIC)


@requirement("NAM-4")
def test_the_observation_has_every_member_it_can_have() -> None:
    described = SCHEMAS["Observation"]
    assert set(described["properties"]) == set(Observation.__slots__)
    empty = Observation(call_id="c", tool="a.b", status=Status.DONE)
    assert set(described["required"]) == set(empty.to_dict())


@requirement("VAL-1")
def test_the_codes_are_the_closed_set() -> None:
    assert SCHEMAS["Code"]["enum"] == list(Code)


@requirement("VAL-2")
def test_a_call_can_answer_every_status_of_the_code_table() -> None:
    responses = DOCUMENT["paths"]["/v1/calls"]["post"]["responses"]
    assert {str(entry.http) for entry in TABLE.values()} | {"200", "401", "413"} <= set(responses)


@pytest.mark.parametrize(
    ("name", "checked"),
    [
        ("Call", members.CALL),
        ("Decision", members.DECISION),
        ("Settlement", members.SETTLEMENT),
        ("Halt", members.HALT),
        ("Why", members.WHY),
        ("RuleWish", standing.RULE),
        ("Acceptance", standing.ACCEPTANCE),
        ("PlanWish", standing.PLAN),
        ("CostReport", figures.REPORT),
        ("RunWish", chains.RUN),
        ("ChainInput", chains.PLAN),
        ("Abandonment", chains.NOTED),
        ("ChainAcceptance", chains.NOTED),
    ],
)
def test_a_described_body_has_the_members_that_are_checked(name: str, checked: members.Members) -> None:
    assert set(SCHEMAS[name]["properties"]) == set(checked)
    assert set(SCHEMAS[name]["required"]) == {member for member, rule in checked.items() if rule.required}


def test_the_described_methods_are_those_there_are() -> None:
    assert SCHEMAS["RpcRequest"]["properties"]["method"]["enum"] == list(jsonrpc.METHODS)


async def test_the_document_is_served(client: Client) -> None:
    served = await client.get("/openapi.json")
    assert served.status == 200
    assert served.json() == DOCUMENT


def test_the_reference_page_names_the_same_routes() -> None:
    named = re.findall(r"^\| `([A-Z]+) (/\S*)` \|", GUIDE.read_text(), re.MULTILINE)
    assert set(named) == ROUTES
    assert len(named) == len(ROUTES)
