import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog.compatibility import Faces, compare, negotiate, refuse_lesser_bump, required_bump
from holdfast.model.schema import close, compile_schema
from tests.requirements import requirement

INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "format": "email", "description": "who gets it"},
        "count": {"type": "integer", "minimum": 1, "maximum": 50, "default": 1},
        "mode": {"enum": ["fast", "safe"]},
        "address": {"$ref": "#/$defs/address"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}},
    },
    "required": ["to"],
    "$defs": {
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}
    },
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "state": {"enum": ["sent", "queued"]},
        "cost": {"type": "number", "minimum": 0},
    },
    "required": ["id", "state"],
}


def changed(schema: dict[str, Any], path: str, change: Any) -> dict[str, Any]:
    """The schema with one place set; None takes it away."""
    schema = copy.deepcopy(schema)
    at: Any = schema
    *way, last = path.split("/")
    for step in way:
        at = at[step]
    if change is None:
        del at[last]
    else:
        at[last] = change
    return schema


def found(old: Faces, new: Faces) -> tuple[str, dict[str, str]]:
    comparison = compare(old, new)
    return comparison.level, {change.path: change.what for change in comparison.changes}


INPUT_CHANGES: list[tuple[str, Any, str, str, str]] = [
    ("properties/extra", {"type": "string"}, "minor", "/input/extra", "added"),
    ("properties/to/description", "the recipient", "patch", "/input", "reads differently, means the same"),
    ("title", "Send", "patch", "/input", "reads differently, means the same"),
    ("required", ["to", "mode"], "major", "/input/mode", "is now required"),
    ("required", [], "minor", "/input/to", "is no longer required"),
    ("properties/mode", None, "major", "/input/mode", "removed"),
    ("properties/count/type", "string", "major", "/input/count", "retyped from integer to string"),
    ("properties/count/type", "number", "minor", "/input/count", "retyped from integer to number"),
    ("properties/count/maximum", 10, "major", "/input/count", "tightened: maximum from 50 to 10"),
    ("properties/count/maximum", 100, "minor", "/input/count", "relaxed: maximum from 50 to 100"),
    ("properties/count/minimum", None, "minor", "/input/count", "relaxed: minimum from 1 to null"),
    ("properties/count/default", 2, "major", "/input/count", "default changed from 1 to 2"),
    ("properties/count/default", None, "major", "/input/count", "default 1 removed"),
    ("properties/mode/default", "fast", "minor", "/input/mode", 'default "fast" added'),
    ("properties/mode/enum", ["fast"], "major", "/input/mode", 'enum lost "safe"'),
    ("properties/mode/enum", ["fast", "safe", "slow"], "minor", "/input/mode", 'enum gained "slow"'),
    ("properties/mode/enum", ["safe", "fast"], "minor", "/input", "changed without breaking anybody"),
    ("properties/to/format", "uri", "major", "/input/to", 'changed: format from "email" to "uri"'),
    ("properties/to/pattern", "@ours", "major", "/input/to", 'tightened: pattern from null to "@ours"'),
    ("properties/tags/items/maxLength", 5, "major", "/input/tags/*", "tightened: maxLength from 20 to 5"),
    ("$defs/address/properties/zip", None, "major", "/input/address/zip", "removed"),
    ("$defs/address/required", ["city"], "major", "/input/address/city", "is now required"),
    ("$defs/address/properties/street", {"type": "string"}, "minor", "/input/address/street", "added"),
    ("properties/to/x-sensitivity", "pii", "minor", "/input/to", "sensitivity changed from 'None' to 'pii'"),
    ("not", {"required": ["mode", "tags"]}, "major", "/input", "cannot be proven compatible"),
]


@requirement("REG-5")
@pytest.mark.parametrize(("path", "change", "level", "where", "what"), INPUT_CHANGES)
@pytest.mark.parametrize("shut", [True, False], ids=["closed", "open"])
def test_a_change_of_the_input_has_its_level_and_its_path(
    path: str, change: Any, level: str, where: str, what: str, shut: bool
) -> None:
    old, new = INPUT, changed(INPUT, path, change)
    if shut:
        old, new = close(old), close(new)
    assert found(Faces(old), Faces(new)) == (level, {where: what})


