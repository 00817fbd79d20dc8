"""Can what a chain declares as one transaction be one? All that writes in it works in the same session."""

from collections.abc import Callable, Iterator, Mapping

from holdfast.chains.declared import Chain, Parallel, Step, Transaction, nodes, steps, transactions
from holdfast.chains.faults import Findings
from holdfast.model.contract import Contract

Partner = Callable[[str, str, str], Contract | None]
"""The tool of a namespace that has a role in sessions of a name."""
Ends = Mapping[str, tuple[Contract, ...]]
"""By the tool that begins a session, those that commit it and roll it back."""


def nobody(namespace: str, session: str, role: str) -> None:
    """Where no sessions are kept."""
    return


def ends(chain: Chain, tools: Mapping[str, Contract], partner: Partner, findings: Findings) -> Ends:
    """Every fault of a chain's transactions is found on the way."""
    found: dict[str, tuple[Contract, ...]] = {}
    within: set[str] = set()
    for node in transactions(chain.body):
        within |= {node.begin.id, *(step.id for step in steps(node.body))}
        _flat(node, findings)
        begin = tools.get(node.begin.tool)
        part = None if begin is None else begin.transactional.session
        if begin is None:
            continue
        if part is None or part.role != "begin":
            text = f"{begin.tool!r} begins no session; its contract would say so with 'transactional.session'"
            findings.wrong((*node.begin.place, "tool"), text)
            continue
        found[begin.tool] = tuple(_ending(node, begin, partner, findings))
        for step in steps(node.body):
            _inside(step, begin, tools, findings)
    _outside(chain, within, tools, findings)
    return found


def _flat(node: Transaction, findings: Findings) -> None:
    for inner in nodes(node.body):
        if isinstance(inner, Transaction):
            findings.wrong(inner.place, "a transaction stands in no other; end the one around it first")
        elif isinstance(inner, Parallel):
            findings.wrong(inner.place, "in a transaction one thing is done after the other")


def _ending(node: Transaction, begin: Contract, partner: Partner, findings: Findings) -> Iterator[Contract]:
    part, namespace = begin.transactional.session, begin.identity.namespace
    assert part is not None  # noqa: S101  # whoever asks has looked
    for role in ("commit", "rollback"):
        place, contract = (*node.begin.place, "tool"), partner(namespace, part.name, role)
        if contract is None or contract.transactional.session is None:
            text = f"no tool of {namespace!r} that may be used here has the role {role!r} in session"
            findings.wrong(place, f"{text} {part.name!r}")
            continue
        own = contract.transactional.session.handle
        more = [one for one in contract.affordance.input_schema.get("required", ()) if one != own]
        if more:
            text = f"{contract.tool!r} needs {more[0]!r}, and a transaction tells it of its session alone"
            findings.wrong(place, text)
        yield contract


def _inside(step: Step, begin: Contract, tools: Mapping[str, Contract], findings: Findings) -> None:
    own = begin.transactional.session
    assert own is not None  # noqa: S101  # whoever asks has looked
    for tool in (step.tool, *step.fallbacks):
        if (contract := tools.get(tool)) is None:
            continue
        part, place = contract.transactional.session, (*step.place, "tool")
        if part is None:
            if contract.effect.writes:
                text = f"{tool!r} writes outside of session {own.name!r}"
                findings.wrong(place, f"{text}; put it before the transaction, or after it")
        elif (contract.identity.namespace, part.name) != (begin.identity.namespace, own.name):
            findings.wrong(place, f"{tool!r} works in another session than {begin.tool!r} begins")
        elif part.role != "step":
            findings.wrong(place, f"{tool!r} has the role {part.role!r}, which the transaction takes care of")


def _outside(chain: Chain, within: set[str], tools: Mapping[str, Contract], findings: Findings) -> None:
    """Nothing of a session that is not committed could be taken back by a saga."""
    for step in steps(chain.body):
        contract = tools.get(step.tool)
        if step.id in within or contract is None or contract.transactional.session is None:
            continue
        text = f"{step.tool!r} works in a session; with 'transaction' all of it is done, or nothing"
        (findings.wrong if chain.saga else findings.unsure)((*step.place, "tool"), text)
