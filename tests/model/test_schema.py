import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.canonical import fingerprint
from holdfast.model.fields import FieldError
from holdfast.model.schema import (
    Defaults,
    SchemaError,
    Sensitivity,
    apply_defaults,
    close,
    compile_schema,
    examine,
    redact,
    sensitive_paths,
)
from tests.requirements import requirement

STANDARD = json.loads(Path(__file__).with_name("json_schema_2020_12.json").read_text(encoding="utf-8"))

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "maximum": 500},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
        "note": {"type": "string", "maxLength": 5, "x-sensitivity": "pii"},
        "customer": {"$ref": "#/$defs/customer"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "default": []},
    },
    "required": ["amount"],
    "$defs": {
        "customer": {
            "type": "object",
            "properties": {
                "email": {"type": "string", "format": "email", "x-sensitivity": "pii"},
                "token": {"type": "string", "maxLength": 3, "x-sensitivity": "secret"},
                "locale": {"type": "string", "default": "en"},
            },
            "default": {},
        },
        "line": {
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "default": 1}},
            "required": ["sku"],
        },
    },
}


def only(schema: dict[str, Any], value: Any) -> tuple[str, FieldError]:
    (found,) = compile_schema(schema).violations(value)
    return found


# ---- the standard


@requirement("CON-5")
@pytest.mark.parametrize("case", STANDARD, ids=[case["about"] for case in STANDARD])
def test_the_standard_decides_what_is_valid(case: dict[str, Any]) -> None:
    assert examine(case["schema"]) == []
    validator = compile_schema(case["schema"])
    assert validator.is_valid(case["value"]) is case["valid"]
    assert (validator.violations(case["value"]) == ()) is case["valid"]


def test_the_table_of_the_standard_is_not_cut_short() -> None:
    assert len(STANDARD) >= 100


# ---- closing


@requirement("CON-5")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"properties": {"a": True}}, {"a": 1}),
        ({"type": "object"}, {}),
        ({"type": ["object", "null"], "properties": {"a": True}}, {"a": 1}),
        ({"properties": {"a": {"properties": {"b": {"properties": {"c": True}}}}}}, {"a": {"b": {"c": 1}}}),
        ({"items": {"properties": {"a": True}}}, [{"a": 1}]),
        ({"prefixItems": [{"properties": {"a": True}}]}, [{"a": 1}]),
        ({"patternProperties": {"^n_": {"properties": {"a": True}}}}, {"n_x": {"a": 1}}),
        ({"additionalProperties": {"properties": {"a": True}}}, {"any": {"a": 1}}),
        ({"allOf": [{"properties": {"a": True}}, {"properties": {"b": True}}]}, {"a": 1, "b": 1}),
        ({"properties": {"a": True}, "allOf": [{"properties": {"b": True}}]}, {"a": 1, "b": 1}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": True}}}}, {"a": 1}),
        (
            {"$ref": "#/$defs/x", "properties": {"b": True}, "$defs": {"x": {"properties": {"a": True}}}},
            {"a": 1, "b": 1},
        ),
        ({"anyOf": [{"properties": {"a": True}}, {"type": "null"}]}, {"a": 1}),
        ({"anyOf": [{"properties": {"a": True}}, {"properties": {"b": True}}]}, {"a": 1, "b": 1}),
        (
            {
                "oneOf": [
                    {"properties": {"k": {"const": 1}, "x": {"properties": {"p": True}}}, "required": ["k"]},
                    {"properties": {"k": {"const": 2}, "y": True}, "required": ["k"]},
                ]
            },
            {"k": 1, "x": {"p": 1}},
        ),
        (
            {
                "properties": {"k": True},
                "if": {"properties": {"k": {"const": 1}}},
                "then": {"properties": {"x": True}},
                "else": {"properties": {"y": True}},
            },
            {"k": 1, "x": 1},
        ),
        (
            {"properties": {"a": True}, "dependentSchemas": {"a": {"properties": {"b": True}}}},
            {"a": 1, "b": 1},
        ),
        ({"properties": {"v": True, "next": {"$ref": "#"}}}, {"v": 1, "next": {"v": 2, "next": {}}}),
        (
            {"$dynamicAnchor": "n", "properties": {"kids": {"items": {"$dynamicRef": "#n"}}}},
            {"kids": [{"kids": []}]},
        ),
        (
            # one definition, whole in one place and a part in another
            {
                "properties": {
                    "plain": {"$ref": "#/$defs/base"},
                    "more": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"extra": True}}]},
                },
                "$defs": {"base": {"properties": {"id": True}}},
            },
            {"plain": {"id": 1}, "more": {"id": 1, "extra": 1}},
        ),
    ],
)
def test_a_closed_schema_takes_what_is_declared_and_refuses_one_field_more(
    schema: dict[str, Any], value: Any
) -> None:
    before = copy.deepcopy(schema)
    closed = close(schema)
    assert schema == before
    assert examine(closed) == []
    open_, shut = compile_schema(schema), compile_schema(closed)
    assert open_.is_valid(value)
    assert shut.errors(value) == ()
    for spoiled in with_one_field_more(value):
        if open_.is_valid(spoiled) and not described_as_map(schema, spoiled):
            assert not shut.is_valid(spoiled), spoiled
    assert close(closed) == closed