@requirement("REG-5")
def test_a_new_required_field_breaks_and_a_renamed_one_too() -> None:
    grown = changed(changed(INPUT, "properties/why", {"type": "string"}), "required", ["to", "why"])
    assert found(Faces(close(INPUT)), Faces(close(grown))) == ("major", {"/input/why": "added as required"})
    renamed = changed(
        changed(INPUT, "properties/mode", None), "properties/style", INPUT["properties"]["mode"]
    )
    assert found(Faces(close(INPUT)), Faces(close(renamed))) == (
        "major",
        {"/input/mode": "renamed to 'style'"},
    )


OUTPUT_CHANGES: list[tuple[str, Any, str, str, str]] = [
    ("properties/note", {"type": "string"}, "minor", "/output/note", "added"),
    ("properties/cost", None, "major", "/output/cost", "removed"),
    ("required", ["id"], "major", "/output/state", "is no longer always present"),
    ("required", ["id", "state", "cost"], "minor", "/output/cost", "is now always present"),
    ("properties/state/enum", ["sent"], "major", "/output/state", 'enum lost "queued"'),
    ("properties/state/enum", ["sent", "queued", "held"], "major", "/output/state", 'enum gained "held"'),
    ("properties/state", {"type": "string"}, "major", "/output/state", "is no longer an enum"),
    ("properties/cost/type", "integer", "minor", "/output/cost", "retyped from number to integer"),
    ("properties/id/type", ["string", "null"], "major", "/output/id", "retyped from string to null/string"),
    ("properties/cost/minimum", None, "major", "/output/cost", "relaxed: minimum from 0 to null"),
    ("properties/cost/maximum", 9, "minor", "/output/cost", "tightened: maximum from null to 9"),
    ("description", "what was sent", "patch", "/output", "reads differently, means the same"),
]


@requirement("REG-5")
@pytest.mark.parametrize(("path", "change", "level", "where", "what"), OUTPUT_CHANGES)
@pytest.mark.parametrize("shut", [True, False], ids=["closed", "open"])
def test_a_change_of_the_output_has_its_level_and_its_path(
    path: str, change: Any, level: str, where: str, what: str, shut: bool
) -> None:
    old, new = OUTPUT, changed(OUTPUT, path, change)
    if shut:
        old, new = close(old), close(new)
    got, changes = found(Faces(INPUT, old), Faces(INPUT, new))
    assert (got, changes[where]) == (level, what)


@requirement("REG-5")
def test_closing_an_open_input_breaks_and_opening_a_closed_one_does_not() -> None:
    assert compare(Faces(INPUT), Faces(close(INPUT))).level == "major"
    assert compare(Faces(close(INPUT)), Faces(INPUT)).level == "minor"
    assert compare(Faces(INPUT, OUTPUT), Faces(INPUT, close(OUTPUT))).level == "minor"


@requirement("REG-5")
def test_an_output_schema_that_comes_is_minor_and_one_that_goes_is_major() -> None:
    assert compare(Faces(INPUT), Faces(INPUT, OUTPUT)).level == "minor"
    assert compare(Faces(INPUT, OUTPUT), Faces(INPUT)).level == "major"
    assert compare(Faces(INPUT, {}), Faces(INPUT, None)).level == "none"


@requirement("REG-5")
def test_the_same_schema_in_another_order_is_no_change() -> None:
    reordered = dict(reversed(INPUT.items()))
    assert compare(Faces(INPUT, OUTPUT), Faces(reordered, OUTPUT)).changes == ()


@requirement("REG-5")
def test_moving_a_field_into_a_part_or_a_definition_is_not_a_removal() -> None:
    old = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    new = {
        "type": "object",
        "properties": {"b": {"$ref": "#/$defs/text"}},
        "allOf": [{"properties": {"a": {"type": "integer"}}}],
        "$defs": {"text": {"type": "string"}},
    }
    assert compare(Faces(close(old)), Faces(close(new))).level in ("patch", "minor")


