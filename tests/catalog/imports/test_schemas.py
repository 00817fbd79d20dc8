"""Is what an upstream would take never refused here, and what would harm us never compiled?"""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.catalog.imports.schemas import enforceable, enforceable_output
from holdfast.model.schema import Defaults, SchemaError, compile_schema, examine
from tests.catalog.imports.descriptors import SERVERS, real, take, tool, versions
from tests.catalog.imports.wild import DRAFT_7, Wild
from tests.requirements import requirement


def holds(schema: dict[str, Any], value: Any) -> bool:
    """Whether the gateway would take this value: defaults are filled in first."""
    made = enforceable(schema)
    assert examine(made) == []
    return bool(compile_schema(made).is_valid(Defaults(made).apply(value)))


def arguments(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def defined(place: dict[str, Any], keyword: str = "$defs", /, **definitions: Any) -> dict[str, Any]:
    """A schema of one argument `a`, which may refer to these."""
    return {**arguments(a=place), keyword: definitions}


NUMBER = {"type": "integer"}
ONE = {"default": 1}


@requirement("CON-8")
@pytest.mark.parametrize("server", SERVERS)
def test_the_public_servers_schemas_can_all_be_enforced(server: str) -> None:
    for each in real(server):
        assert examine(enforceable(each["inputSchema"])) == []
        if "outputSchema" in each:
            assert examine(enforceable_output(each["outputSchema"])) == []


@requirement("CON-5", "CON-8")
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({}, {"a": 1}, None),
        ({"$schema": DRAFT_7, **arguments(a={"type": "integer"})}, {"a": 1}, {"a": "1"}),
        ({"$schema": "draft-07", **arguments(a={"type": "integer"})}, {"a": 1}, {"a": "1"}),
        ({"$schema": 7, **arguments(a={"type": "integer"})}, {"a": 1}, {"a": "1"}),
        (arguments(a={"minimum": 0, "exclusiveMinimum": True}), {"a": 1}, {"a": 0}),
        (arguments(a={"minimum": 0, "exclusiveMinimum": False}), {"a": 0}, {"a": -1}),
        (arguments(a={"items": [{}], "additionalItems": False}), {"a": ["x"]}, {"a": ["x", 1]}),
        ({**arguments(a={}, b={}), "dependencies": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
        ({"dependencies": {"a": {"required": ["b"]}}}, {"b": 1}, {"a": 1}),
        (arguments(a={"type": "string", "nullable": True}), {"a": None}, {"a": 1}),
        (arguments(a={"type": "string", "enum": ["x"], "nullable": True}), {"a": None}, {"a": "y"}),
        (defined({"$ref": "#/$defs/A", "nullable": True}, A=NUMBER), {"a": None}, {"a": ""}),
        (defined({"$ref": "#/definitions/A"}, "definitions", A=NUMBER), {"a": 1}, {"a": ""}),
        ({"$id": "urn:x", **defined({"$ref": "urn:x#/$defs/A"}, A=NUMBER)}, {"a": 1}, {"a": ""}),
        (arguments(a={"items": {"$ref": "#/properties/b"}}, b=NUMBER), {"a": [1]}, {"a": [""]}),
        (arguments(a={"type": "file"}), {"a": 3}, None),
        (arguments(a={"type": "string", "required": True}), {}, {"a": 1}),
        (arguments(a={"type": ["string", "string"]}), {"a": ""}, {"a": 1}),
        ({**arguments(a={}), "required": ["a", "a"]}, {"a": 1}, {}),
        (arguments(a={"enum": []}), {"a": 1}, None),
        (arguments(a={"description": 7, "title": None, "type": "string"}), {"a": ""}, {"a": 1}),
        (arguments(a="string"), {"a": 1}, None),
        ({"type": "object", "properties": None, "required": None}, {"a": 1}, None),
        ({"type": ["object", "null"]}, {"a": 1}, None),
        (arguments(a={"type": "integer", "maximum": 2**64 - 1, "format": "uint64"}), {"a": 7}, {"a": "7"}),
        (arguments(a={"pattern": "^(?!x)y"}), {"a": "x"}, None),
        (arguments(a={"pattern": "^(a)\\1$"}), {"a": "b"}, None),
        (arguments(a={"pattern": "^[a-z]+$"}), {"a": "b"}, {"a": "B"}),
        (arguments(a={"pattern": "["}), {"a": "b"}, None),
        (arguments(a={"$ref": "#/$defs/lost"}), {"a": "b"}, None),
        ({"additionalProperties": False, **arguments(a={})}, {"a": 1}, {"b": 1}),
        (arguments(a={"type": "object"}), {"a": {"anything": 1}, "more": 2}, {"a": 1}),
    ],
)
def test_sloppy_and_older_schemas_mean_what_their_authors_meant(
    schema: dict[str, Any], good: dict[str, Any], bad: dict[str, Any] | None
) -> None:
    assert holds(schema, good)
    assert bad is None or not holds(schema, bad)


@requirement("CON-8")
@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("date-time", "2030-01-01T00:00:00"),
        ("uri", "http://localhost/a b"),
        ("email", "Ann <ann@example.test>"),
        ("uuid", "00000000000000000000000000000000"),
        ("a-format-of-their-own", "x"),
    ],
)
def test_a_format_is_judged_by_the_upstream_alone(form: str, value: str) -> None:
    assert holds(arguments(a={"type": "string", "format": form}), {"a": value})


