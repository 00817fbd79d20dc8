"""May this contract be used here? If not, every reason at once.

S1's conjunction: safe schemas, expressions that compile, parts that agree (CON-3), and the tools it relies on
are there. What is admitted is compiled; nothing is ever repaired or admitted in part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.catalog.expressions import expression_faults
from holdfast.catalog.references import Known, reference_faults
from holdfast.catalog.rules import rule_faults
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError
from holdfast.model.schema import SchemaError, close, compile_schema, examine
from holdfast.model.tool import Check, Tool
from holdfast.model.version import newest, parse_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A contract on its way into the catalog."""

    contract: Contract
    upstream: str
    checks: tuple[Check, ...] = ()
    verbatim: bool = False
    """The schema is an upstream's own and is advertised as it came; else it is closed. CON-8."""
    native: Mapping[str, Any] | None = None
    """The descriptor as clients of the upstream's own protocol are shown it."""


def admit(contract: Contract, known: Known, checks: tuple[Check, ...] = ()) -> Tool:
    """The compiled tool, its input schema closed; raises AdmissionError with every reason."""
    [tool] = admit_all([Offer(contract=contract, upstream=contract.identity.namespace, checks=checks)], known)
    return tool


def admit_all(offers: Sequence[Offer], known: Known) -> list[Tool]:
    """Several together, in any order: they may rely on each other. All or none."""
    return [Tool.compile(contract, checks) for contract, checks in admissible(offers, known)]


def admissible(offers: Sequence[Offer], known: Known) -> list[tuple[Contract, tuple[Check, ...]]]:
    """The contracts as they would be enforced; raises AdmissionError with every reason."""
    refused: dict[str, list[str]] = {}
    ready: list[tuple[Contract, tuple[Check, ...]]] = []
    for offer in offers:
        reasons = list(_schema_faults(offer.contract))
        if reasons:
            refused.setdefault(offer.contract.tool, []).extend(reasons)
            ready.append((offer.contract, offer.checks))
        else:
            ready.append((offer.contract if offer.verbatim else closed(offer.contract), offer.checks))
    together = _together([contract for contract, _ in ready], known)
    for contract, _ in ready:
        broken = contract.tool in refused
        reasons = [*([] if broken else _example_faults(contract)), *_other_faults(contract, together)]
        if reasons:
            refused.setdefault(contract.tool, []).extend(reasons)
    if refused:
        raise refusal(refused)
    return ready


def closed(contract: Contract) -> Contract:
    """The contract with the input schema that is enforced, so that what is advertised is what holds."""
    face = contract.affordance
    schema = close(face.input_schema)
    if schema == face.input_schema:
        return contract
    return contract.model_copy(update={"affordance": face.model_copy(update={"input_schema": schema})})


def refusal(found: dict[str, list[str]]) -> AdmissionError:
    """One error for everything that is wrong with a set of tools."""
    refused = {tool: reasons for tool, reasons in found.items() if reasons}
    if len(refused) == 1:
        [(tool, reasons)] = refused.items()
        return AdmissionError(tool, reasons)
    told = [f"'{tool}': {reason}" for tool, reasons in refused.items() for reason in reasons]
    return AdmissionError(", ".join(refused), told)


def _other_faults(contract: Contract, known: Known) -> Iterator[str]:
    yield from rule_faults(contract)
    yield from expression_faults(contract)
    yield from reference_faults(contract, known)


def _schema_faults(contract: Contract) -> Iterator[str]:
    face = contract.affordance
    if face.input_schema.get("type") != "object":
        yield "'affordance.input_schema' must say 'type: object'; arguments come by name"
    schemas: dict[str, dict[str, Any]] = {
        "affordance.input_schema": face.input_schema,
        "affordance.output_schema": face.output_schema,
        "error_contract.error_schema": contract.error_contract.error_schema,
    }
    for path, schema in schemas.items():
        yield from (f"'{path}': {reason}" for reason in examine(schema))


def _example_faults(contract: Contract) -> Iterator[str]:
    face = contract.affordance
    if not face.examples:
        return
    try:
        validator = compile_schema(face.input_schema)
    except SchemaError as error:  # open it was fine, closed it is not
        yield f"'affordance.input_schema': {error}"
        return
    for index, example in enumerate(face.examples):
        for fault in validator.errors(example.arguments):
            yield f"'affordance.examples.{index}': {fault.message}"


def _together(contracts: Sequence[Contract], known: Known) -> Known:
    """The newest of what is offered now and what is there already."""
    offered: dict[str, dict[str, Contract]] = {}
    for contract in contracts:
        if _readable(contract.version):
            offered.setdefault(contract.tool, {})[contract.version] = contract

    def find(name: str) -> Contract | None:
        versions = dict(offered.get(name, {}))
        there = known(name)
        if there is not None:
            versions.setdefault(there.version, there)
        best = newest(versions)
        return None if best is None else versions[best]

    return find


def _readable(version: str) -> bool:
    try:
        parse_version(version)
    except ValueError:
        return False  # its own reason says so
    return True