@requirement("REG-5")
def test_what_cannot_be_proven_is_breaking() -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    grown = changed(tree, "properties/name", {"type": "string"})
    level, changes = found(Faces(close(tree)), Faces(close(grown)))
    assert level == "major"
    assert changes["/input"] == "cannot be proven compatible"


@requirement("REG-5")
@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("1.0.0", "2.0.0", 0),
        ("1.0.0", "1.1.0", 2),
        ("1.0.0", "1.0.1", 3),
        ("1.0.0", "1.0.0", 3),
        ("1.1.0", "1.0.0", 3),
        ("0.1.0", "0.2.0", 0),
        ("0.1.0", "0.1.1", 2),
        ("0.9.0", "1.0.0", 0),
        ("2.0.0-rc.1", "2.0.0", 0),
        ("2.0.0-rc.1", "2.0.0-rc.1", 3),
    ],
)
def test_a_lesser_bump_is_refused_naming_each_path(old: str, new: str, refused: int) -> None:
    after = changed(changed(INPUT, "properties/count/maximum", 10), "properties/mode", None)
    after = changed(after, "properties/extra", {"type": "string"})
    reasons = refuse_lesser_bump(old, new, compare(Faces(close(INPUT)), Faces(close(after))))
    assert len(reasons) == refused
    if refused == 2:
        assert {reason.split("'")[1] for reason in reasons} == {"/input/count", "/input/mode"}
        assert all("needs a major version" in reason for reason in reasons)


@requirement("REG-5")
def test_a_wording_change_needs_a_patch_version_and_no_change_needs_none() -> None:
    reworded = Faces(changed(INPUT, "title", "x"))
    assert required_bump(Faces(INPUT), reworded) == "patch"
    assert refuse_lesser_bump("1.0.0", "1.0.1", compare(Faces(INPUT), reworded)) == []
    assert len(refuse_lesser_bump("1.0.0", "1.0.0", compare(Faces(INPUT), reworded))) == 1
    assert refuse_lesser_bump("1.0.0", "1.0.0", compare(Faces(INPUT), Faces(INPUT))) == []


@requirement("REG-5")
@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        (INPUT, "FULL"),
        ({"properties": {"to": {"type": "string", "format": "email"}}}, "FULL"),
        (changed(INPUT, "properties/count/maximum", 10), "FULL"),
        (changed(INPUT, "properties/count/maximum", 1000), "PARTIAL"),
        (changed(INPUT, "properties/colour", {"type": "string"}), "PARTIAL"),
        (changed(INPUT, "properties/to", {"type": "integer"}), "INCOMPATIBLE"),
        ({"properties": {"mode": {"const": "fast"}}}, "INCOMPATIBLE"),
        (
            {
                "properties": {"to": {"format": "email", "type": "string"}, "colour": {}},
                "required": ["colour"],
            },
            "INCOMPATIBLE",
        ),
    ],
)
def test_negotiation_says_how_much_of_what_is_expected_is_offered(
    expected: dict[str, Any], verdict: str
) -> None:
    assert negotiate(expected, close(INPUT)) == verdict


ways = st.sampled_from([(path, change) for path, change, *_ in INPUT_CHANGES])
arguments = st.fixed_dictionaries(
    {"to": st.sampled_from(["ada@example.com", "ada@ours", "http://x.y"])},
    optional={
        "count": st.sampled_from([1, 0, 11, 60, 5.5, "1"]),
        "mode": st.sampled_from(["fast", "safe", "slow"]),
        "tags": st.lists(st.sampled_from(["a", "a" * 10, "a" * 30]), max_size=2),
        "address": st.fixed_dictionaries({}, optional={"city": st.just("x"), "zip": st.just("y")}),
    },
)


@requirement("REG-5")
@given(st.lists(ways, max_size=3), arguments)
def test_what_was_accepted_is_still_accepted_unless_the_change_is_major(
    steps: list[tuple[str, Any]], value: dict[str, Any]
) -> None:
    new = INPUT
    for path, change in steps:
        try:
            new = changed(new, path, change)
        except KeyError:  # an earlier change took that place away
            continue
    old, new = close(INPUT), close(new)
    if compare(Faces(old), Faces(new)).level != "major" and compile_schema(old).is_valid(value):
        assert compile_schema(new).is_valid(value)