@requirement("CON-8")
@pytest.mark.parametrize(
    "schema",
    [
        arguments(a={"not": {"type": "string", "format": "email"}}),
        arguments(a={"oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
        arguments(a={"if": {"format": "email"}, "then": {"maxLength": 3}}),
        arguments(a={"not": {"const": None}}),
        arguments(a={"not": {"const": 7, "nullable": True}}),
        {"$schema": DRAFT_7, "unevaluatedProperties": False},
        {"$schema": DRAFT_7, "$defs": {"A": {}}, **arguments(a={"$ref": "#/$defs/A", "maxLength": 1})},
        arguments(a={"not": {"type": None}}),
        defined({"not": {"$ref": "#/$defs/Mail"}}, Mail={"format": "email"}),
        defined({"oneOf": [{"$ref": "#/$defs/X"}, {"type": "string"}]}, X={"format": "ipv4"}),
        {"patternProperties": {"^(?=a)": {}}, "additionalProperties": False, "type": "object"},
        {"allOf": [{"properties": {"a": {"format": "x"}}}], "unevaluatedProperties": False},
    ],
)
def test_leaving_something_out_never_makes_another_part_stricter(schema: dict[str, Any]) -> None:
    assert holds(schema, {"a": "plain text"})


@requirement("CON-5")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (arguments(a={"type": "integer", "default": "many"}), {}),
        (arguments(a={"type": "string", "default": None}), {}),
        (arguments(a={"enum": ["x"], "default": "y"}), {}),
        (arguments(a={"allOf": [{"default": 7}, {"type": "string"}]}), {}),
        ({**arguments(a=arguments(b=ONE)), "anyOf": [arguments(a={"maxProperties": 0})]}, {"a": {}}),
        ({**arguments(a=ONE, b={}), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}),
        ({**arguments(a={"default": 1}), "maxProperties": 1}, {"b": 1}),
        ({**arguments(a={"default": 1}, b={}), "dependentRequired": {"a": ["b"]}}, {}),
        ({**arguments(a={"default": 1}), "not": {"required": ["a"]}}, {}),
        ({**arguments(a={"default": 1}), "anyOf": [{"additionalProperties": False}]}, {}),
        ({**arguments(a={"default": 1}), "if": {"required": ["a"]}, "then": {"required": ["b"]}}, {}),
    ],
)
def test_a_default_never_makes_a_call_unfit(schema: dict[str, Any], value: dict[str, Any]) -> None:
    assert holds(schema, value)


@requirement("CON-5")
def test_a_default_that_fits_is_filled_in_before_the_fingerprint() -> None:
    made = enforceable(
        arguments(a={"type": "integer", "default": 3}, b={"anyOf": [{"type": "null"}], "default": None})
    )
    assert Defaults(made).apply({}) == {"a": 3, "b": None}


@requirement("CON-5")
def test_nothing_is_coerced_and_what_the_upstream_closes_is_closed() -> None:
    schema = {**arguments(a={"type": "integer"}), "additionalProperties": False}
    assert not holds(schema, {"a": "3"})
    assert not holds(schema, {"b": 3})


DOUBLING = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(20)}
HOSTILE = [
    arguments(a={"$ref": "https://example.test/schema.json"}),
    arguments(a={"$ref": "file:///etc/passwd"}),
    arguments(a={"$ref": "other.json#/x"}),
    arguments(a={"$dynamicRef": "https://example.test/x"}),
    arguments(a={"pattern": "(a+)+$"}),
    arguments(a={"patternProperties": {"(.*a)*b": {}}}),
    arguments(a={"pattern": "(?=x)(a+)+$"}),
    arguments(a={"pattern": "a{9999}{9999}"}),
    {"$ref": "#"},
    {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
    {"$ref": "#/$defs/d0", "$defs": {**DOUBLING, "d20": {}}},
    arguments(**{f"p{i}": {} for i in range(1_500)}),
    {"type": "string"},
]


@requirement("CON-8", "REG-2")
@pytest.mark.parametrize("schema", HOSTILE)
def test_a_schema_that_fetches_or_explodes_is_refused_and_the_tool_reported(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        enforceable(schema)
    taken = take(tool("hostile", inputSchema=schema), tool())
    assert versions(taken, "hostile") == []
    assert versions(taken) == ["1.0.0"]
    assert any("hostile" in report for report in taken.reports)


def test_results_need_not_be_objects() -> None:
    assert enforceable_output({"type": "array", "items": {"type": "integer"}})["type"] == "array"
    assert enforceable_output({}) == {}


@requirement("CON-8")
def test_marks_of_an_upstream_hide_nothing_from_approvers() -> None:
    made = enforceable(arguments(a={"type": "string", "x-sensitivity": "secret"}))
    assert "x-sensitivity" not in made["properties"]["a"]


@requirement("CON-8")
@settings(max_examples=400)
@given(st.integers(0, 2**32))
def test_what_the_upstreams_own_validator_takes_is_taken(seed: int) -> None:
    wild = Wild(seed)
    schema = wild.document()
    made = enforceable(schema)
    here, defaults = compile_schema(made), Defaults(made)
    draft = jsonschema_rs.Draft7Validator if "$schema" in schema else jsonschema_rs.Draft202012Validator
    for formats in (True, False):  # some upstreams enforce them, some do not
        patterns = jsonschema_rs.FancyRegexOptions()
        upstream = draft(schema, validate_formats=formats, offline=True, pattern_options=patterns)
        for value in [wild.arguments() for _ in range(6)]:
            if upstream.is_valid(value):
                assert here.is_valid(defaults.apply(value))
