"""Do the tools a contract relies on exist, and can they be relied on?"""

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.model.contract import Contract, Reading
from holdfast.model.vocabulary import Floor

Known = Callable[[str], Contract | None]
"""The newest contract of a name, or None."""


def reference_faults(contract: Contract, known: Known) -> Iterator[str]:
    for path, reading in readings(contract):
        found = known(reading.tool)
        if found is None:
            yield f"'{path}' reads '{reading.tool}', which is not in the catalog"
        else:
            yield from (f"'{path}' {fault}" for fault in _reading_faults(reading, found))
    yield from _compensation_faults(contract, known)
    yield from _cancel_faults(contract, known)


def readings(contract: Contract) -> Iterator[tuple[str, Reading]]:
    """Everything a contract reads, with its path."""
    promise = contract.transactional
    for name, reading in contract.lookups.items():
        yield f"lookups.{name}", reading
    if contract.state is not None:
        yield "state.read", contract.state.read
    if promise.preview is not None and promise.preview.read is not None:
        yield "transactional.preview.read", promise.preview.read
    if promise.probe is not None:
        yield "transactional.probe.read", promise.probe.read
    if contract.runtime.job is not None:
        yield "runtime.job.poll", contract.runtime.job.poll
    for index, post in enumerate(promise.postconditions):
        yield f"transactional.postconditions.{index}.read", post.read


def _reading_faults(reading: Reading, found: Contract) -> Iterator[str]:
    if found.effect.writes:
        yield f"reads '{reading.tool}', which is {found.effect}; only READ_ONLY tools can be read"
        return
    if found.security.approval_floor is not Floor.NONE:
        yield f"reads '{reading.tool}', which waits for approval; a gate cannot"
    if found.runtime.job is not None:
        yield f"reads '{reading.tool}', which submits a job itself; a reading answers at once"
    if found.lookups or found.state is not None:
        yield f"reads '{reading.tool}', which reads others itself; a reading may not read further"
    if found.transactional.session is not None:
        yield f"reads '{reading.tool}', which works in a session of its caller; a gate has none"
    yield from _argument_faults(reading.tool, reading.arguments, found)


def _compensation_faults(contract: Contract, known: Known) -> Iterator[str]:
    undo, path = contract.transactional.compensation, "'transactional.compensation'"
    if undo is None:
        return
    found = known(undo.tool)
    if found is None:
        yield f"{path} names '{undo.tool}', which is not in the catalog"
    elif undo.tool == contract.tool:
        yield f"{path} names the tool itself; name the one that undoes it"
    elif not found.effect.writes:
        yield f"{path} names '{undo.tool}', which is READ_ONLY and can undo nothing"
    elif found.idempotency is None:
        yield f"{path} names '{undo.tool}', which declares no idempotency; undoing twice must be harmless"
    elif found.transactional.session is not None:
        yield f"{path} names '{undo.tool}', which works in a session; what is committed is undone without one"
    else:
        yield from (f"{path} {fault}" for fault in _argument_faults(undo.tool, undo.arguments, found))


def _cancel_faults(contract: Contract, known: Known) -> Iterator[str]:
    """What cancels a job is called by the gateway, maybe twice, when nobody is there to ask."""
    job, path = contract.runtime.job, "'runtime.job.cancel'"
    if job is None or job.cancel is None:
        return
    name = job.cancel.tool
    found = known(name)
    if found is None:
        yield f"{path} names '{name}', which is not in the catalog"
    elif name == contract.tool:
        yield f"{path} names the tool itself; name the one that stops what it submitted"
    elif not found.effect.writes:
        yield f"{path} names '{name}', which is READ_ONLY and can stop nothing"
    elif found.idempotency is None:
        yield f"{path} names '{name}', which declares no idempotency; cancelling twice must be harmless"
    elif found.runtime.job is not None:
        yield f"{path} names '{name}', which submits a job itself; name one that answers at once"
    else:
        yield from (f"{path} {fault}" for fault in _argument_faults(name, job.cancel.arguments, found))


def _argument_faults(name: str, arguments: dict[str, Any], found: Contract) -> Iterator[str]:
    schema = found.affordance.input_schema
    properties = schema.get("properties", {})
    if schema.get("additionalProperties", False) is False and "$ref" not in schema and "allOf" not in schema:
        for argument in arguments:
            if argument not in properties:
                yield f"gives '{name}' the argument '{argument}', which it does not take"
    for argument in schema.get("required", ()):
        if argument not in arguments:
            yield f"does not give '{name}' the argument '{argument}', which it requires"
