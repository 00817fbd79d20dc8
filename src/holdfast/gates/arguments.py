"""Are the arguments well-formed?

Parsed, within limits, complete with defaults, valid against the closed schema and
given a fingerprint. Everything wrong with them is told at once. What is plainly right is seen to be so in one
pass: its canonical form is short and shallow, so the value is.
"""

from typing import Any

from holdfast.model.call import Call
from holdfast.model.canonical import NotCanonical, canonical, fingerprint, plainly
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fields import FieldError
from holdfast.model.keys import MAX_KEY, well_formed
from holdfast.model.strict_json import ParseError, check, parse, surely_fits
from holdfast.model.tool import Tool
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports

_ORDER = (Code.STRUCTURAL_VIOLATION, Code.TYPE_MISMATCH, Code.OUT_OF_BOUNDS)
"""With several kinds of fault the first of these names the refusal."""


async def arguments(call: Call, ports: Ports) -> Verdict:
    given, tool = call.proposal.arguments, call.tool
    if type(given) is not dict or call.asked_as is not None:
        return _examined(call, ports)
    filled = tool.defaults.apply(given)
    encoded = plainly(filled)
    if encoded is None or not surely_fits(encoded, ports.limits) or not tool.input.is_valid(filled):
        return _examined(call, ports)
    if call.key is not None and not well_formed(call.key):
        return _examined(call, ports)
    return _taken(call, filled, encoded, ports)


def _taken(call: Call, value: dict[str, Any], encoded: bytes, ports: Ports) -> Verdict:
    call.arguments = value
    call.fingerprint = fingerprint(call.tool.contract.digest, encoded)
    call.commitment = ports.secrets.commitment(call.principal.tenant, encoded)
    return PASS


def _examined(call: Call, ports: Ports) -> Verdict:
    """One question after the other, so that what is wrong can be told; what is not wrong passes here too."""
    try:
        value = _read(call.proposal.arguments, ports)
    except ParseError as error:
        code = Code.SYNTACTIC_PARSE_FAIL if error.code_hint == "syntax" else Code.OUT_OF_BOUNDS
        return Refusal(code, f"arguments cannot be read: {error}", (_fault(error.path, "JSON", str(error)),))
    if not isinstance(value, dict):
        fault = _fault("", "object", f"arguments are {_kind(value)}, not an object")
        return Refusal(Code.STRUCTURAL_VIOLATION, fault.message, (fault,))
    if call.asked_as is not None:
        translated = _translated(call.asked_as, value)
        if isinstance(translated, Refusal):
            return translated
        value = translated
    value = call.tool.defaults.apply(value)
    violations = [(Code(kind), fault) for kind, fault in call.tool.input.violations(value)]
    if call.key is not None and not well_formed(call.key):
        text = f"a key is 1 to {MAX_KEY} printable ASCII characters"
        violations.append((Code.STRUCTURAL_VIOLATION, _fault("/key", text, f"key is malformed: {text}")))
    if violations:
        return _refusal(violations)
    try:
        encoded = canonical(value)
    except NotCanonical as error:
        fault = _fault(error.path, "a number within 2**53", str(error))
        return Refusal(Code.OUT_OF_BOUNDS, str(error), (fault,))
    return _taken(call, value, encoded, ports)


def _translated(old: Tool, value: dict[str, Any]) -> dict[str, Any] | Refusal:
    """What an old version's arguments are in the new one's words."""
    value = old.defaults.apply(value)
    if violations := old.input.violations(value):
        return _refusal([(Code(kind), fault) for kind, fault in violations])
    if old.migration is None or old.migration.arguments is None:
        return value
    try:
        filled: dict[str, Any] = old.migration.arguments.fill({"args": value})
    except ExpressionError as error:
        said = f"this call of {old.contract.version} cannot be translated ({error}); use the new version"
        return Refusal(Code.VERSION_INCOMPATIBLE, said)
    return filled


def _refusal(violations: list[tuple[Code, FieldError]]) -> Refusal:
    code = min((kind for kind, _ in violations), key=_ORDER.index)
    faults = tuple(fault for _, fault in violations)
    return Refusal(code, _summary(faults), faults)


def _read(raw: Any, ports: Ports) -> Any:
    if isinstance(raw, str | bytes):
        return parse(raw, ports.limits)
    value = dict(raw) if not isinstance(raw, dict) and hasattr(raw, "keys") else raw
    check(value, ports.limits)
    return value


def _fault(path: str, expected: str, message: str) -> FieldError:
    return FieldError(path=path, expected=expected, actual="", message=message)


def _kind(value: Any) -> str:
    return "an array" if isinstance(value, list) else f"a {type(value).__name__}"


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = faults[0].message
    return first if len(faults) == 1 else f"{first} (and {len(faults) - 1} more, see field_errors)"