def with_one_field_more(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [
            [*value[:i], spoiled, *value[i + 1 :]]
            for i, v in enumerate(value)
            for spoiled in with_one_field_more(v)
        ]
    if not isinstance(value, dict):
        return []
    below = [{**value, k: spoiled} for k, v in value.items() for spoiled in with_one_field_more(v)]
    return [{**value, "unknown_field": 1}, *below]


def described_as_map(schema: dict[str, Any], value: Any) -> bool:
    """The author said that any name is welcome."""
    return "additionalProperties" in schema and "unknown_field" in value


@requirement("CON-5")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": True}, "additionalProperties": True}, {"z": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"z": 1}),
        ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, {"z": 1}),
        ({"type": "object", "minProperties": 1}, {"z": 1}),
        ({"properties": {"a": True}, "unevaluatedProperties": True}, {"z": 1}),
        ({}, {"z": 1}),
        (
            {
                "properties": {"a": True},
                "not": {"properties": {"b": {"properties": {"c": True}}}, "required": ["b"]},
            },
            {},
        ),
        ({"contains": {"properties": {"a": True}}}, [{"a": 1, "z": 2}]),
        (
            {
                "allOf": [
                    {"properties": {"x": {"properties": {"a": True}}}},
                    {"properties": {"x": {"properties": {"b": True}}}},
                ]
            },
            {"x": {"a": 1, "b": 2}},
        ),
        (
            {"properties": {"self": {"allOf": [{"$ref": "#"}, {"properties": {"extra": True}}]}}},
            {"self": {"extra": 1}},
        ),
    ],
)
def test_closing_leaves_alone_what_the_author_said_or_would_mean_something_else(
    schema: dict[str, Any], value: Any
) -> None:
    assert compile_schema(schema).is_valid(value)
    assert compile_schema(close(schema)).is_valid(value)


names = st.sampled_from(["a", "b", "c"])


