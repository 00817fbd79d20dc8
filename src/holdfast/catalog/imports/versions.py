"""Which versions of one imported tool are offered, and how large is the step to the newest?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.catalog.evolution import step_faults
from holdfast.catalog.imports.contract import build
from holdfast.catalog.imports.descriptor import digest, same
from holdfast.catalog.imports.lock import COSMETIC, FIRST_USE, Accepted, Entry
from holdfast.model.contract import Contract
from holdfast.model.declaration import FIRST_VERSION
from holdfast.model.errors import AdmissionError
from holdfast.model.schema import SchemaError
from holdfast.model.version import bump, parse_version
from holdfast.model.vocabulary import ToolStatus

Recall = Callable[[str], Contract | None]
"""Contracts that were made before, by digest."""
_FREE = {"identity", "affordance"}
"""Parts in which an older version may differ and still govern a call in the same way."""


@dataclass(frozen=True, slots=True)
class Version:
    record: Accepted
    contract: Contract
    status: ToolStatus | None = None
    """Other than the contract's own."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is in force for a tool, on its way to a version."""

    namespace: str
    descriptor: Mapping[str, Any]
    stated: Mapping[str, Any]
    trusted: bool

    def contract(self, version: str) -> Contract:
        """Raises SchemaError or AdmissionError."""
        return build(self.namespace, self.descriptor, version, self.stated, trust_annotations=self.trusted)

    def is_of(self, record: Accepted) -> bool:
        """To the letter: what was made of the one is made of the other."""
        alike = same(record.descriptor, self.descriptor) and same(record.stated, self.stated)
        return alike and record.trusted is self.trusted


def nothing(digest: str) -> Contract | None:
    """No contract is remembered."""


def settle(entry: Entry, promise: Promise, by: str, now: str, recall: Recall = nothing) -> Entry:
    """The entry whose current version is this promise; raises AdmissionError or SchemaError.

    The version moves when the contract does, as far as what changed asks for; by a patch where that is
    nothing but words, though what an operator had to accept is never that little.
    """
    before = entry.current
    if before is None:
        contract = promise.contract(promise.stated.get("version", FIRST_VERSION))
        return entry.with_version(_record(contract, promise, by, now))
    if promise.is_of(before) and recall(before.contract) is not None:
        return entry
    contract = promise.contract(before.version)
    if contract.version == before.version and contract.digest == before.contract:
        if same(before.descriptor, promise.descriptor):
            return entry
        kept = replace(before, descriptor=dict(promise.descriptor), digest=digest(promise.descriptor))
        return entry.with_current(kept)
    if "version" in promise.stated:
        _refuse_step(contract, promise.namespace, before)
    else:
        harmless = by in (FIRST_USE, COSMETIC)
        contract = promise.contract(_next(promise, before, harmless=harmless))
    who = by if by != FIRST_USE else before.accepted_by
    return entry.with_version(_record(contract, promise, who, now))


def offered(namespace: str, entry: Entry, *, quarantined: bool, recall: Recall = nothing) -> list[Version]:
    """Every version that can be made again exactly, oldest first."""
    made: list[Version] = []
    current = entry.current
    newest: Contract | None = None
    for record in reversed(entry.versions):
        contract = recall(record.contract) or rebuilt(namespace, record)
        if contract is None:
            if record is current:
                break
            continue
        newest = newest or contract
        status = None
        if quarantined:
            status = ToolStatus.QUARANTINED
        elif record is not current:
            status = _standing(record, contract, current, newest)
        made.append(Version(record, contract, status))
    return made[::-1]


def rebuilt(namespace: str, record: Accepted) -> Contract | None:
    """The contract of a record; None when it can no longer be made to the letter."""
    promise = Promise(namespace, record.descriptor, record.stated, record.trusted)
    try:
        contract = promise.contract(record.version)
    except (AdmissionError, SchemaError):
        return None
    return contract if contract.digest == record.contract else None


def _standing(old: Accepted, contract: Contract, current: Accepted | None, newest: Contract) -> ToolStatus:
    """An older version stays usable only while it governs a call just as the current one does."""
    stated = current is not None and (old.stated, old.trusted) == (current.stated, current.trusted)
    alike = contract.model_dump(exclude=_FREE) == newest.model_dump(exclude=_FREE)
    return ToolStatus.DEPRECATED if stated and alike else ToolStatus.SUNSET


def _next(promise: Promise, before: Accepted, *, harmless: bool) -> str:
    old = parse_version(before.version)
    last = rebuilt(promise.namespace, before)
    steps = (old.bump_patch(), old.bump_minor(), old.bump_major())
    if last is not None:
        for step in map(str, steps if harmless else steps[1:]):
            if not step_faults(last, promise.contract(step)):
                return step
    return str(steps[-1])


def _refuse_step(contract: Contract, namespace: str, before: Accepted) -> None:
    """The version an overlay names is a new one, and says as much as changed. REG-5."""
    try:
        step = bump(before.version, contract.version)
    except ValueError as error:
        raise AdmissionError(contract.tool, [str(error)]) from None
    if step in ("none", "down"):
        taken = "taken by another contract" if step == "none" else f"older than '{before.version}'"
        raise AdmissionError(contract.tool, [f"version '{contract.version}' is {taken}; give it a new one"])
    last = rebuilt(namespace, before)
    if last is not None and (faults := step_faults(last, contract)):
        raise AdmissionError(contract.tool, faults)


def _record(contract: Contract, promise: Promise, by: str, now: str) -> Accepted:
    return Accepted(
        version=contract.version,
        digest=digest(promise.descriptor),
        contract=contract.digest,
        descriptor=dict(promise.descriptor),
        accepted_by=by,
        accepted_at=now,
        stated=dict(promise.stated),
        trusted=promise.trusted,
    )
