"""Which steps of a chain can people be asked about before the first of them runs? APR-8."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.chains.declared import Branch, Chain, Node, Parallel, Step
from holdfast.chains.shapes import names
from holdfast.chains.values import Missing, filled
from holdfast.gateway.plans import Wish


def steps_known(chain: Chain, given: Any) -> list[Wish]:
    """Those whose arguments follow from the input alone. A step that may be run several times asks for itself
    each time, and so does a tool that stands in for another.
    """
    found = []
    for step in _once(chain.body):
        if not _used(step.arguments) <= {"input"}:
            continue
        try:
            arguments = filled(step.arguments, {"input": given}, (*step.place, "with"))
        except Missing:  # the run will say so
            continue
        found.append(Wish(tool=step.tool, arguments=arguments, version=step.version))
    return found


def _once(body: tuple[Node, ...]) -> Iterator[Step]:
    for node in body:
        match node:
            case Step():
                yield node
            case Parallel():
                for branch in node.branches:
                    yield from _once(branch)
            case Branch():
                for arm in node.arms:
                    yield from _once(arm.body)
            case _:
                continue


def _used(value: Any) -> frozenset[str]:
    """The names that paths in a value begin with."""
    match value:
        case str() if value.startswith("=") and not value.startswith("=="):
            return names(value[1:])
        case Mapping():
            return frozenset(name for inner in value.values() for name in _used(inner))
        case list():
            return frozenset(name for inner in value for name in _used(inner))
        case _:
            return frozenset()
