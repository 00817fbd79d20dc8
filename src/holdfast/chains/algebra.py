"""How is a chain written in Python? `a >> b` in order, `a | b` side by side, `branch(...)` by a condition,
`choose(...)` by what a tool says.

order = chain("order", step("reserve", "shop.reserve", sku="=input.sku")
    >> (step("mail", "mail.send", to="=input.mail") | step("sms", "sms.send", to="=input.phone")))
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chains.declared import (
    Arm,
    Branch,
    Case,
    Chain,
    Choice,
    Join,
    Node,
    Parallel,
    Place,
    Repeat,
    Step,
    Transaction,
    Undoing,
)


@dataclass(frozen=True, slots=True)
class Flow:
    """Steps that follow each other; what the operators put together."""

    body: tuple[Node, ...]

    def __rshift__(self, other: "Flow") -> "Flow":
        return Flow((*self.body, *other.body))

    def __or__(self, other: "Flow") -> "Flow":
        """Side by side. Three that are joined alike are one group of three, not two groups."""
        match self.body:
            case (Parallel() as before,) if before.join == Join():
                return Flow((replace(before, branches=(*before.branches, other.body)),))
        return Flow((Parallel(branches=(self.body, other.body)),))

    def joined(self, *, quorum: float | None = None, first: bool = False, best: str | None = None) -> "Flow":
        """The branches before, over when so many have succeeded, the first one has, or by the best score."""
        match self.body:
            case (Parallel() as before,):
                return Flow((replace(before, join=_join(quorum, first, best)),))
        raise ValueError("only branches side by side are joined; write (a | b).joined(...)")


def step(id: str, tool: str, /, *, undo: Undoing | None = None, **said: Any) -> Flow:
    """One call. `when_`, `retries_`, `share_`, `failure_`, `fallbacks_`, `version_` are about the step; all
    other names are arguments of the tool.
    """
    own = {name[:-1]: value for name, value in said.items() if name.endswith("_")}
    arguments = {name: value for name, value in said.items() if not name.endswith("_")}
    return Flow((Step(id=id, tool=tool, arguments=arguments, undo=undo, **own),))


def branch(*arms: tuple[str, Flow], otherwise: Flow | None = None) -> Flow:
    """The first arm whose CEL condition holds."""
    made = [Arm(when=when, body=flow.body) for when, flow in arms]
    if otherwise is not None:
        made.append(Arm(when=None, body=otherwise.body))
    return Flow((Branch(arms=tuple(made)),))


def choose(ask: Flow, cases: Mapping[str, Flow], *, otherwise: Flow | None = None, **said: Any) -> Flow:
    """The case that a step's answer names; `choice`, `confidence` and `threshold` as in a file."""
    match ask.body:
        case (Step() as asked,):
            named = tuple(Case(name=name, body=flow.body) for name, flow in cases.items())
            rest = () if otherwise is None else otherwise.body
            return Flow((Choice(ask=asked, cases=named, otherwise=rest, **said),))
    raise ValueError("one step chooses; write choose(step(...), {...})")


def repeat(most: int, flow: Flow, *, until: str | None = None) -> Flow:
    return Flow((Repeat(most=most, body=flow.body, until=until),))


def transaction(begin: Flow, flow: Flow) -> Flow:
    """What follows in one session of an upstream, which a step begins: all of it, or none."""
    match begin.body:
        case (Step() as begun,):
            return Flow((Transaction(begin=begun, body=flow.body),))
    raise ValueError("one step begins a transaction; write transaction(step(...), ...)")


def chain(name: str, flow: Flow, /, *, input: Mapping[str, Any] | None = None, **said: Any) -> Chain:
    """A chain that can be checked and run; `saga`, `deadline_ms`, `output`, ... as in a file."""
    schema: dict[str, Any] = {} if input is None else {"input_schema": input}
    return Chain(name=name, body=_placed(flow.body, ("steps",)), **schema, **said)


def _join(quorum: float | None, first: bool, best: str | None) -> Join:
    if quorum is not None:
        return Join(kind="quorum", quorum=quorum)
    if best is not None:
        return Join(kind="best", score=best)
    return Join(kind="first" if first else "all")


def _placed(body: tuple[Node, ...], place: Place) -> tuple[Node, ...]:
    """Every node told where it stands, as a file would say it."""
    return tuple(_node(node, (*place, number)) for number, node in enumerate(body))


def _node(node: Node, place: Place) -> Node:
    match node:
        case Step():
            return replace(node, place=place)
        case Parallel():
            branches = [_placed(one, (*place, "parallel", n)) for n, one in enumerate(node.branches)]
            return replace(node, branches=tuple(branches), place=place)
        case Branch():
            arms = [
                replace(arm, body=_placed(arm.body, (*place, "branch", n, "do")))
                for n, arm in enumerate(node.arms)
            ]
            return replace(node, arms=tuple(arms), place=place)
        case Choice():
            return _placed_choice(node, (*place, "branch"))
        case Repeat():
            return replace(node, body=_placed(node.body, (*place, "do")), place=place)
        case Transaction():
            inside = (*place, "transaction")
            begin = replace(node.begin, place=(*inside, "begin"))
            return replace(node, begin=begin, body=_placed(node.body, (*inside, "steps")), place=place)


def _placed_choice(node: Choice, place: Place) -> Choice:
    cases = [replace(case, body=_placed(case.body, (*place, "cases", case.name))) for case in node.cases]
    return replace(
        node,
        ask=replace(node.ask, place=(*place, "ask")),
        cases=tuple(cases),
        otherwise=_placed(node.otherwise, (*place, "otherwise")),
        place=place,
    )
