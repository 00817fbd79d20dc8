"""Can this chain be run here, by this caller? Every fault at once, each with its place; CHN-1.

A binding is judged by its schema: what a path can give must be what the argument takes. What is proven not to
fit is a fault; what cannot be proven is a note, and looked at by the arguments gate when the step is called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.chains.boundaries import Ends, Partner, ends, nobody
from holdfast.chains.declared import Chain, Place, Step, choices, steps, transactions
from holdfast.chains.estimate import Estimate, Known, Measured, ending, estimate, known
from holdfast.chains.faults import Fault, Findings
from holdfast.chains.shapes import BadPath, compiled
from holdfast.chains.walk import Walk
from holdfast.model.call import Principal
from holdfast.model.contract import Contract
from holdfast.model.scopes import covers
from holdfast.model.vocabulary import Effect, Floor, Undo

MOST_DEEP = 10
"""Steps on the longest way through, where the chain does not say."""

Find = Callable[[str, str | None], Contract | None]
"""The contract of a tool, in a version that answers a spec."""


@dataclass(frozen=True, slots=True)
class Report:
    chain: Chain
    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...]
    scopes: tuple[str, ...]
    """What whoever runs it needs: all that its steps need."""
    effect: Effect
    """The worst that any of its steps does."""
    estimate: Estimate
    known: Mapping[str, Known]
    contracts: Mapping[str, Contract]
    """Of every tool that a run may need, by name; those that take steps back too."""

    @property
    def ok(self) -> bool:
        return not self.faults


def nothing_measured(tool: str) -> None:
    """Where nobody has watched."""
    return


def check(
    chain: Chain,
    find: Find,
    by: Principal | None = None,
    measured: Measured = nothing_measured,
    most_deep: int = MOST_DEEP,
    partner: Partner = nobody,
) -> Report:
    """`by`: whoever is going to run it; without, nobody's scopes are looked at."""
    findings = Findings()
    tools = _tools(chain, find, findings)
    Walk(chain, tools, findings).all()
    _undoable(chain, tools, findings)
    _readable(chain, tools, findings)
    _asking(chain, tools, findings)
    ending_by = ends(chain, tools, partner, findings)
    tools = {name: tools[name] for name in tools if name in _run_with(chain, tools)}
    tools |= {contract.tool: contract for found in ending_by.values() for contract in found}
    told = {name: known(contract, measured) for name, contract in tools.items()}
    guess = estimate(chain.body, told | _commits(chain, ending_by, told))
    _in_time(chain, guess, findings)
    if guess.steps > most_deep:
        findings.wrong(("steps",), f"the longest way through has {guess.steps} steps, more than {most_deep}")
    scopes = sorted({scope for contract in tools.values() for scope in contract.security.required_scopes})
    if by is not None:
        _allowed(chain, tools, ending_by, by, findings)
    effects = [contract.effect for contract in tools.values()] or [Effect.READ_ONLY]
    return Report(
        chain=chain,
        faults=tuple(findings.faults),
        notes=tuple(findings.notes),
        scopes=tuple(scopes),
        effect=max(effects, key=list(Effect).index),
        estimate=guess,
        known=told,
        contracts=tools,
    )


def _tools(chain: Chain, find: Find, findings: Findings) -> dict[str, Contract]:
    """Every contract that a run may need, stand-ins and undoings too."""
    found: dict[str, Contract] = {}
    for step in steps(chain.body):
        wanted: list[tuple[str, str | None, Place]] = [(step.tool, step.version, (*step.place, "tool"))]
        wanted += [(tool, None, (*step.place, "fallbacks", n)) for n, tool in enumerate(step.fallbacks)]
        if step.undo is not None:
            wanted.append((step.undo.tool, None, (*step.place, "undo", "tool")))
        if step.prove is not None:
            wanted.append((step.prove.tool, None, (*step.place, "prove", "read", "tool")))
        for tool, version, place in wanted:
            try:
                contract = find(tool, version)
            except ValueError as error:
                findings.wrong(place, f"the version {version!r} cannot be read: {error}")
                continue
            if contract is None:
                findings.wrong(
                    place, f"there is no tool {tool!r} here{_in(version)}; 'holdfast tools' lists them"
                )
            else:
                found[tool] = contract
        if (undoing := compensation(chain, step, found)) is not None:
            if (contract := find(undoing, None)) is None:
                text = (
                    f"{step.tool!r} is taken back by {undoing!r}, which is not here; say another with 'undo'"
                )
                findings.wrong((*step.place, "undo"), text)
            else:
                found[undoing] = contract
    return found


def compensation(chain: Chain, step: Step, contracts: Mapping[str, Contract]) -> str | None:
    """The tool by which a saga takes a step back, where the step leaves that to its contract."""
    contract = contracts.get(step.tool)
    declared = None if contract is None else contract.transactional.compensation
    undoes = chain.saga or step.failure == "compensate"
    return None if declared is None or step.undo is not None or not undoes else declared.tool


