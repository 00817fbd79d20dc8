"""Will a model understand this tool, and can it do harm by misunderstanding it?

Findings are advice about the affordance: they never refuse a contract. CON-4.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.model.contract import Contract
from holdfast.model.locks import unlocked
from holdfast.model.resources import plain_kind
from holdfast.model.vocabulary import ToolStatus

MAX_PROPERTIES = 12
"""Beyond this a tool is usually several."""
MIN_DESCRIPTION, MAX_DESCRIPTION = 20, 1200
"""Characters: shorter says nothing, longer is paid for in every prompt."""
MULTIPLEXED = 4
"""An `action` with this many values is that many tools."""

_VAGUE = frozenset(
    "action api call change data do do_it do_stuff exec execute func function go handle helper invoke "
    "manage misc modify operate operation perform process run stuff task test thing tool update util "
    "work".split()
)
_VAGUE_PREFIX = re.compile(r"(do|handle|manage|misc|process|perform)_[a-z0-9]+$")
_VERSION_SUFFIX = re.compile(r"_v\d+$")
_BOUNDED = re.compile(r"(^|_)(reason|status|state|type|kind|priority|category|severity|mode|level)$")
_MULTIPLEXER = frozenset({"action", "operation", "command", "method", "verb", "op"})
_CODE = re.compile(r"(^|_)(sql|shell|bash|script|code|command|cmd|expression|eval|statement)$")
_SECRET = re.compile(
    r"(^|_)(password|passwd|passphrase|secret|token|api_?key|private_?key|credentials?|authorization|bearer)$"
)
_SQL_HINT = re.compile(r"\b(sql|select statement|where clause)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    path: str
    message: str


def lint(contract: Contract) -> tuple[Finding, ...]:
    """Everything the rules below find, in their order."""
    return tuple(finding for rule in RULES for finding in rule(contract))


Rule = Callable[[Contract], Iterator[Finding]]


def _name(contract: Contract) -> Iterator[Finding]:
    name = _snake(_VERSION_SUFFIX.sub("", contract.identity.name))
    if name in _VAGUE or _VAGUE_PREFIX.match(name):
        message = f"'{contract.identity.name}' says nothing about what happens; use a verb and its object"
        yield Finding("vague-name", "identity.name", message)


def _description(contract: Contract) -> Iterator[Finding]:
    path, length = "affordance.description", len(contract.affordance.description)
    if length < MIN_DESCRIPTION:
        yield Finding("short-description", path, "say what it does and, as important, what it does not do")
    elif length > MAX_DESCRIPTION:
        message = f"{length} characters are paid for in every prompt; keep it under {MAX_DESCRIPTION}"
        yield Finding("long-description", path, message)


def _disclosure(contract: Contract) -> Iterator[Finding]:
    if not contract.effect.writes:
        return
    if not contract.affordance.do_not_use_when:
        message = "name what it must not be used for, so that a model keeps away"
        yield Finding("no-forbidden-uses", "affordance.do_not_use_when", message)
    if not contract.affordance.side_effects:
        message = "say what changes and who notices: draft, send, charge and delete look alike to a model"
        yield Finding("no-side-effects", "affordance.side_effects", message)


def _examples(contract: Contract) -> Iterator[Finding]:
    if not contract.affordance.examples and contract.affordance.input_schema.get("properties"):
        yield Finding("no-examples", "affordance.examples", "give one call with realistic arguments")


def _size(contract: Contract) -> Iterator[Finding]:
    for path, properties in _objects(contract.affordance.input_schema):
        if len(properties) > MAX_PROPERTIES:
            message = f"{len(properties)} properties are too many to fill; split the tool"
            yield Finding("mega-tool", path, message)
    top = contract.affordance.input_schema.get("properties", {})
    for name, schema in _schemas(top):
        values = schema.get("enum", ())
        if _snake(name) in _MULTIPLEXER and len(values) >= MULTIPLEXED:
            message = (
                f"'{name}' chooses between {len(values)} operations; make each a tool with its own effect"
            )
            yield Finding("mega-tool", f"{_PROPERTIES}.{name}", message)


def _properties(contract: Contract) -> Iterator[Finding]:
    for path, properties in _objects(contract.affordance.input_schema):
        for name, schema in _schemas(properties):
            yield from _property(f"{path}.{name}", name, schema)


def _property(path: str, name: str, schema: dict[str, Any]) -> Iterator[Finding]:
    snake = _snake(name)
    if not schema.get("description"):
        yield Finding("no-property-description", path, f"say what '{name}' is and where a model gets it from")
    if snake in ("id", "ids", "identifier", "uuid"):
        yield Finding("generic-id", path, f"'{name}' of what? name the resource, as in 'invoice_id'")
    if _is_text(schema):
        if _BOUNDED.search(snake):
            yield Finding("free-text", path, f"'{name}' looks bounded; list its values in an enum")
        if _CODE.search(snake) or _is_sql(snake, schema):
            yield Finding(
                "raw-code", path, f"'{name}' takes code from a model; take names and values instead"
            )
        if _SECRET.search(snake):
            message = f"'{name}' asks a model for a secret; let the gateway inject it"
            yield Finding("secret-parameter", path, message)


def _resources(contract: Contract) -> Iterator[Finding]:
    """What is made anew is in nobody's way; what was only imported says nothing about this yet."""
    if contract.identity.status is ToolStatus.PROVISIONAL or not contract.affordance.input_schema.get(
        "properties"
    ):
        return
    for kind in unlocked(contract):
        message = (
            f"nobody can tell which '{kind}' a call changes, so calls that change the same one are not kept "
            f"apart; mark the argument that names it with 'x-resource: {plain_kind(kind)}'"
        )
        yield Finding("unmarked-resource", "transactional.manifest", message)


_PROPERTIES = "affordance.input_schema.properties"

RULES: tuple[Rule, ...] = (
    _name,  # can it be told apart from others
    _description,  # does it say enough, and not too much
    _disclosure,  # does a write say what it changes and when to keep away
    _examples,  # is there one to imitate
    _size,  # is it one tool
    _properties,  # is each argument clear, bounded and harmless
    _resources,  # can calls that change the same be told apart from others
)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def _is_text(schema: dict[str, Any]) -> bool:
    """A string that may be anything."""
    if any(word in schema for word in ("enum", "const", "format", "pattern", "$ref")):
        return False
    kind = schema.get("type")
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return True
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return any(isinstance(choice, dict) and _is_text(choice) for choice in choices)


def _is_sql(name: str, schema: dict[str, Any]) -> bool:
    return name in ("query", "filter", "where") and bool(_SQL_HINT.search(schema.get("description", "")))


def _schemas(properties: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(properties, dict):
        yield from ((name, schema) for name, schema in properties.items() if isinstance(schema, dict))


def _objects(schema: Any, path: str = "affordance.input_schema") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every `properties` in a schema, with its path; references are met where they are defined."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _objects(item, f"{path}.{index}")
    if not isinstance(schema, dict):
        return
    for word, inner in schema.items():
        if word in ("properties", "$defs", "dependentSchemas", "patternProperties") and isinstance(
            inner, dict
        ):
            if word == "properties":
                yield f"{path}.properties", inner
            for name, part in inner.items():
                yield from _objects(part, f"{path}.{word}.{name}")
        elif word not in ("enum", "const", "default", "examples"):
            yield from _objects(inner, f"{path}.{word}")
