"""May this schema be admitted? All reasons against it at once.

Everything here is bounded, and nothing is fetched: what a schema costs is decided before it is compiled.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs

from holdfast.model import strict_json
from holdfast.model.fields import pointer
from holdfast.model.schema.defaults import Defaults
from holdfast.model.schema.fanout import fanout
from holdfast.model.schema.name import known_by
from holdfast.model.schema.pattern import MAX_WEIGHT, Hostile, weigh
from holdfast.model.schema.sensitivity import LABELS
from holdfast.model.schema.tree import REFERENCES, SchemaError, Tree
from holdfast.model.schema.validation import EMAIL, PATTERNS, compile_schema
from holdfast.model.schema.wording import shorten

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_WIDTH = 4_096
"""Alternatives inside alternatives; listing the errors of more takes longer than a caller waits."""
MAX_CHAIN = 64
"""References and alternatives at one place; nobody reads more."""
MAX_REASONS = 50

# Two levels of JSON per subschema (`properties`, the name), and some for what stands in `enum` or `default`.
_TEXT = strict_json.Limits(max_bytes=512 << 10, max_depth=80, max_string=64 << 10, max_keys=20_000)
_META = jsonschema_rs.Draft202012Validator({"$ref": DIALECT}, offline=True)


REMEMBERED = 8192
_EXAMINED: dict[bytes, tuple[str, ...]] = {}


def examine(schema: Any) -> list[str]:
    """Why the schema is refused; empty when it may be compiled. Remembered: many ask about the same."""
    name = known_by(schema)
    if name is None:
        return _examine(schema)
    found = _EXAMINED.get(name)
    if found is None:
        if len(_EXAMINED) >= REMEMBERED:
            _EXAMINED.clear()
        found = _EXAMINED[name] = tuple(_examine(schema))
    return list(found)


def vouch(schema: Any) -> None:
    """This very schema was examined before, by another process, and is good."""
    name = known_by(schema)
    if name is not None and len(_EXAMINED) < REMEMBERED:
        _EXAMINED.setdefault(name, ())


def _examine(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return ["a schema must be an object"]
    try:
        strict_json.check(schema, _TEXT)
        tree = Tree.of(schema)
    except strict_json.ParseError as error:
        return [f"schema at '{error.path}': {error.message}"]
    except SchemaError as error:
        return [str(error)]
    cheap = (*_dialect(tree), *_meta(schema), *_references(tree), *_patterns(tree), *_marks(tree))
    reasons = list(cheap)[:MAX_REASONS]
    return reasons or _shape(tree) or _compiled(schema)


def _dialect(tree: Tree) -> Iterator[str]:
    for place, schema in tree.dicts():
        said = schema.get("$schema", DIALECT)
        if said not in (DIALECT, DIALECT + "#"):
            yield f"'$schema' at '{place}' says '{said}'; only '{DIALECT}' is supported"
        if place and "$id" in schema:
            yield f"'$id' at '{place}' makes a document in the document; use $defs and '#/$defs/...'"
        if "dependencies" in schema:  # the engine still evaluates it, the standard no longer names it
            yield f"'dependencies' at '{place}' is of an older draft; use dependentRequired/Schemas"


def _meta(schema: dict[str, Any]) -> Iterator[str]:
    for error in islice(_META.iter_errors(schema), MAX_REASONS):
        yield f"'{pointer(error.instance_path)}' is not JSON Schema 2020-12: {shorten(error.message, 200)}"


def _references(tree: Tree) -> Iterator[str]:
    for keyword, reference, place in tree.dangling:
        if reference.startswith("#"):
            yield f"'{keyword}' at '{place}' points to '{shorten(reference)}', where there is no schema"
        else:
            yield f"'{keyword}' at '{place}' leaves the document: '{shorten(reference)}'; use '#/$defs/...'"
    for place, schema in tree.dicts():
        for keyword in REFERENCES:
            if not isinstance(schema.get(keyword, ""), str):
                yield f"'{keyword}' at '{place}' is not a string"


def _patterns(tree: Tree) -> Iterator[str]:
    total = 0
    for place, schema in tree.dicts():
        named = schema.get("patternProperties")
        for pattern in (schema.get("pattern"), *(named if isinstance(named, dict) else ())):
            if isinstance(pattern, str):
                try:
                    total += weigh(pattern)
                except Hostile as why:
                    yield f"pattern '{shorten(pattern)}' at '{place}' {why}"
    if total > MAX_WEIGHT:
        yield "the patterns unfold to too large an automaton together; use maxLength or maxItems for counting"


def _marks(tree: Tree) -> Iterator[str]:
    for place, schema in tree.dicts():
        mark = schema.get("x-sensitivity", LABELS[0])
        if mark not in LABELS:
            yield f"'x-sensitivity' at '{place}' is '{mark}'; use {', '.join(LABELS)}"


def _shape(tree: Tree) -> list[str]:
    shape = fanout(tree)
    reasons = [f"the reference at '{place}' leads back to itself and to no value" for place in shape.endless]
    if shape.width > MAX_WIDTH:
        reasons.append(f"alternatives multiply to more than {MAX_WIDTH}; use fewer or flatter ones")
    if shape.chain > MAX_CHAIN:
        reasons.append(f"references lead through {shape.chain} schemas at one place, more than {MAX_CHAIN}")
    return reasons[:MAX_REASONS]


def _compiled(schema: dict[str, Any]) -> list[str]:
    try:
        compile_schema(schema)
        return list(_defaults(schema))[:MAX_REASONS]
    except SchemaError as error:
        return [shorten(str(error), 300)]


def _defaults(schema: dict[str, Any]) -> Iterator[str]:
    """A default that its own schema refuses would refuse every call that omits it."""
    defaults = Defaults(schema)
    if defaults.empty:
        return
    validators = jsonschema_rs.validator_map_for(
        schema,
        validate_formats=True,
        offline=True,
        pattern_options=PATTERNS,
        email_options=EMAIL,
    )
    for place, value in defaults.filled():
        validator = validators.get("#" + place)
        if validator is not None and not validator.is_valid(value):
            yield f"the default at '{place}' does not fit its own schema"
