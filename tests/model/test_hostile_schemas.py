"""Schemas written to hang, fetch or explode. What they cost is CPU time of this process, not wall time."""

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.schema import SchemaError, close, compile_schema, examine
from holdfast.model.schema.pattern import Hostile, weigh
from tests.requirements import requirement

MOST_CPU_S = 0.25


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
        for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "integer"}}}


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


HOSTILE: dict[str, tuple[Any, str]] = {
    "nested quantifiers": ({"pattern": "^(a+)+$"}, "repeats a repetition"),
    "overlapping alternatives": ({"patternProperties": {"^(a|aa)+$": True}}, "repeats a repetition"),
    "backreference": ({"pattern": r"^(a*)*\1$"}, "repeats a repetition"),
    "lookahead": ({"pattern": r"^(?=.*a)(?=.*b).*$"}, "looks ahead or behind"),
    "a pattern that unfolds": ({"pattern": "((a{1,99}){1,99}){1,99}"}, "too large an automaton"),
    "many unicode classes": (
        {"properties": {f"p{i}": {"pattern": r"^\p{L}{20}$"} for i in range(900)}},
        "too large an automaton together",
    ),
    "anyOf doubling": (doubling("anyOf", 30), "alternatives multiply"),
    "oneOf doubling": (doubling("oneOf", 900), "alternatives multiply"),
    "allOf doubling": (doubling("allOf", 30), "alternatives multiply"),
    "anyOf doubling, written out": (nested(12, lambda s: {"anyOf": [s, s]}), "more than"),
    "a reference to itself": ({"$ref": "#"}, "leads back to itself"),
    "a cycle of references": (
        {
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
        },
        "leads back to itself",
    ),
    "a remote reference": ({"$ref": "http://127.0.0.1:9/schema.json"}, "leaves the document"),
    "a file reference": ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "leaves the document"),
    "a remote dynamic reference": ({"$dynamicRef": "https://example.invalid/#node"}, "leaves the document"),
    "a remote metaschema": ({"$schema": "http://127.0.0.1:9/meta"}, "is supported"),
    "an embedded document": ({"$defs": {"a": {"$id": "http://127.0.0.1:9/a"}}}, "document in the document"),
    "ten thousand properties": ({"properties": {f"p{i}": {} for i in range(10_000)}}, "more than"),
    "ten thousand definitions": (
        {"$defs": {f"p{i}": {"type": "string"} for i in range(10_000)}},
        "more than",
    ),
    "too many subschemas": (
        {"properties": {f"p{i}": {"items": nested(8, lambda s: {"items": s})} for i in range(900)}},
        "more than",
    ),
    "deep nesting": (nested(20_000, lambda s: {"items": s}), "nested deeper"),
    "deep nesting in an enum": ({"enum": [nested(20_000, lambda s: [s])]}, "nested deeper"),
    "a huge enum": ({"enum": list(range(100_000))}, "more than"),
    "a long chain of references": (
        {
            "$ref": "#/$defs/d0",
            "$defs": {**{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(900)}, "d900": {}},
        },
        "references lead through",
    ),
    "not a schema": ({"type": "strin", "minimum": "x"}, "is not JSON Schema 2020-12"),
    "another draft": (
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        "only 'https://json-schema.org/draft/2020-12",
    ),
    "an older keyword": ({"dependencies": {"a": {"$ref": "#"}}}, "of an older draft"),
    "a reference to nowhere": ({"$ref": "#/$defs/none"}, "where there is no schema"),
    "a reference into a value": (
        {"$ref": "#/default", "default": {"pattern": "(a+)+"}},
        "where there is no schema",
    ),
    "a list": ([], "must be an object"),
}


BY_ITSELF_CHEAP = [n for n, (schema, _) in HOSTILE.items() if schema and n != "many unicode classes"]
"""Bounded by the compiler too; of the exception only examination sees the sum."""


def cpu_of(work: Callable[[], object]) -> float:
    """This thread's CPU for it, the least of three: a busy neighbour makes a core slower, never faster."""

    def once() -> float:
        started = time.thread_time()
        work()
        return time.thread_time() - started

    return min(once() for _ in range(3))