def object_schemas() -> st.SearchStrategy[dict[str, Any]]:
    leaf = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"type": "null"}])

    def grow(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        members = st.dictionaries(names, inner, min_size=1, max_size=2)
        return (
            st.builds(lambda p: {"type": "object", "properties": p}, members)
            | st.builds(lambda p, q: {"properties": p, "allOf": [q]}, members, inner)
            | st.builds(lambda p, q: {"allOf": [p, q]}, inner, inner)
            | st.builds(lambda p: {"anyOf": [p, {"type": "null"}]}, inner)
            | st.builds(lambda p: {"type": "array", "items": p}, inner)
        )

    return st.recursive(leaf, grow, max_leaves=8)


json_values = st.recursive(
    st.none() | st.integers(0, 3) | st.just("s"),
    lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


def declared_only(schema: dict[str, Any], value: Any) -> Any:
    """The value without the fields that no part of the schema declares."""
    members: dict[str, list[dict[str, Any]]] = {}
    items: list[dict[str, Any]] = []
    parts = [schema]
    while parts:
        part = parts.pop()
        parts += part.get("allOf", []) + part.get("anyOf", [])
        items += [part["items"]] if "items" in part else []
        for name, member in part.get("properties", {}).items():
            members.setdefault(name, []).append(member)
    if isinstance(value, dict) and members:
        return {k: declared_only({"allOf": members[k]}, v) for k, v in value.items() if k in members}
    if isinstance(value, list) and items:
        return [declared_only({"allOf": items}, item) for item in value]
    return value


@requirement("CON-5")
@given(object_schemas(), json_values)
def test_a_value_with_only_declared_fields_stays_as_valid_as_it_was(
    schema: dict[str, Any], value: Any
) -> None:
    value = declared_only(schema, value)
    assert compile_schema(close(schema)).is_valid(value) == compile_schema(schema).is_valid(value)


# ---- errors


@requirement("CON-5")
def test_nothing_is_coerced() -> None:
    kind, error = only({"properties": {"n": {"type": "integer"}}}, {"n": "3"})
    assert kind == "TYPE_MISMATCH"
    assert (error.path, error.expected, error.actual) == ("/n", "integer", '"3"')


@requirement("LIF-3")
def test_several_errors_are_reported_together_with_their_paths() -> None:
    found = compile_schema(close(ORDER)).violations(
        {
            "amount": 900,
            "currency": "GBP",
            "lines": [{"sku": "a"}, {"skuu": 7}],
            "customer": {"email": "nobody"},
        }
    )
    assert {(kind, error.path) for kind, error in found} == {
        ("OUT_OF_BOUNDS", "/amount"),
        ("OUT_OF_BOUNDS", "/currency"),
        ("STRUCTURAL_VIOLATION", "/lines/1/sku"),
        ("STRUCTURAL_VIOLATION", "/lines/1/skuu"),
        ("OUT_OF_BOUNDS", "/customer/email"),
    }


@requirement("VAL-1")
@pytest.mark.parametrize(
    ("schema", "value", "kind", "path", "expected"),
    [
        ({"required": ["q"]}, {}, "STRUCTURAL_VIOLATION", "/q", "property 'q'"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "STRUCTURAL_VIOLATION", "/b", "property 'b'"),
        (
            {"propertyNames": {"maxLength": 1}},
            {"ab": 1},
            "STRUCTURAL_VIOLATION",
            "/ab",
            "a name that is at most 1 characters long",
        ),
        (
            {"not": {"type": "integer"}},
            1,
            "STRUCTURAL_VIOLATION",
            "",
            "something other than what 'not' describes",
        ),
        ({"properties": {"a": False}}, {"a": 1}, "STRUCTURAL_VIOLATION", "/a", "absent"),
        (
            {"prefixItems": [True], "unevaluatedItems": False},
            [1, 2],
            "STRUCTURAL_VIOLATION",
            "",
            "an array without further items",
        ),
        (
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            "STRUCTURAL_VIOLATION",
            "",
            "a match for exactly one of the alternatives",
        ),
        ({"type": ["string", "null"]}, 1, "TYPE_MISMATCH", "", "string or null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "TYPE_MISMATCH", "", "string or null"),
        ({"enum": ["a", 2]}, "b", "OUT_OF_BOUNDS", "", 'one of "a", 2'),
        ({"const": {"x": 1}}, 1, "OUT_OF_BOUNDS", "", '{"x": 1}'),
        ({"minimum": 3}, 1, "OUT_OF_BOUNDS", "", "at least 3"),
        ({"exclusiveMaximum": 3}, 3, "OUT_OF_BOUNDS", "", "less than 3"),
        ({"multipleOf": 3}, 4, "OUT_OF_BOUNDS", "", "a multiple of 3"),
        ({"maxLength": 3}, "abcd", "OUT_OF_BOUNDS", "", "at most 3 characters long"),
        ({"pattern": "^a"}, "b", "OUT_OF_BOUNDS", "", "text matching '^a'"),
        ({"format": "date"}, "b", "OUT_OF_BOUNDS", "", "text in format 'date'"),
        ({"minItems": 1}, [], "OUT_OF_BOUNDS", "", "an array of at least 1 items"),
        ({"uniqueItems": True}, [1, 1], "OUT_OF_BOUNDS", "", "an array without equal items"),
        (
            {"contains": {"const": 1}},
            [2],
            "OUT_OF_BOUNDS",
            "",
            "an array with the items that 'contains' asks for",
        ),
        ({"maxProperties": 1}, {"a": 1, "b": 1}, "OUT_OF_BOUNDS", "", "an object with at most 1 properties"),
    ],
)
def test_each_kind_of_error_has_its_code_and_says_what_is_expected(
    schema: dict[str, Any], value: Any, kind: str, path: str, expected: str
) -> None:
    found, error = only(schema, value)
    assert (found, error.path, error.expected) == (kind, path, expected)


@requirement("CON-5")
def test_an_unknown_field_is_refused_with_the_nearest_declared_one() -> None:
    _, error = only(close(ORDER), {"amount": 1, "curency": "EUR"})
    assert error.message == "'/curency' is not declared; did you mean 'currency'?"
    _, error = only(close(ORDER), {"amount": 1, "zzz": "EUR"})
    assert "declared are amount, currency" in error.message


def test_a_discriminated_alternative_is_explained_by_the_branch_that_is_meant() -> None:
    card = {
        "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
        "required": ["kind", "number"],
    }
    bank = {
        "properties": {"kind": {"const": "bank"}, "iban": {"type": "string"}},
        "required": ["kind", "iban"],
    }
    schema = close({"type": "object", "properties": {"pay": {"type": "object", "oneOf": [card, bank]}}})
    found = compile_schema(schema).violations({"pay": {"kind": "bank", "iban": 7}})
    assert [(kind, error.path) for kind, error in found] == [("TYPE_MISMATCH", "/pay/iban")]
    _, error = only(schema, {"pay": {"kind": "bank", "iban": "x", "number": "y"}})
    assert error.path == "/pay/number"
    assert "another alternative" in error.message


@requirement("CON-6")
def test_an_error_never_shows_a_marked_value() -> None:
    value = {"amount": 1, "note": "hunter2hunter2", "customer": {"email": "hunter2", "token": "hunter2"}}
    errors = compile_schema(close(ORDER)).errors(value)
    assert {error.path for error in errors} == {"/note", "/customer/email", "/customer/token"}
    assert {error.actual for error in errors} == {"string"}
    assert "hunter2" not in repr(errors)


def test_a_long_value_is_shortened_and_a_container_is_only_counted() -> None:
    _, error = only({"maxLength": 3}, "x" * 500)
    assert len(error.actual) <= 80
    _, error = only({"type": "string"}, {"password": "hunter2"})
    assert error.actual == "object with 1 properties"


def test_what_is_not_json_is_an_error_and_not_a_crash() -> None:
    schema = {"additionalProperties": {"type": "string"}}
    for odd in ({1: 2}, {"a": object()}, {"a": b"x"}):
        assert [kind for kind, _ in compile_schema(schema).violations(odd)] == ["STRUCTURAL_VIOLATION"]


def test_no_more_errors_are_listed_than_anybody_repairs() -> None:
    assert len(compile_schema({"items": {"type": "integer"}}).errors(["x"] * 5000)) == 50


def test_a_schema_that_cannot_be_compiled_says_why() -> None:
    for schema in (
        {"type": "strin"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/x"},
        {"pattern": "("},
    ):
        with pytest.raises(SchemaError, match="not a usable schema"):
            compile_schema(schema)


# ---- defaults


@requirement("CON-5")
def test_defaults_are_filled_in_at_every_depth_and_the_input_is_untouched() -> None:
    given_ = {"amount": 5, "lines": [{"sku": "a"}, {"sku": "b", "count": 3}], "customer": {}}
    before = copy.deepcopy(given_)
    assert apply_defaults(ORDER, given_) == {
        "amount": 5,
        "currency": "EUR",
        "lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 3}],
        "customer": {"locale": "en"},
    }
    assert given_ == before


@requirement("CON-5")
def test_a_default_that_is_an_object_is_itself_filled_in_and_never_shared() -> None:
    defaults = Defaults(ORDER)
    one, other = defaults.apply({"amount": 1}), defaults.apply({"amount": 1})
    assert one["customer"] == {"locale": "en"}
    one["lines"].append("spoiled")
    assert other["lines"] == [] == defaults.apply({"amount": 1})["lines"]


def test_defaults_are_never_taken_from_alternatives() -> None:
    branch = {"properties": {"a": {"default": 1}}}
    for keyword in ("anyOf", "oneOf"):
        assert apply_defaults({keyword: [branch]}, {}) == {}
    assert apply_defaults({"if": branch, "then": branch, "else": branch, "not": branch}, {}) == {}
    assert apply_defaults({"allOf": [branch]}, {}) == {"a": 1}


def test_a_schema_without_defaults_costs_nothing() -> None:
    defaults = Defaults({"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}})
    value: dict[str, Any] = {"a": [{}]}
    assert defaults.empty
    assert defaults.apply(value) is value


arguments = st.fixed_dictionaries(
    {"amount": st.integers(1, 500)},
    optional={
        "currency": st.sampled_from(["EUR", "USD"]),
        "customer": st.fixed_dictionaries({}, optional={"locale": st.sampled_from(["en", "de"])}),
        "lines": st.lists(
            st.fixed_dictionaries({"sku": st.text(max_size=3)}, optional={"count": st.integers(1, 3)}),
            max_size=3,
        ),
    },
)


@requirement("CON-5")
@given(arguments)
def test_filling_in_twice_is_filling_in_once(value: dict[str, Any]) -> None:
    once = apply_defaults(ORDER, value)
    assert apply_defaults(ORDER, once) == once
    assert compile_schema(close(ORDER)).is_valid(once)


@requirement("CON-5", "IDM-2")
@given(arguments, st.data())
def test_a_default_given_and_a_default_omitted_have_one_fingerprint(
    value: dict[str, Any], data: st.DataObject
) -> None:
    full = apply_defaults(ORDER, value)
    omitted = {
        name: member
        for name, member in full.items()
        if name == "amount"
        or member != {"currency": "EUR", "lines": [], "customer": {"locale": "en"}}[name]
        or data.draw(st.booleans())
    }
    assert fingerprint("c", apply_defaults(ORDER, omitted)) == fingerprint("c", full)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"next": {"$ref": "#", "default": {}}}}, "fills itself for ever"),
        ({"properties": {"a": {"type": "integer", "default": "x"}}}, "does not fit its own schema"),
        ({"properties": {"a": {"type": "string", "default": None}}}, "does not fit its own schema"),
    ],
)
def test_a_default_that_cannot_be_applied_is_refused_at_admission(
    schema: dict[str, Any], reason: str
) -> None:
    (found,) = examine(schema)
    assert reason in found


# ---- sensitivity

MARKED: dict[str, Any] = {
    "properties": {
        "name": {"type": "string", "x-sensitivity": "pii"},
        "login": {"$ref": "#/$defs/login"},
        "people": {"items": {"$ref": "#"}},
        "headers": {
            "additionalProperties": {"type": "string", "x-sensitivity": "secret"},
            "properties": {"accept": True},
        },
        "either": {
            "anyOf": [
                {"type": "string", "x-sensitivity": "pii"},
                {"type": "integer", "x-sensitivity": "secret"},
            ]
        },
        "plain": {"type": "string"},
    },
    "$defs": {"login": {"properties": {"user": {}, "password": {"x-sensitivity": "credential"}}}},
}


@requirement("CON-6")
def test_marked_fields_are_replaced_by_their_label_at_every_depth() -> None:
    inner = {"name": "Ada", "login": {"user": "ada", "password": {"old": 1}}, "plain": "x"}
    value = {
        **inner,
        "people": [inner, {"people": [inner]}],
        "headers": {"accept": "a", "x-key": "k"},
        "either": 3,
    }
    hidden = {"name": "[pii]", "login": {"user": "ada", "password": "[credential]"}, "plain": "x"}
    before = copy.deepcopy(value)
    assert redact(MARKED, value) == {
        **hidden,
        "people": [hidden, {"people": [hidden]}],
        "headers": {"accept": "a", "x-key": "[secret]"},
        "either": "[secret]",
    }
    assert value == before


@requirement("CON-6")
def test_marked_fields_are_listed_with_their_labels() -> None:
    assert sensitive_paths(MARKED) == (
        ("/either", "secret"),
        ("/headers/*", "secret"),
        ("/login/password", "credential"),
        ("/name", "pii"),
    )


@requirement("CON-6")
def test_a_field_inside_a_marked_field_is_marked() -> None:
    marks = Sensitivity(MARKED)
    assert marks.label(["people", 0, "login", "password", "old"]) == "credential"
    assert marks.label(["people", 0, "login", "user"]) is None
    assert marks.label([]) is None


@requirement("CON-6")
def test_an_unknown_mark_is_refused_at_admission() -> None:
    assert examine({"properties": {"a": {"x-sensitivity": "private"}}}) == [
        "'x-sensitivity' at '/properties/a' is 'private'; use pii, secret, credential"
    ]


def test_a_value_without_marks_is_not_copied() -> None:
    value = {"a": [1]}
    assert redact({"properties": {"a": {"items": {}}}}, value) is value
