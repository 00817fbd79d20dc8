"""How long will a chain take, and how likely is it to come through?

From what is known of each tool: what was measured, else what its contract promises, else a guess that says so
in its source. Steps are taken to fail independently; where they share a cause the chain does worse.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from holdfast.chains.declared import Branch, Choice, Node, Parallel, Repeat, Step, Transaction
from holdfast.model.contract import Contract

GUESSED_SUCCESS = 0.99
"""Of a tool of which nobody knows anything."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one tool."""

    latency_ms: float
    success: float
    source: str
    """`measured`, `promised` or `guessed`."""


Measured = Callable[[str], Known | None]
"""What was seen of a tool lately; None where too little was."""


@dataclass(frozen=True, slots=True)
class Estimate:
    latency_ms: float
    """Of the longest way through."""
    success: float
    steps: int
    """On the longest way through: how deep it is."""


def known(contract: Contract, measured: Measured) -> Known:
    seen = measured(contract.tool)
    if seen is not None:
        return seen
    runtime, sla = contract.runtime, contract.runtime.sla
    half = runtime.timeout_s * 1000 / 2  # a tool may take all of its time, and seldom does
    if sla is None:
        return Known(half, GUESSED_SUCCESS, "guessed")
    return Known(sla.p99_ms or half, sla.availability or GUESSED_SUCCESS, "promised")


def estimate(body: Sequence[Node], tools: Mapping[str, Known]) -> Estimate:
    """Of nodes one after the other."""
    return _row([_node(node, tools) for node in body])


def shares(steps: Sequence[Step], tools: Mapping[str, Known]) -> dict[str, float]:
    """Each step's part of the time that is left: as declared, the rest by how long steps usually take."""
    said = {step.id: step.share for step in steps if step.share is not None}
    others = {
        step.id: tools[step.tool].latency_ms for step in steps if step.share is None and step.tool in tools
    }
    left, total = 1 - sum(said.values()), sum(others.values()) or 1.0
    return said | {name: left * latency / total for name, latency in others.items()}


def _node(node: Node, tools: Mapping[str, Known]) -> Estimate:
    match node:
        case Step():
            return _step(node, tools)
        case Parallel():
            return _parallel([estimate(branch, tools) for branch in node.branches], node)
        case Branch():
            return _worst([estimate(arm.body, tools) for arm in node.arms])
        case Choice():
            asked = _step(node.ask, tools)
            ways = [*(case.body for case in node.cases), node.otherwise]
            return _row([asked, _worst([estimate(way, tools) for way in ways])])
        case Repeat():
            once = estimate(node.body, tools)
            return Estimate(once.latency_ms * node.most, once.success**node.most, once.steps * node.most)
        case Transaction():
            return _row([_step(node.begin, tools), estimate(node.body, tools), _commit(node, tools)])


def ending(begin: Step) -> str:
    """Under which name is known what commits the session that a step begins."""
    return f"{begin.tool}~commit"


def _commit(node: Transaction, tools: Mapping[str, Known]) -> Estimate:
    found = tools.get(ending(node.begin))
    return Estimate(0.0, 1.0, 1) if found is None else Estimate(found.latency_ms, found.success, 1)


def _row(each: Sequence[Estimate]) -> Estimate:
    """Of what comes one after the other."""
    return Estimate(
        sum(one.latency_ms for one in each), prod(one.success for one in each), sum(one.steps for one in each)
    )


def _worst(ways: Sequence[Estimate]) -> Estimate:
    """Of ways of which one is gone."""
    return Estimate(
        max(way.latency_ms for way in ways),
        min(way.success for way in ways),
        max(way.steps for way in ways),
    )


def _step(step: Step, tools: Mapping[str, Known]) -> Estimate:
    """A retry or a stand-in is another chance; a step that may be left out fails nobody."""
    ways = [tools[name] for name in (step.tool, *step.fallbacks) if name in tools]
    if not ways:
        return Estimate(0.0, 0.0, 1)
    tries = [ways[0].success] * (1 + step.retries) + [way.success for way in ways[1:]]
    failed = prod(1 - success for success in tries)
    success = 1.0 if step.failure == "continue" else 1 - failed
    return Estimate(ways[0].latency_ms, success, 1)


def _parallel(branches: list[Estimate], node: Parallel) -> Estimate:
    steps = max(one.steps for one in branches)
    latencies, chances = sorted(one.latency_ms for one in branches), [one.success for one in branches]
    match node.join.kind:
        case "all":
            return Estimate(latencies[-1], prod(chances), steps)
        case "quorum":
            needed = ceil(node.join.quorum * len(branches) - 1e-9)
            return Estimate(latencies[needed - 1], _at_least(needed, chances), steps)
        case "first":
            return Estimate(latencies[0], 1 - prod(1 - chance for chance in chances), steps)
        case "best":
            return Estimate(latencies[-1], 1 - prod(1 - chance for chance in chances), steps)


def _at_least(needed: int, chances: Sequence[float]) -> float:
    """The likelihood that so many of them succeed; the branches need not be alike."""
    exactly = [1.0] + [0.0] * len(chances)
    for chance in chances:
        for count in range(len(exactly) - 1, 0, -1):
            exactly[count] = exactly[count] * (1 - chance) + exactly[count - 1] * chance
        exactly[0] *= 1 - chance
    return sum(exactly[needed:])
