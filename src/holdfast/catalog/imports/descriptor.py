"""Is this a tool descriptor, and which of its members carry meaning?"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from holdfast.catalog.imports.words import words
from holdfast.model import strict_json

MAX_TOOLS = 2_000
"""Of one upstream; more is a fault or an attack."""
MAX_DESCRIPTION = 32_768
COSMETIC = frozenset({"title", "icons", "_meta"})
"""Members that may change without anybody being asked: they carry no promise."""
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

# A descriptor is mostly its schemas, so it is held to the same limits as a schema.
_LIMITS = strict_json.Limits(max_bytes=512 << 10, max_depth=88, max_string=64 << 10, max_keys=20_000)
_SCHEMAS = ("inputSchema", "outputSchema")
_KINDS: dict[str, type] = {
    "title": str,
    "description": str,
    "outputSchema": dict,
    "annotations": dict,
    "icons": list,
    "_meta": dict,
    "execution": dict,
}
_WORDS: dict[type, str] = {str: "a string", dict: "an object", list: "an array"}
_DATA = frozenset({"default", "const", "enum", "examples", "example"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def check(tool: object) -> list[str]:
    """Why this descriptor cannot be used; empty when its structure is sound."""
    if not isinstance(tool, dict):
        return ["a tool descriptor must be an object"]
    try:
        strict_json.check(tool, _LIMITS)
    except strict_json.ParseError as error:
        return [f"'{error.path}': {error.message}" if error.path else error.message]
    name = tool.get("name")
    reasons = [] if isinstance(name, str) and name else ["'name' must be a string that is not empty"]
    if not isinstance(tool.get("inputSchema"), dict):
        reasons.append("'inputSchema' must be an object")
    elif "object" not in (tool["inputSchema"].get("type") or "object"):
        reasons.append("'inputSchema' must say 'type: object'; arguments come by name")
    for member, kind in _KINDS.items():
        if tool.get(member) is not None and not isinstance(tool[member], kind):
            reasons.append(f"'{member}' must be {_WORDS[kind]}")
    if isinstance(tool.get("description"), str) and len(tool["description"]) > MAX_DESCRIPTION:
        reasons.append(f"'description' is longer than {MAX_DESCRIPTION} characters")
    reasons.extend(
        f"'annotations.{hint}' must be true or false"
        for hint in HINTS
        if not isinstance(annotations(tool).get(hint, False), bool | None)
    )
    return reasons


def annotations(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    found = tool.get("annotations")
    return found if isinstance(found, dict) else {}


def material(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What of a descriptor is a promise. Members nobody knows are kept: a change there is not harmless."""
    kept = {name: value for name, value in tool.items() if name not in COSMETIC and value is not None}
    kept["description"] = words(tool.get("description"))
    kept["annotations"] = {k: v for k, v in annotations(tool).items() if k != "title" and v is not None}
    for member in _SCHEMAS:
        if member in kept:
            kept[member] = _schema(kept[member])
    return kept


def digest(tool: Mapping[str, Any]) -> str:
    """SHA-256 of what of a descriptor is a promise; equal after a change that is only cosmetic."""
    text = json.dumps(_plain(material(tool)), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptors are one, to the letter."""
    if one is other or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        return True
    return _text(one) == _text(other)


def _text(tool: Mapping[str, Any]) -> str:
    return json.dumps(_plain(tool), sort_keys=True)


def _plain(value: Any) -> Any:
    """1.0 is 1, as in the canonical form. Integers of any size stay: upstreams state bounds of 64 bits."""
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _schema(schema: Any) -> Any:
    """A schema with its descriptions read as words, and with no order where order says nothing."""
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    read: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DATA:
            read[key] = value
        elif key in _MAPS and isinstance(value, dict):
            read[key] = {name: _schema(below) for name, below in value.items()}
        elif key in ("description", "$comment") and isinstance(value, str):
            read[key] = words(value)
        elif key == "required" and isinstance(value, list) and all(isinstance(n, str) for n in value):
            read[key] = sorted(value)
        else:
            read[key] = _schema(value)
    return read