def _run_with(chain: Chain, tools: Mapping[str, Contract]) -> set[str | None]:
    """The tools that a run calls: what only shows an undoing is read by nobody who runs it."""
    found: set[str | None] = set()
    for step in steps(chain.body):
        found |= {step.tool, *step.fallbacks, compensation(chain, step, tools)}
        found |= set() if step.undo is None else {step.undo.tool}
    return found


def _commits(chain: Chain, ending_by: Ends, told: Mapping[str, Known]) -> dict[str, Known]:
    """What is known of what commits each transaction."""
    begun = [(node.begin, ending_by.get(node.begin.tool, ())) for node in transactions(chain.body)]
    return {ending(begin): told[found[0].tool] for begin, found in begun if found}


def _in(version: str | None) -> str:
    return "" if version is None else f" in version {version!r}"


def _undoable(chain: Chain, tools: Mapping[str, Contract], findings: Findings) -> None:
    """What cannot be taken back comes last, or somebody agrees to it before it runs; SAG-2."""
    if not chain.saga:
        return
    written = [step for step in steps(chain.body) if step.tool in tools]
    together = {step.id: node for node in transactions(chain.body) for step in steps(node.body)}
    for number, step in enumerate(written):
        contract = tools[step.tool]
        if not contract.leaves_something:
            continue
        promise = contract.transactional
        undone = step.undo is not None or promise.compensation is not None
        lasting = promise.undo in (Undo.NONE, Undo.PARTIAL) and not undone
        rest = [other for other in written[number + 1 :] if other.failure != "continue"]
        own = together.get(step.id)  # what fails in its own transaction undoes it
        later = [other.id for other in rest if own is None or together.get(other.id) is not own]
        if lasting and later:
            text = f"{step.tool!r} cannot be taken back, and {later[0]!r} comes after it and may fail"
            if contract.security.approval_floor is Floor.NONE:
                findings.wrong(step.place, f"{text}; put it last, or say with 'undo' what takes it back")
            else:
                findings.unsure(step.place, f"{text}; people are asked before it runs")
        elif not lasting and not undone:
            text = f"nothing says how {step.tool!r} is taken back; say it with 'undo', or in its contract"
            findings.wrong((*step.place, "undo"), text)


def _readable(chain: Chain, tools: Mapping[str, Contract], findings: Findings) -> None:
    """What shows an effect has none itself."""
    for step in steps(chain.body):
        if step.prove is None:
            continue
        place, read = (*step.place, "prove"), tools.get(step.prove.tool)
        if read is not None and read.effect.writes:
            findings.wrong((*place, "read", "tool"), f"{step.prove.tool!r} writes; name one that reads")
        try:
            compiled(step.prove.value or "@")
        except BadPath as error:
            findings.wrong((*place, "value"), str(error))


def _asking(chain: Chain, tools: Mapping[str, Contract], findings: Findings) -> None:
    """Whoever is asked which way to go changes nothing by answering."""
    for node in choices(chain.body):
        named = (node.ask.tool, *node.ask.fallbacks)
        for tool in named:
            if tool in tools and tools[tool].effect.writes:
                findings.wrong(node.ask.place, f"{tool!r} writes; a tool that chooses only reads")


def _in_time(chain: Chain, guess: Estimate, findings: Findings) -> None:
    said = sum(step.share or 0.0 for step in steps(chain.body))
    if said > 1:
        findings.wrong(("steps",), f"the shares of the deadline add up to {said:g}, more than 1")
    if chain.deadline_ms is not None and guess.latency_ms > chain.deadline_ms:
        findings.wrong(
            ("deadline_ms",),
            f"the longest way takes about {guess.latency_ms:,.0f} ms, more than {chain.deadline_ms:,}",
        )


def _allowed(
    chain: Chain, tools: Mapping[str, Contract], ending_by: Ends, by: Principal, findings: Findings
) -> None:
    begins = {node.begin.id for node in transactions(chain.body)}
    for step in steps(chain.body):
        undoing = compensation(chain, step, tools) if step.undo is None else step.undo.tool
        named = [step.tool, *step.fallbacks, *(() if undoing is None else (undoing,))]
        if step.id in begins:
            named += [contract.tool for contract in ending_by.get(step.tool, ())]
        for tool in named:
            contract = tools.get(tool)
            wanted = () if contract is None else contract.security.required_scopes
            lacking = [scope for scope in wanted if not covers(by.scopes, scope)]
            if lacking:
                text = f"{by.user!r} may not use {tool!r}: it needs the scope {', '.join(map(repr, lacking))}"
                findings.wrong(step.place, text)
