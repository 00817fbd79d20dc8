"""Which of the tools taken in would the catalog refuse, and do those left stand together?"""

from holdfast.catalog.admission import admissible
from holdfast.catalog.evolution import step_faults
from holdfast.catalog.imports.intake import Intake, Taken, offer
from holdfast.catalog.imports.versions import Version
from holdfast.catalog.references import Known, readings
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError

_REMEMBERED = 4096
_PASSED: set[tuple[str, str]] = set()


def stand_together(intake: Intake, known: Known) -> None:
    """Refuse what cannot be admitted, one tool at a time, until nothing left relies on what was refused."""
    doubtful = list(intake.taken)
    while doubtful:
        find = _find(intake, known)
        refused = {native: why for native in doubtful if (why := _faults(intake, intake.taken[native], find))}
        for native, reasons in refused.items():
            tool = intake.taken[native]
            intake.refuse(native, reasons, tool.before, tool.entry)
        doubtful = [native for native, tool in intake.taken.items() if _relies(tool)] if refused else []


def _faults(intake: Intake, tool: Taken, known: Known) -> list[str]:
    """Why the current version is refused. Older ones that no longer stand are left out, and that is said."""
    standing: list[Version] = []
    for version in reversed(tool.versions):
        reasons = _admission_faults(version, known)
        if standing and not reasons:
            reasons = step_faults(version.contract, standing[-1].contract)
        if not reasons:
            standing.append(version)
        elif version.record is tool.entry.current:
            return reasons
        else:
            number = version.record.version
            intake.report(tool.native, f"is no longer offered in version '{number}': {reasons[0]}")
    tool.versions = standing[::-1]
    return []


def _admission_faults(version: Version, known: Known) -> list[str]:
    """Remembered for a contract that stands alone and passed: it passes again."""
    contract = version.contract
    alone = contract.transactional.compensation is None and not any(readings(contract))
    key = (contract.digest, contract.identity.model_dump_json())
    if alone and key in _PASSED:
        return []
    faults = _looked_at(version, known)
    if alone and not faults:
        if len(_PASSED) >= _REMEMBERED:
            _PASSED.clear()
        _PASSED.add(key)
    return faults


def _looked_at(version: Version, known: Known) -> list[str]:
    try:
        admissible([offer(version)], known)
    except AdmissionError as error:
        return list(error.reasons)
    return []


def _find(intake: Intake, known: Known) -> Known:
    newest = {
        tool.versions[-1].contract.tool: tool.versions[-1].contract
        for tool in intake.taken.values()
        if tool.versions
    }

    def find(name: str) -> Contract | None:
        own = name.startswith(f"{intake.namespace}.")
        return newest.get(name) if own else known(name)

    return find


def _relies(tool: Taken) -> bool:
    return any(
        version.contract.transactional.compensation is not None or any(readings(version.contract))
        for version in tool.versions
    )
