"""What does a written contract say, and what is wrong with it?

A document is a contract in YAML or JSON. `schema_version` names the version of its form, which is published
as a JSON Schema.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.model import strict_json
from holdfast.model.contract import SCHEMA_VERSION, Contract, Part
from holdfast.model.docstrings import docstrings
from holdfast.model.errors import AdmissionError
from holdfast.model.explain import explain

SCHEMA_ID = f"urn:holdfast:contract:{SCHEMA_VERSION}"


def from_mapping(document: Mapping[str, Any], source: str = "contract") -> Contract:
    """Raises AdmissionError with every fault, its path, and the key that was probably meant."""
    fields = dict(document)
    reasons = []
    if (written := fields.pop("schema_version", SCHEMA_VERSION)) != SCHEMA_VERSION:
        reasons.append(f"'schema_version' is '{written}'; this gateway reads '{SCHEMA_VERSION}'")
    try:
        contract = Contract.model_validate_json(to_json(fields), strict=True)  # "3" is not 3 here either
    except ValidationError as error:
        raise AdmissionError(_name(fields, source), [*reasons, *explain(error, Contract)]) from None
    except PydanticSerializationError:
        raise AdmissionError(_name(fields, source), ["it holds values that JSON has no word for"]) from None
    if reasons:
        raise AdmissionError(contract.tool, reasons)
    return contract


def from_yaml(text: str | bytes, source: str = "contract") -> Contract:
    return _whole(yaml_value(text, source), source)


def from_json(text: str | bytes, source: str = "contract") -> Contract:
    return _whole(json_value(text, source), source)


def read(path: Path) -> Contract:
    """A contract from a file; `.json` is JSON, anything else YAML."""
    text = path.read_bytes()
    return from_json(text, path.name) if path.suffix == ".json" else from_yaml(text, path.name)


def yaml_value(text: str | bytes, source: str) -> Any:
    """What a YAML text says, no key twice and dates left as text; raises AdmissionError."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader, made stricter
    except yaml.YAMLError as error:
        raise AdmissionError(source, [_yaml_fault(error)]) from None


def json_value(text: str | bytes, source: str) -> Any:
    """What a JSON text says; raises AdmissionError."""
    try:
        return strict_json.parse(text)
    except strict_json.ParseError as error:
        raise AdmissionError(source, [error.message]) from None


def contract_schema() -> dict[str, Any]:
    """The JSON Schema of a contract document."""
    schema = _described(Contract.model_json_schema())
    version = {"const": SCHEMA_VERSION, "description": "Version of this form; the current one if left out."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "properties": {"schema_version": version, **schema["properties"]},
    }


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """With what the docstrings below the fields say."""
    parts = {**schema["$defs"], Contract.__name__: schema}
    for kind in _below(Part):
        said, there = docstrings(kind), parts.get(kind.__name__, {}).get("properties", {})
        for name, field in kind.model_fields.items():
            if name in said:
                there.get(field.alias or name, {}).setdefault("description", said[name])
    return schema


def _below(kind: type[Part]) -> Iterator[type[Part]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


def published_schema() -> str:
    """The text of docs/reference/contract.schema.json."""
    return json.dumps(contract_schema(), indent=2, ensure_ascii=False) + "\n"


def _whole(document: Any, source: str) -> Contract:
    if not isinstance(document, dict):
        raise AdmissionError(
            source, [f"it holds a {type(document).__name__}; write one object with 'identity'"]
        )
    return from_mapping(document, source)


def _name(fields: Mapping[str, Any], source: str) -> str:
    match fields.get("identity"):
        case {"namespace": str(namespace), "name": str(name)}:
            return f"{namespace}.{name}"
    return source


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, and leaves dates the text they are."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name = self.construct_object(key, deep=True)
            if isinstance(name, Hashable):
                if name in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key '{name}' appears twice", key.start_mark
                    )
                seen.add(name)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml_fault(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"not valid YAML at line {mark.line + 1} column {mark.column + 1}: {error.problem}"
    return "not valid YAML"
