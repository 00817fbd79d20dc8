"""What is known at each place of a chain, and does every step get what it takes?"""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.chains.declared import (
    Branch,
    Chain,
    Choice,
    Node,
    Parallel,
    Place,
    Repeat,
    Step,
    Transaction,
    steps,
)
from holdfast.chains.faults import Findings
from holdfast.chains.shapes import UNKNOWN, BadPath, Shape, fits, member, names, paths_in, shape, together
from holdfast.model.contract import Contract
from holdfast.model.expression import Expression, ExpressionError


class Walk:
    """Goes through a chain in the order in which it runs, knowing at each place what is known there."""

    def __init__(self, chain: Chain, tools: Mapping[str, Contract], findings: Findings) -> None:
        self._chain = chain
        self._tools = tools
        self._findings = findings
        self._within = False
        """Whether this is the inside of a transaction, which fills in its session."""
        self._order = {step.id: number for number, step in enumerate(steps(chain.body))}

    def all(self) -> None:
        seen = {"input": Shape(dict(self._chain.input_schema))}
        after = self._body(self._chain.body, seen)
        if self._chain.output is not None:
            found = self._value(self._chain.output, after, ("output",), "output")
            wanted = self._chain.output_schema
            if wanted is not None:
                self._fit(found, dict(wanted), ("output",), "the chain's 'output_schema'")

    def _body(self, body: Iterable[Node], seen: Mapping[str, Shape]) -> dict[str, Shape]:
        """What is known once these are over."""
        here = dict(seen)
        for node in body:
            here |= self._node(node, here)
        return here

    def _node(self, node: Node, seen: dict[str, Shape]) -> dict[str, Shape]:
        match node:
            case Step():
                return {node.id: self._step(node, seen)}
            case Parallel():
                return self._parallel(node, seen)
            case Branch():
                return self._branch(node, seen)
            case Choice():
                return self._choice(node, seen)
            case Repeat():
                after = self._body(node.body, seen)
                self._condition(node.until, after, (*node.place, "until"))
                return after
            case Transaction():
                return self._transaction(node, seen)

    def _parallel(self, node: Parallel, seen: dict[str, Shape]) -> dict[str, Shape]:
        if node.join.score is not None:
            self._expression(node.join.score, {"result", *seen}, (*node.place, "join", "best"))
        after: dict[str, Shape] = {}
        for branch in node.branches:
            made = self._body(branch, seen)
            after |= {name: one for name, one in made.items() if name not in seen}
        return after if node.join.kind == "all" else _perhaps(after)

    def _branch(self, node: Branch, seen: dict[str, Shape]) -> dict[str, Shape]:
        after: dict[str, Shape] = {}
        for number, arm in enumerate(node.arms):
            self._condition(arm.when, seen, (*node.place, "branch", number, "when"))
            made = self._body(arm.body, seen)
            after |= {name: one for name, one in made.items() if name not in seen}
        return _perhaps(after)

    def _choice(self, node: Choice, seen: dict[str, Shape]) -> dict[str, Shape]:
        asked = {node.ask.id: self._step(node.ask, seen)}
        self._asked(node, self._result(node.ask))
        after: dict[str, Shape] = {}
        for body in (*(case.body for case in node.cases), node.otherwise):
            made = self._body(body, {**seen, **asked})
            after |= {name: one for name, one in made.items() if name not in seen and name not in asked}
        return asked | _perhaps(after)

    def _transaction(self, node: Transaction, seen: dict[str, Shape]) -> dict[str, Shape]:
        begun = {node.begin.id: self._step(node.begin, seen)}
        self._within, outside = True, self._within
        after = self._body(node.body, {**seen, **begun})
        self._within = outside
        return after

    def _asked(self, node: Choice, answer: Shape) -> None:
        """Whether the tool can name these cases, and say how sure it is."""
        named = self._answered(node.choice, answer, (*node.place, "choice"))
        sure = self._answered(node.confidence, answer, (*node.place, "confidence"))
        if sure is not None and fits(sure, {"type": "number"}) == "no":
            self._findings.wrong((*node.place, "confidence"), "this is never a number from 0 to 1")
        if named is None:
            return
        for case in node.cases:
            if fits(named, {"const": case.name}) == "no":
                text = f"{node.ask.tool!r} never answers {case.name!r}; this case would never be taken"
                self._findings.wrong((*node.place, "cases", case.name), text)
        if not node.otherwise and fits(named, {"enum": [case.name for case in node.cases]}) != "yes":
            text = "it may name something that is no case; a person is asked then, or say 'otherwise'"
            self._findings.unsure((*node.place, "cases"), text)

    def _answered(self, path: str, answer: Shape, place: Place) -> dict[str, Any] | None:
        try:
            names(path)  # which tells what is wrong with it in its own words
            return shape(f"answer | {path}", {"answer": answer}).schema
        except BadPath as error:
            self._findings.wrong(place, str(error))
            return None

    # --- one step -------------------------------------------------------------------------

    def _step(self, step: Step, seen: Mapping[str, Shape]) -> Shape:
        self._condition(step.when, seen, (*step.place, "when"))
        for name in (step.tool, *step.fallbacks):
            if (contract := self._tools.get(name)) is not None:
                self._arguments(step.arguments, contract, seen, (*step.place, "with"), step.id)
        result = self._result(step)
        if step.undo is not None and (undo := self._tools.get(step.undo.tool)) is not None:
            within = {**seen, step.id: result}
            self._arguments(step.undo.arguments, undo, within, (*step.place, "undo", "with"), step.id)
        if step.prove is not None and (read := self._tools.get(step.prove.tool)) is not None:
            there = (*step.place, "prove", "read", "with")
            self._arguments(step.prove.arguments, read, seen, there, step.id)
        may_be_missing = step.when is not None or step.failure == "continue"
        return Shape(result.schema, sure=False) if may_be_missing else result

    def _result(self, step: Step) -> Shape:
        """What the step answers; nothing is known where a tool that stands in answers something else."""
        contracts = [self._tools[name] for name in (step.tool, *step.fallbacks) if name in self._tools]
        schemas = [contract.affordance.output_schema for contract in contracts]
        if not schemas or any(schema != schemas[0] for schema in schemas) or not schemas[0]:
            return Shape(None)
        return Shape(dict(schemas[0]))

    def _arguments(
        self,
        arguments: Mapping[str, Any],
        contract: Contract,
        seen: Mapping[str, Shape],
        place: Place,
        step: str,
    ) -> None:
        schema = contract.affordance.input_schema
        required = schema.get("required", ())
        session = contract.transactional.session if self._within else None
        filled = None if session is None else session.handle
        if filled is not None and filled in arguments:
            text = "the transaction fills this with its session; leave it out"
            self._findings.wrong((*place, filled), text)
        for name in required:
            if name not in arguments and name != filled:
                self._findings.wrong(place, f"{contract.tool!r} needs {name!r}, which is not given")
        for name, value in arguments.items():
            wanted, there = member(schema, name), (*place, name)
            found = self._value(value, seen, there, step)
            if wanted is None:
                if schema.get("additionalProperties") is False or not schema.get("patternProperties"):
                    self._findings.wrong(there, f"{contract.tool!r} takes no {name!r}")
                continue
            if name in required and not found.sure and found.schema is not None:
                self._findings.unsure(there, f"{name!r} is needed and may be missing; the step fails then")
            self._fit(found, wanted, there, f"what {contract.tool!r} takes as {name!r}")

    def _fit(self, found: Shape, wanted: dict[str, Any], place: Place, what: str) -> None:
        if found.schema is None:
            self._findings.unsure(
                place, f"nothing is known of this value; it is held to {what} when it is there"
            )
            return
        match fits(found.schema, wanted):
            case "no":
                self._findings.wrong(place, f"this value is never {what}")
            case "perhaps":
                self._findings.unsure(
                    place, f"not every such value is {what}; one that is not fails the step"
                )
            case "unknown":
                self._findings.unsure(place, f"it cannot be proven that this is {what}")

    # --- values, paths and conditions -----------------------------------------------------

    def _value(self, value: Any, seen: Mapping[str, Shape], place: Place, step: str) -> Shape:
        match value:
            case str() if value.startswith("=="):
                return Shape({"const": value[1:]})
            case str() if value.startswith("="):
                return self._path(value[1:], seen, place, step)
            case Mapping():
                made = {str(k): self._value(v, seen, (*place, str(k)), step) for k, v in value.items()}
                return together(made)
            case list():
                items = [self._value(item, seen, (*place, n), step) for n, item in enumerate(value)]
                schemas = [one.schema for one in items if one.schema is not None]
                if len(schemas) < len(items):
                    return UNKNOWN
                return Shape(
                    {"type": "array", "prefixItems": schemas, "items": False, "minItems": len(schemas)}
                    if schemas
                    else {"const": []}
                )
            case _:
                return Shape({"const": value})

    def _path(self, path: str, seen: Mapping[str, Shape], place: Place, step: str) -> Shape:
        try:
            told = [self._reachable(name, seen, place, step) for name in sorted(names(path))]
            return shape(path, seen) if all(told) else UNKNOWN
        except BadPath as error:
            self._findings.wrong(place, str(error))
            return UNKNOWN

    def _reachable(self, name: str, seen: Mapping[str, Shape], place: Place, step: str) -> bool:
        if name in seen:
            return True
        if name not in self._order:
            there = ", ".join(sorted(seen))
            self._findings.wrong(place, f"there is no step {name!r}; known here are {there}")
        elif name == step or step in self._needs(name):
            self._findings.wrong(place, f"{step!r} and {name!r} wait for each other")
        elif self._order[name] > self._order.get(step, -1):
            self._findings.wrong(place, f"{name!r} runs after this; move it before, or use another value")
        else:
            self._findings.wrong(place, f"{name!r} runs beside this, or in another arm; wait for the join")
        return False

    def _needs(self, name: str) -> set[str]:
        """Steps that a step waits for, directly or by others, as far as they are written down."""
        wanted = {one.id: one for one in steps(self._chain.body)}
        found: set[str] = set()
        waiting = [name]
        while waiting:
            step = wanted.get(waiting.pop())
            if step is None:
                continue
            for used in paths_in(step.arguments):
                if used not in found:
                    found.add(used)
                    waiting.append(used)
        return found

    def _condition(self, source: str | None, seen: Mapping[str, Shape], place: Place) -> None:
        if source is not None:
            self._expression(source, set(seen), place)

    def _expression(self, source: str, known: set[str], place: Place) -> None:
        try:
            Expression(source, known)
        except ExpressionError as error:
            self._findings.wrong(place, str(error))


def _perhaps(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {name: Shape(one.schema, sure=False) for name, one in shapes.items()}
