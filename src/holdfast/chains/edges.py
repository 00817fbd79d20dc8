"""Upon which steps does each step rest? Its run's trace and records keep that; CHN-5."""

from collections.abc import Iterable, Mapping

from holdfast.chains.declared import Branch, Chain, Choice, Node, Parallel, Repeat, Step, Transaction, steps
from holdfast.chains.shapes import paths_in
from holdfast.model.expression import Expression, ExpressionError
from holdfast.model.run import Line, StepState

Edges = Mapping[str, frozenset[str]]


def edges(chain: Chain) -> Edges:
    """By a step's name, those whose answers it is given, or that decide whether it is done at all."""
    known = frozenset(step.id for step in steps(chain.body))
    return dict(_body(chain.body, known, frozenset()))


def calls_of(names: Iterable[str], lines: Mapping[str, Line]) -> tuple[str, ...]:
    """The calls that these steps were, the last one of each, in the order in which they were over."""
    wanted = set(names)
    last = {
        line.name.partition("#")[0]: line.call_id
        for line in sorted(lines.values(), key=lambda line: line.number)
        if line.call_id and "~" not in line.name and line.state is not StepState.FAILED
    }
    return tuple(call for name, call in last.items() if name in wanted)


def _body(
    body: Iterable[Node], known: frozenset[str], decided: frozenset[str]
) -> Iterable[tuple[str, frozenset[str]]]:
    for node in body:
        yield from _node(node, known, decided)


def _node(node: Node, known: frozenset[str], decided: frozenset[str]) -> Iterable[tuple[str, frozenset[str]]]:
    match node:
        case Step():
            yield node.id, decided | _read(node.when, known) | (paths_in(node.arguments) & known)
        case Parallel():
            for branch in node.branches:
                yield from _body(branch, known, decided)
        case Branch():
            for arm in node.arms:  # that an arm before it was not taken decides too
                decided |= _read(arm.when, known)
                yield from _body(arm.body, known, decided)
        case Choice():
            yield from _node(node.ask, known, decided)
            for body in (*(case.body for case in node.cases), node.otherwise):
                yield from _body(body, known, decided | {node.ask.id})
        case Transaction():
            yield from _node(node.begin, known, decided)
            yield from _body(node.body, known, decided | {node.begin.id})
        case Repeat():
            yield from _body(node.body, known, decided | _read(node.until, known))


def _read(condition: str | None, known: frozenset[str]) -> frozenset[str]:
    if condition is None:
        return frozenset()
    try:
        return frozenset(Expression(condition, known | {"input"}).uses & known)
    except ExpressionError:  # it fails the step when it is judged, with its place
        return frozenset()
