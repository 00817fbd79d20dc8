"""Which part of a contract does each keyword of `@tool`, or of an overlay, fill?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from pydantic import ValidationError

from holdfast.model.contract import (
    Affordance,
    Compensation,
    Contract,
    Cost,
    Credential,
    EffectEntry,
    ErrorContract,
    ErrorRule,
    Example,
    Idempotency,
    Identity,
    Job,
    Migration,
    Observability,
    Part,
    Postcondition,
    Preview,
    Probe,
    RateLimit,
    Reading,
    Rule,
    Runtime,
    Sanity,
    Security,
    Session,
    Sla,
    StateCheck,
    Transactional,
    Verification,
)
from holdfast.model.errors import AdmissionError
from holdfast.model.explain import explain, nearest
from holdfast.model.signature import Signature
from holdfast.model.tool import Check
from holdfast.model.vocabulary import (
    DataClass,
    Effect,
    Egress,
    Floor,
    Reach,
    TimeoutClass,
    ToolStatus,
    Undo,
)

FIRST_VERSION = "1.0.0"
"""Of a function that names none."""

Json = Mapping[str, Any]
Entry = EffectEntry | tuple[str, str, str] | Json


class Declaration(TypedDict, total=False):
    """Everything a contract can say, flat. A part may be given as its model or as a mapping.

    In a mapping, a `tool` without a namespace is one of the same namespace, and may be the decorated
    function itself.
    """

    undo: Undo
    name: str
    version: str
    owner: str
    status: ToolStatus
    deprecated_on: str
    sunset_on: str
    successor: str
    migration_guide: str
    migration: Migration | Json
    tags: Sequence[str]

    description: str
    use_when: Sequence[str]
    do_not_use_when: Sequence[str]
    preconditions: Sequence[str]
    side_effects: str
    repair_hints: Sequence[str]
    examples: Sequence[Example | Json]
    output_schema: Json

    timeout_class: TimeoutClass
    timeout_ms: int
    reach: Reach
    max_retries: int
    cache_ttl_s: float
    rate_limit: RateLimit | Json
    cost: Cost | Json
    sla: Sla | Json
    sandbox_tier: int
    job: Job | Json

    scopes: Sequence[str]
    floor: Floor
    tenant_scoped: bool
    tenant_argument: str
    secrets: Literal["gateway_injected", "execution_sandbox", "none"]
    data_class: DataClass
    labels: Sequence[str]
    egress: Egress
    credentials: Sequence[Credential | Json]

    manifest: Sequence[Entry]
    compensation: Compensation | Json
    rollback_plan: str
    preview: Preview | Json
    probe: Probe | Json
    postconditions: Sequence[Postcondition | Json]
    verification: Verification | Json
    session: Session | Json

    idempotency: Idempotency | Json | Literal["none", "meta", "transaction"]
    trace_attributes: Sequence[str]
    audit_required: bool
    error_schema: Json
    in_band: str
    errors: Sequence[ErrorRule | Json]

    semantics: Sequence[Rule | Json]
    lookups: Mapping[str, Reading | Json]
    state: StateCheck | Json
    sanity: Sequence[Sanity | Json]
    checks: Sequence[Check]


_SECTIONS: dict[str, type[Part]] = {
    "identity": Identity,
    "affordance": Affordance,
    "runtime": Runtime,
    "security": Security,
    "transactional": Transactional,
    "observability": Observability,
    "error_contract": ErrorContract,
}
_SHORT = {
    "scopes": ("security", "required_scopes"),
    "floor": ("security", "approval_floor"),
    "errors": ("error_contract", "rules"),
}
PLACES: dict[str, tuple[str, str]] = {
    field: (section, field) for section, part in _SECTIONS.items() for field in part.model_fields
} | _SHORT
"""Section and field of each flat keyword; what is not here is a part of its own."""


def declare(
    name: str, namespace: str, effect: Effect, signature: Signature, declared: Declaration
) -> Contract:
    """The contract of a function; raises AdmissionError with every reason."""
    tool = f"{namespace}.{name}"
    known = sorted(Declaration.__annotations__)
    unknown = [
        f"keyword '{word}' is not known; {nearest(word, known)}" for word in declared if word not in known
    ]
    if "output_schema" in declared and "job" not in declared:
        unknown.append("'output_schema' is that of the function; only what submits a 'job' says another")
    if unknown:
        raise AdmissionError(tool, unknown)
    try:
        document = _document(name, namespace, signature, declared)
        document["transactional"]["effect"] = effect
        return Contract.model_validate(document)
    except ValidationError as error:
        raise AdmissionError(tool, explain(error, Contract)) from None


def _document(name: str, namespace: str, signature: Signature, declared: Declaration) -> dict[str, Any]:
    document = blank()
    document["identity"] |= {"namespace": namespace, "name": name, "version": FIRST_VERSION}
    document["affordance"] |= {
        "description": signature.description,
        "input_schema": signature.input_schema,
        "output_schema": {} if "job" in declared else signature.output_schema,  # that of what it submits
    }
    fill(
        document, {word: said for word, said in declared.items() if word not in ("name", "checks")}, namespace
    )
    return document


def blank() -> dict[str, Any]:
    """A contract document that says nothing yet."""
    return {section: {} for section in _SECTIONS}


def fill(document: dict[str, Any], declared: Mapping[str, Any], namespace: str) -> None:
    """Put each flat keyword into its place in the document, short forms written out."""
    for keyword, value in declared.items():
        if keyword in PLACES:
            section, field = PLACES[keyword]
            document[section][field] = _full(keyword, value, namespace)
        else:
            document[keyword] = _full(keyword, value, namespace)


def _full(keyword: str, value: Any, namespace: str) -> Any:
    """Short forms written out."""
    if keyword == "manifest":
        fields = tuple(EffectEntry.model_fields)
        return [dict(zip(fields, e, strict=False)) if isinstance(e, tuple | list) else e for e in value]
    if keyword == "idempotency" and isinstance(value, str):
        return {"upstream": value}
    if keyword in ("compensation", "preview", "probe", "postconditions", "lookups", "state", "job"):
        return _qualified(value, namespace)
    return value


def _qualified(value: Any, namespace: str) -> Any:
    match value:
        case Mapping():
            return {key: _member(key, member, namespace) for key, member in value.items()}
        case list() | tuple():
            return [_qualified(item, namespace) for item in value]
    return value


def _member(key: str, value: Any, namespace: str) -> Any:
    if key == "arguments":
        return value
    if key != "tool" or isinstance(value, Mapping):
        return _qualified(value, namespace)
    name = value if isinstance(value, str) else getattr(value, "name", value)
    return f"{namespace}.{name}" if isinstance(name, str) and "." not in name else name
