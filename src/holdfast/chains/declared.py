"""What does a chain declare? Steps in order, side by side, by a condition or a tool's word, several times.

Nothing here has been checked. A value that starts with `=` is a JMESPath over `input` and the results of the
steps before it, by their names; conditions are CEL over the same names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.model import defaults

Failure = Literal["abort", "continue", "fallback", "compensate"]
Joining = Literal["all", "first", "quorum", "best"]
FAILURES: tuple[Failure, ...] = ("abort", "continue", "fallback", "compensate")
Place = tuple[str | int, ...]
"""Where in the declaration something stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What takes a step back, where it is not what the tool's own contract says."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How is seen what a step changes? Read before it, after it, and after its undoing; SAG-4."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """With bindings to the input and to the steps before this one."""
    value: str | None = None
    """JMESPath into what was read: the part that must be as before. All of it where left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    when: str | None = None
    """Run it only if this holds; else it counts as done, with nothing to show."""
    retries: int = 0
    """How often it may be tried again where it had no effect."""
    share: float | None = None
    """Its part of the deadline; what is left is divided by how long steps usually take."""
    failure: Failure | None = None
    """None: `compensate` in a saga, else `abort`."""
    fallbacks: tuple[str, ...] = ()
    """Tools that may stand in for it, in this order."""
    undo: Undoing | None = None
    prove: Showing | None = None
    place: Place = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """When are branches side by side over, and which of their results counts?"""

    kind: Joining = "all"
    quorum: float = 1.0
    """For `quorum`: the share of branches that must succeed, rounded up."""
    score: str | None = None
    """For `best`: CEL over `result`; the branch with the highest wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    branches: tuple[tuple["Node", ...], ...]
    join: Join = field(default_factory=Join)
    place: Place = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    when: str | None
    """None: where no other arm holds."""
    body: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The first arm whose condition holds, and no other."""

    arms: tuple[Arm, ...]
    place: Place = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    body: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The case that a tool names, where it is sure enough; else a person chooses. CHN-2."""

    ask: Step
    cases: tuple[Case, ...]
    choice: str = "choice"
    """JMESPath into what it answers: the name of a case."""
    confidence: str = "confidence"
    """The same: how sure it is, from 0 to 1."""
    threshold: float = defaults.CHOICE_CONFIDENCE
    """So sure it must be, at least."""
    otherwise: tuple["Node", ...] = ()
    """Done instead of asking a person."""
    place: Place = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    most: int
    body: tuple["Node", ...]
    until: str | None = None
    place: Place = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is done in one session of an upstream: all of it counts from its commit on, or none; CHN-5."""

    begin: Step
    body: tuple["Node", ...]
    place: Place = ()


Node = Step | Parallel | Branch | Choice | Repeat | Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    name: str
    body: tuple[Node, ...]
    version: str = "1.0.0"
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    output: Any = None
    """What the chain answers, with bindings; None: what its last step did."""
    output_schema: Mapping[str, Any] | None = None
    deadline_ms: int | None = None
    saga: bool = False
    """Whether what was done is undone where the rest cannot be."""
    source: str = "chain"
    """The file, for messages."""


def steps(body: tuple[Node, ...], *, repeated: bool = True) -> Iterator[Step]:
    """Every step, in the order in which they are written; without `repeated`, those that run once at most."""
    for node in body:
        match node:
            case Step():
                yield node
            case Repeat() if not repeated:
                continue
            case _:
                yield from _asked(node)
                for inner in bodies(node):
                    yield from steps(inner, repeated=repeated)


def choices(body: tuple[Node, ...]) -> Iterator[Choice]:
    """Every place where a tool chooses, in the order in which they are written."""
    yield from (node for node in nodes(body) if isinstance(node, Choice))


def transactions(body: tuple[Node, ...]) -> Iterator[Transaction]:
    yield from (node for node in nodes(body) if isinstance(node, Transaction))


def nodes(body: tuple[Node, ...]) -> Iterator[Node]:
    """Every node but the steps that nodes begin with, in the order in which they are written."""
    for node in body:
        yield node
        for inner in bodies(node):
            yield from nodes(inner)


def bodies(node: Node) -> tuple[tuple[Node, ...], ...]:
    """What stands in a node, part by part."""
    match node:
        case Step():
            return ()
        case Parallel():
            return node.branches
        case Branch():
            return tuple(arm.body for arm in node.arms)
        case Choice():
            return (*(case.body for case in node.cases), node.otherwise)
        case Repeat() | Transaction():
            return (node.body,)


def _asked(node: Node) -> tuple[Step, ...]:
    """The step that a node begins with."""
    match node:
        case Choice():
            return (node.ask,)
        case Transaction():
            return (node.begin,)
        case _:
            return ()
