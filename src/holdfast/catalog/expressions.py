"""Does every expression of a contract compile over the names it may use?"""

from collections.abc import Iterator
from typing import Any

from holdfast.model import tool
from holdfast.model.contract import Contract
from holdfast.model.expression import Expression, ExpressionError, Template

Place = tuple[str, Any, frozenset[str]]
"""Where it stands, its source (text, or a template of arguments), and what it may speak of."""


def expression_faults(contract: Contract) -> Iterator[str]:
    for path, source, names in places(contract):
        try:
            if isinstance(source, str):
                Expression(source, names)
            else:
                Template(source, names)
        except ExpressionError as error:
            yield f"'{path}': {error}"


def places(contract: Contract) -> Iterator[Place]:
    """Every expression of a contract; `Tool.compile` uses the same names."""
    for name, reading in contract.lookups.items():
        yield f"lookups.{name}.arguments", reading.arguments, tool.ARGS
    for index, rule in enumerate(contract.semantics):
        yield f"semantics.{index}.holds", rule.holds, tool.ARGS | set(contract.lookups)
    for index, predicate in enumerate(contract.sanity):
        yield f"sanity.{index}.holds", predicate.holds, tool.RESULT
    if contract.error_contract.in_band is not None:
        yield "error_contract.in_band", contract.error_contract.in_band, tool.ANSWER
    if (moved := contract.identity.migration) is not None and moved.arguments is not None:
        yield "identity.migration.arguments", moved.arguments, tool.ARGS
    yield from _state(contract)
    yield from _effects(contract)
    yield from _job(contract)


def _state(contract: Contract) -> Iterator[Place]:
    if (state := contract.state) is not None:
        yield "state.read.arguments", state.read.arguments, tool.ARGS
        if state.version is not None:
            yield "state.version", state.version, tool.TARGET
        for index, rule in enumerate(state.rules):
            yield f"state.rules.{index}.holds", rule.holds, tool.TARGET


def _effects(contract: Contract) -> Iterator[Place]:
    promise = contract.transactional
    if promise.session is not None and promise.session.role == "begin":
        yield "transactional.session.handle", promise.session.handle, tool.ANSWER
    if promise.preview is not None and promise.preview.read is not None:
        yield "transactional.preview.read.arguments", promise.preview.read.arguments, tool.ARGS
    if promise.compensation is not None:
        yield "transactional.compensation.arguments", promise.compensation.arguments, tool.RESULT
    for index, post in enumerate(promise.postconditions):
        path = f"transactional.postconditions.{index}"
        yield f"{path}.read.arguments", post.read.arguments, tool.RESULT
        yield f"{path}.holds", post.holds, tool.AFTER
    if (probe := promise.probe) is not None:
        yield "transactional.probe.read.arguments", probe.read.arguments, tool.KEYED
        yield "transactional.probe.committed", probe.committed, tool.EVIDENCE
        if probe.result is not None:
            yield "transactional.probe.result", probe.result, tool.EVIDENCE


def _job(contract: Contract) -> Iterator[Place]:
    if (job := contract.runtime.job) is None:
        return
    yield "runtime.job.id", job.id, tool.RESULT
    yield "runtime.job.poll.arguments", job.poll.arguments, tool.NAMED
    yield "runtime.job.done", job.done, tool.SEEN
    for name in ("failed", "result", "progress", "ends_in_s"):
        if (source := getattr(job, name)) is not None:
            yield f"runtime.job.{name}", source, tool.SEEN
    if job.cancel is not None:
        yield "runtime.job.cancel.arguments", job.cancel.arguments, tool.NAMED
