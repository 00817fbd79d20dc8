"""Does this value fit the schema, and if not, where and why?

Checking is linear; listing every error is not: the engine lists the errors of all alternatives, and of all of
their alternatives. So a value is checked first, and its errors are listed only when that cannot explode.
"""

from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import jsonschema_rs
from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from holdfast.model.fields import FieldError, Violation, pointer
from holdfast.model.schema import wording
from holdfast.model.schema.fanout import fanout
from holdfast.model.schema.name import known_by
from holdfast.model.schema.sensitivity import Sensitivity
from holdfast.model.schema.tree import SchemaError, Tree

MAX_ERRORS = 50
"""More than anybody repairs in one go."""
_LISTING_BUDGET = 20_000
"""Looks at one value while listing; about 0.2 s of CPU."""
_OF_ANOTHER = "absent in this alternative"
"""Often the echo of another error, for which its alternative was not taken; told if there is no other."""
_JOINING = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "$ref", "$dynamicRef")


# The linear engine: no pattern can backtrack, and its program is bounded.
PATTERNS = jsonschema_rs.RegexOptions(size_limit=4 << 20)
EMAIL = jsonschema_rs.EmailOptions(allow_display_text=False)


class Validator:
    """One compiled schema; safe to share between threads. Values are JSON: `strict_json` sees to that."""

    __slots__ = ("__weakref__", "_engine", "_fanout", "_tree", "is_valid", "sensitivity")

    def __init__(self, schema: dict[str, Any]) -> None:
        self._tree = Tree.of(schema)
        self._fanout = fanout(self._tree)
        self.sensitivity = Sensitivity(schema)
        self._engine = jsonschema_rs.Draft202012Validator(
            schema,
            validate_formats=True,
            offline=True,  # its denying retriever: without it the engine fetches http: and file: references
            pattern_options=PATTERNS,
            email_options=EMAIL,
        )
        self.is_valid = self._engine.is_valid

    def errors(self, value: Any) -> tuple[FieldError, ...]:
        return tuple(error for _, error in self.violations(value))

    def violations(self, value: Any) -> tuple[tuple[Violation, FieldError], ...]:
        """What is wrong, at most MAX_ERRORS of it; empty when the value fits."""
        try:
            if self.is_valid(value):
                return ()
            if self._cost_of_listing(value) > _LISTING_BUDGET:
                return (_unlisted(value),)
            found: dict[tuple[Violation, FieldError], None] = {}
            for error in self._engine.iter_errors(value):
                found.update(dict.fromkeys(self._explain(error)))
                if len(found) >= MAX_ERRORS:
                    break
            sure = tuple(each for each in found if each[1].expected != _OF_ANOTHER)
            return (sure or tuple(found))[:MAX_ERRORS]
        except ValueError as error:  # a Python object that JSON has no word for
            problem = FieldError("", "a JSON value", type(value).__name__, f"not a JSON value: {error}")
            return (("STRUCTURAL_VIOLATION", problem),)

    def _cost_of_listing(self, value: Any) -> int:
        nodes, depth = _size(value)
        # Python would compute any power; 64 is far beyond the budget already.
        levels: int = self._fanout.per_level ** min(depth, 64)
        return nodes * self._fanout.width * levels

    def _explain(self, error: ValidationError) -> Iterator[tuple[Violation, FieldError]]:
        match error.kind:
            case Kind.Required():
                yield "STRUCTURAL_VIOLATION", _missing(error.instance_path, error.kind.property)
            case Kind.AdditionalProperties() | Kind.UnevaluatedProperties():
                declared = self._declared(error)
                for name in error.kind.unexpected:
                    yield "STRUCTURAL_VIOLATION", _unexpected(error.instance_path, name, declared)
            case Kind.PropertyNames():
                yield "STRUCTURAL_VIOLATION", _misnamed(error.instance_path, error.kind.error)
            case Kind.AnyOf() | Kind.OneOfNotValid():
                yield from self._closest(error, error.kind.context)
            case _:
                yield wording.violation(error.kind), self._plain(error, wording.expected(error.kind))

    def _closest(
        self, error: ValidationError, branches: list[list[ValidationError]]
    ) -> Iterator[tuple[Violation, FieldError]]:
        """If all alternatives are of other types, say which; if one is meant, say what is wrong with it."""
        here = len(error.instance_path)
        mistyped = [_wrong_types(branch, here) for branch in branches]
        if all(mistyped):
            types = wording.one_of_types(name for found in mistyped for name in found)
            yield "TYPE_MISMATCH", self._plain(error, types)
            return
        meant = [
            b for b, wrong in zip(branches, mistyped, strict=True) if not wrong and not _unmeant(b, here)
        ]
        if len(meant) == 1:
            for nested in meant[0]:
                yield from self._explain(nested)
            return
        yield "STRUCTURAL_VIOLATION", self._plain(error, wording.expected(error.kind))

    def _plain(self, error: ValidationError, expected: str) -> FieldError:
        hidden = self.sensitivity.label(error.instance_path) is not None
        path, actual = pointer(error.instance_path), wording.actual(error.instance, hidden)
        return FieldError(path, expected, actual, f"{_place(path)} must be {expected}; got {actual}")

    def _declared(self, error: ValidationError) -> list[str]:
        place = pointer(error.schema_path[:-1])
        if place not in self._tree.at:
            return []
        links = (link for part in self._tree.parts(place, _JOINING) for link in self._tree.children[part])
        return sorted({str(link.key) for link in links if link.keyword == "properties"})


