"""Which JSON does a Python function take and give, read off its type hints and docstring?"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json

from holdfast.model.errors import AdmissionError
from holdfast.model.invocation import Invocation
from holdfast.model.plain import is_plain


class _Untitled(GenerateJsonSchema):
    """Titles repeat the names and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Signature:
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    converters: Mapping[str, TypeAdapter[Any]]
    """Parameters whose type is more than plain JSON."""
    renderer: TypeAdapter[Any] | None
    """Turns the answer into JSON; None when its type is plain JSON already."""
    invocation: str | None
    """The parameter that receives the Invocation."""


def check_shape(function: Callable[..., Any]) -> None:
    """Refuses what no schema can describe, at the place where the function is written."""
    reasons = []
    for parameter in inspect.signature(function).parameters.values():
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
                reasons.append(f"parameter '{parameter}' has no schema; name every parameter")
            case inspect.Parameter.POSITIONAL_ONLY:
                reasons.append(f"parameter '{parameter.name}' is positional-only; arguments come by name")
        if isinstance(parameter.default, FieldInfo):
            reasons.append(
                f"parameter '{parameter.name}' has a Field as its default; write 'Annotated[..., Field()]'"
            )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        reasons.append("it yields; return one answer")
    if reasons:
        raise AdmissionError(function.__name__, reasons)


def read_signature(function: Callable[..., Any], hidden: Collection[str] = ()) -> Signature:
    """Raises AdmissionError with everything that is missing; what is `hidden` is filled by the gateway."""
    return _Reader(function, hidden).read()


class _Reader:
    def __init__(self, function: Callable[..., Any], hidden: Collection[str]) -> None:
        self._function = function
        self._hidden = hidden
        self._reasons: list[str] = []

    def read(self) -> Signature:
        hints = self._hints()
        parameters = inspect.signature(self._function).parameters
        invocation = next((name for name in parameters if _is_invocation(hints.get(name))), None)
        described = [p for name, p in parameters.items() if name != invocation and name not in self._hidden]
        adapters = {p.name: a for p in described if (a := self._parameter(p.name, hints)) is not None}
        doc = _documentation(self._function)
        given = self._output(hints)
        inputs = self._input_schema(described, adapters, doc)
        outputs = {} if given is None else self._output_schema(given)
        if self._reasons:
            raise AdmissionError(self._function.__name__, self._reasons)
        return Signature(
            description=doc.description or "",
            input_schema=inputs,
            output_schema=outputs,
            converters={name: a for name, a in adapters.items() if not is_plain(hints[name], given=False)},
            renderer=None if given is None or is_plain(hints["return"], given=True) else given,
            invocation=invocation,
        )

    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(self._function, include_extras=True)
        except NameError as error:
            reason = f"its type hints cannot be read: {error}; import the name where the function is"
            raise AdmissionError(self._function.__name__, [reason]) from error

    def _parameter(self, name: str, hints: Mapping[str, Any]) -> TypeAdapter[Any] | None:
        if name not in hints:
            what = "pass an instance of the class" if name == "self" else f"write for instance '{name}: str'"
            self._reasons.append(f"parameter '{name}' has no type hint; {what}")
            return None
        return self._adapter(hints[name], f"parameter '{name}'")

    def _output(self, hints: Mapping[str, Any]) -> TypeAdapter[Any] | None:
        """What the answer looks like; None when nothing was said about it."""
        kind = hints.get("return", Any)
        return None if kind is Any else self._adapter(kind, "the answer")

    def _adapter(self, kind: Any, what: str) -> TypeAdapter[Any] | None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(kind)
            adapter.json_schema(schema_generator=_Untitled)
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            self._reasons.append(
                f"{what} is a '{_name(kind)}', which has no JSON form; use plain types or a model"
            )
            return None
        except PydanticUserError as error:
            self._reasons.append(f"{what} cannot be described: {error.message.splitlines()[0]}")
            return None
        return adapter

    def _input_schema(
        self,
        described: list[inspect.Parameter],
        adapters: Mapping[str, TypeAdapter[Any]],
        doc: docstring_parser.Docstring,
    ) -> dict[str, Any]:
        told = {p.arg_name: p.description for p in doc.params if p.description}
        wanted = [(name, "validation", adapter) for name, adapter in adapters.items()]
        schemas, shared = TypeAdapter.json_schemas(wanted, schema_generator=_Untitled)  # type: ignore[arg-type]
        properties: dict[str, Any] = {}
        required = []
        for parameter in described:
            if parameter.name not in adapters:
                continue
            schema = dict(schemas[parameter.name, "validation"])
            if parameter.name in told:
                schema.setdefault("description", told[parameter.name])
            if parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
            else:
                schema.update(self._default(parameter, adapters[parameter.name]))
            properties[parameter.name] = schema
        whole: dict[str, Any] = {"type": "object", "properties": properties}
        return whole | ({"required": required} if required else {}) | shared

    def _default(self, parameter: inspect.Parameter, adapter: TypeAdapter[Any]) -> dict[str, Any]:
        try:
            value = adapter.dump_python(parameter.default, mode="json", warnings="error")
            adapter.validate_json(to_json(value), strict=True)
        except (PydanticSerializationError, ValidationError):
            self._reasons.append(f"the default of parameter '{parameter.name}' does not fit its type")
            return {}
        return {"default": value}

    def _output_schema(self, adapter: TypeAdapter[Any]) -> dict[str, Any]:
        return adapter.json_schema(mode="serialization", schema_generator=_Untitled)


def _is_invocation(kind: Any) -> bool:
    return kind is Invocation or (get_origin(kind) in (Union, UnionType) and Invocation in get_args(kind))


def _documentation(function: Callable[..., Any]) -> docstring_parser.Docstring:
    text = inspect.getdoc(function) or ""
    try:
        return docstring_parser.parse(text)
    except docstring_parser.ParseError:  # not one of the known styles: it is all description
        whole = docstring_parser.Docstring()
        whole.short_description = text
        return whole


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