@requirement("VAL-4")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_refused_cheaply(name: str) -> None:
    schema, reason = HOSTILE[name]
    reasons = examine(schema)
    assert any(reason in each for each in reasons), reasons
    assert cpu_of(lambda: examine(schema)) < MOST_CPU_S


@requirement("VAL-4")
@pytest.mark.parametrize("name", BY_ITSELF_CHEAP)
def test_even_unexamined_a_hostile_schema_is_compiled_or_refused_cheaply(name: str) -> None:
    schema, _ = HOSTILE[name]

    def compiled() -> None:
        with contextlib.suppress(SchemaError):
            compile_schema(schema)

    assert cpu_of(compiled) < MOST_CPU_S


@requirement("VAL-4")
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema", "$id"])
def test_nothing_is_fetched_over_the_network(keyword: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in ({keyword: address}, {"properties": {"a": {keyword: address}}}):
            examine(schema)
            with contextlib.suppress(SchemaError):
                compile_schema(schema).violations({"a": 1})
        with pytest.raises(BlockingIOError):  # nobody called
            listener.accept()


@requirement("VAL-4")
def test_nothing_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}')
    schema = {"$ref": file.as_uri()}
    assert "leaves the document" in examine(schema)[0]
    with pytest.raises(SchemaError):
        compile_schema(schema)


@requirement("VAL-4")
def test_all_reasons_are_given_at_once() -> None:
    reasons = examine(
        {"$schema": "x", "$ref": "http://a/b", "pattern": "(a+)+", "type": "strin", "x-sensitivity": "no"}
    )
    assert len(reasons) == 5


def expression(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"op": "or", "left": leaf}
    return leaf


@requirement("VAL-4")
def test_a_recursive_schema_with_alternatives_is_admitted_and_its_errors_cannot_explode() -> None:
    def operation(name: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"op": {"const": name}, "left": {"$ref": "#"}},
            "required": ["op", "left"],
        }

    schema = close({"oneOf": [operation("and"), operation("or"), {"type": "integer"}]})
    assert examine(schema) == []
    validator = compile_schema(schema)
    assert validator.is_valid(expression(30, 1))
    assert len(validator.violations(expression(30, "x"))) == 1
    assert cpu_of(lambda: validator.violations(expression(30, "x"))) < MOST_CPU_S
    ((kind, error),) = validator.violations(expression(2, "x"))
    assert (kind, error.path) == ("TYPE_MISMATCH", "/left/left")


@requirement("VAL-4")
def test_the_widest_schema_that_is_admitted_lists_its_errors_cheaply() -> None:
    schema = {"items": doubling("anyOf", 12)} | {"$defs": doubling("anyOf", 12)["$defs"]}
    schema["items"] = {"$ref": "#/$defs/d0"}
    assert examine(schema) == []
    validator = compile_schema(schema)
    assert len(validator.violations(["x"] * 5_000)) == 1
    assert len(validator.violations(["x"])) == 1
    assert cpu_of(lambda: validator.violations(["x"] * 5_000)) < MOST_CPU_S


@requirement("VAL-4")
@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]+(?:-[a-z0-9]+)*$",
        r"^(\w+\.)+\w+$",
        r"^[^\s@]+@[^\s@]+\.[^\s@]+$",
        r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        r"^#?([a-f0-9]{6}|[a-f0-9]{3})$",
        r"^\+?[1-9]\d{1,14}$",
        r"^.{1,255}$",
        r"^\p{L}[\p{L}\p{M}' -]*$",
        r"^(?:\/|(?:\/[\w-]+)+)$",
        r"^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$",
    ],
)
def test_ordinary_patterns_are_admitted(pattern: str) -> None:
    assert examine({"properties": {"a": {"type": "string", "pattern": pattern}}}) == []


@requirement("VAL-4")
@pytest.mark.parametrize(
    "pattern",
    [
        r"([a-z]+)*$",
        r"(a*)*",
        r"((a+))+",
        r"(\s*\w+)*",
        r"(x+x+)+y",
        r"(.*a)+",
        r"(a|a)*",
        "a" * 513,
        r"(?<!a)b",
        r"(.)\1",
        r"a{999}{999}",
        "(" * 30 + ")" * 30,
    ],
)
def test_hostile_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(Hostile):
        weigh(pattern)