_COMPILED: WeakValueDictionary[bytes, Validator] = WeakValueDictionary()
"""Those in use, by their text: a catalog that is read again compiles only what is new."""


def compile_schema(schema: dict[str, Any]) -> Validator:
    """Raises SchemaError; `examine` says all that is wrong with a schema, this only the first."""
    try:
        name = known_by(schema)
        found = None if name is None else _COMPILED.get(name)
        if found is None:
            found = Validator(schema)
            if name is not None:
                _COMPILED[name] = found
        return found
    except SchemaError:
        raise
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        message = getattr(error, "message", None) or str(error)
        raise SchemaError(f"not a usable schema: {message}") from None


def _size(value: Any) -> tuple[int, int]:
    nodes, deepest = 0, 0
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        nodes, deepest = nodes + 1, max(deepest, depth)
        if isinstance(item, dict):
            stack.extend((member, depth + 1) for member in item.values())
        elif isinstance(item, list | tuple):
            stack.extend((member, depth + 1) for member in item)
    return nodes, deepest


def _wrong_types(branch: list[ValidationError], here: int) -> list[str]:
    """The types an alternative wanted instead of what stands here."""
    at_root = (e.kind for e in branch if len(e.instance_path) == here)
    return [name for kind in at_root if isinstance(kind, Kind.Type) for name in kind.types]


def _unmeant(branch: list[ValidationError], here: int) -> bool:
    """Whether a discriminator, here or one level down, says that another alternative is meant."""
    return any(
        isinstance(e.kind, Kind.Constant | Kind.Enum) and len(e.instance_path) <= here + 1 for e in branch
    )


def _missing(at: list[str | int], name: str) -> FieldError:
    path = pointer((*at, name))
    return FieldError(path, f"property '{name}'", "absent", f"'{path}' is required but absent")


def _unexpected(at: list[str | int], name: str, declared: list[str]) -> FieldError:
    path = pointer((*at, wording.shorten(name)))
    if name in declared:
        message = f"'{path}' belongs to another alternative than the one that fits"
        return FieldError(path, _OF_ANOTHER, "present", message)
    message = f"'{path}' is not declared{wording.nearest(name, declared)}"
    return FieldError(path, "no such property", "present", message)


def _misnamed(at: list[str | int], error: ValidationError) -> FieldError:
    name = wording.shorten(str(error.instance))
    expected = wording.expected(error.kind)
    message = f"property name '{name}' must be {expected}"
    return FieldError(pointer((*at, name)), f"a name that is {expected}", name, message)


def _unlisted(value: Any) -> tuple[Violation, FieldError]:
    message = "does not fit, and the schema has too many alternatives to say where; send a smaller value"
    return "STRUCTURAL_VIOLATION", FieldError("", "a value that fits", wording.json_type(value), message)


def _place(path: str) -> str:
    return f"'{path}'" if path else "the value"
