"""Which choices does a run leave to people, and who makes them? CHN-2."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.chains.choosing import chosen, said
from holdfast.chains.declared import Choice, choices
from holdfast.chains.reading import read
from holdfast.gateway.operators import operates
from holdfast.model.call import Principal
from holdfast.model.errors import ConfigError, Forbidden, HoldfastError, NotFound
from holdfast.model.run import CHOICE, Line, Run, RunState
from holdfast.ports import Ports, Runs


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """What a tool was asked and was not sure of."""

    step: str
    """As its line in the journal is called."""
    tool: str
    call_id: str
    cases: tuple[str, ...]
    said: str | None
    """The case that it named, where it named one."""
    confidence: float | None
    threshold: float

    def shown(self) -> dict[str, Any]:
        """For programs to read."""
        return {
            "step": self.step,
            "cases": list(self.cases),
            "said": self.said,
            "confidence": self.confidence,
            "threshold": self.threshold,
            "call_id": self.call_id,
        }


def open_choices(run: Run, lines: Sequence[Line]) -> list[OpenChoice]:
    """Those that it waits for now. A branch that was given up has none, though nobody chose there."""
    if run.state is not RunState.RUNNING or not run.waits_for:
        return []
    try:
        chain = read(dict(run.declared), run.chain)
    except ConfigError:  # what was declared is no longer kept
        return []
    return [
        one
        for node in choices(chain.body)
        for one in _of(node, lines)
        if f"of step {one.step!r}:" in run.waits_for
    ]


def _of(node: Choice, lines: Sequence[Line]) -> Iterator[OpenChoice]:
    made = {line.name for line in lines if line.name.endswith(CHOICE)}
    for line in lines:
        if line.name.partition("#")[0] != node.ask.id or line.name + CHOICE in made:
            continue
        seen = said(node, line.result)
        cases = tuple(case.name for case in node.cases)
        told = (seen.case, seen.confidence, node.threshold)
        yield OpenChoice(line.name, line.tool, line.call_id, cases, *told)


class Choices:
    """Hung on `Gateway.chains`."""

    def __init__(self, ports: Ports, runs: Runs, enqueue: Callable[[Run], Awaitable[None]]) -> None:
        self._ports = ports
        self._runs = runs
        self._enqueue = enqueue

    async def choose(self, by: Principal, run_id: str, step: str, case: str) -> Run:
        """Go on with a run in one of the ways that it may go; the run as it is then."""
        run = await self._run(by, run_id)
        found = {one.step: one for one in open_choices(run, await self._runs.lines(by.tenant, run_id))}
        if step not in found:
            there = f"but at {', '.join(map(repr, found))}" if found else "nor at any other step"
            raise HoldfastError(f"run {run_id!r} waits for no choice at {step[:64]!r}, {there}")
        if case not in found[step].cases:
            there = ", ".join(map(repr, found[step].cases))
            raise NotFound(f"there is no case {case[:64]!r} at {step!r}; there are {there}")
        line = chosen(step, case, f"{case!r}, as {by.user!r} chose")
        taken = await self._runs.choose(run, line, by.user)
        if taken is None:
            raise HoldfastError(f"run {run_id!r} has gone on meanwhile; look at it again")
        await self._enqueue(taken)
        return taken

    def may(self, by: Principal, run: Run) -> bool:
        """An operator, or the person for whom it runs. An agent does not overrule what was unsure."""
        in_person = "user" in by.roles and by.user == run.wanted_by.get("user")
        return in_person or operates(by, self._ports.people)

    async def _run(self, by: Principal, run_id: str) -> Run:
        run = await self._runs.get(by.tenant, run_id)
        if run is None or not (self.may(by, run) or run.principal == by.id):
            raise NotFound(f"there is no run {run_id!r} of yours; 'holdfast chain runs' lists them")
        if not self.may(by, run):
            own = run.wanted_by.get("user")
            raise Forbidden(f"a person chooses: an operator, or {own!r} at a terminal or in the console")
        return run
