"""What does a chain promise as a tool? What its steps promise, together; CHN-6.

People are asked about each step by itself (`composed`), so nobody is asked about the chain as well.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from holdfast.catalog.admission import Offer
from holdfast.chains.check import Report, compensation
from holdfast.chains.declared import Chain, Step, steps, transactions
from holdfast.chains.writing import written
from holdfast.model import defaults
from holdfast.model.canonical import digest
from holdfast.model.contract import (
    CHAINS,
    Affordance,
    Contract,
    EffectEntry,
    Idempotency,
    Identity,
    Preview,
    Probe,
    Reading,
    Runtime,
    Security,
    Transactional,
)
from holdfast.model.vocabulary import DataClass, Effect, Egress, Ordered, Reach, TimeoutClass, Undo

OUTCOME, PLAN = "_outcome", "_plan"
"""What the gateway itself reads; no chain can have such a name."""
HIDDEN = "holdfast:runs"
"""What these need, and nobody is given: the gateway's own readings need no scope."""
_TEXT = {"type": "string"}
Rank = TypeVar("Rank", bound=Ordered)


def offered(reports: Iterable[Report]) -> list[Offer]:
    """The tools of these chains, and what is read about them."""
    contracts = [_reading(OUTCOME, "key"), _reading(PLAN, "chain", "made_of")]
    contracts += [contract_of(report) for report in reports]
    return [Offer(contract=contract, upstream=CHAINS) for contract in contracts]


def contract_of(report: Report) -> Contract:
    chain, contracts = report.chain, tuple(report.contracts.values())
    writes = report.effect.writes
    security = [contract.security for contract in contracts]
    return Contract(
        identity=Identity(namespace=CHAINS, name=chain.name, version=chain.version, owner="chains"),
        affordance=Affordance(
            description=chain.description or f"The chain {chain.name!r}: {_row(chain)}.",
            input_schema=dict(chain.input_schema),
            output_schema=dict(chain.output_schema or {}),
            side_effects=f"It calls {_row(chain)}." if writes else "",
        ),
        runtime=_runtime(chain, contracts),
        security=Security(
            required_scopes=report.scopes,
            data_class=_most([one.data_class for one in security], DataClass.INTERNAL),
            labels=tuple(sorted({label for one in security for label in one.labels})),
            egress=_widest(one.egress for one in security),
        ),
        transactional=_promise(report),
        idempotency=Idempotency(upstream="transaction") if writes else None,
    )


def made_of(report: Report) -> str:
    """Names the chain and every contract that it uses: another one of either is another tool."""
    used = {name: contract.digest for name, contract in sorted(report.contracts.items())}
    return digest({"chain": written(report.chain), "contracts": used})


def plan_of(report: Report) -> dict[str, Any]:
    """What would be done, step by step, and what that costs; nothing is called to find out."""
    contracts, guess = report.contracts, report.estimate
    costs = [contracts[step.tool].runtime.cost for step in steps(report.chain.body)]
    return {
        "chain": report.chain.name,
        "version": report.chain.version,
        "steps": [_shown(report.chain, step, contracts) for step in steps(report.chain.body)],
        "effect": report.effect,
        "scopes": list(report.scopes),
        "latency_ms": guess.latency_ms,
        "success": guess.success,
        "cost": {name: sum(c.per_call for c in costs if c.currency == name) for name in _paid(costs)},
    }


def _paid(costs: Iterable[Any]) -> list[str]:
    return sorted({cost.currency for cost in costs if cost.per_call})


def _shown(chain: Chain, step: Step, contracts: Mapping[str, Contract]) -> dict[str, Any]:
    contract = contracts[step.tool]
    said: dict[str, Any] = {"when": step.when} if step.when else {}
    for node in transactions(chain.body):
        if step in steps(node.body):
            said["transaction"] = node.begin.id
    return said | {
        "name": step.id,
        "tool": step.tool,
        "version": contract.version,
        "effect": contract.effect,
        "undo": contract.transactional.undo,
        "taken_back_by": _undone_by(chain, step, contracts),
        "asks": contract.security.approval_floor,
    }


def _undone_by(chain: Chain, step: Step, contracts: Mapping[str, Contract]) -> str | None:
    return compensation(chain, step, contracts) if step.undo is None else step.undo.tool


def _promise(report: Report) -> Transactional:
    chain, contracts = report.chain, report.contracts
    seen = Preview(read=Reading(tool=_own(PLAN), arguments={"chain": chain.name, "made_of": made_of(report)}))
    if not report.effect.writes:
        return Transactional(effect=report.effect, preview=seen, composed=True)
    manifest: dict[EffectEntry, None] = {
        entry: None for contract in contracts.values() for entry in contract.transactional.manifest
    }
    writing = [step for step in steps(chain.body) if contracts[step.tool].leaves_something]
    back = {step.id: _undone_by(chain, step, contracts) for step in reversed(writing)}
    undoable = chain.saga and all(back.values())
    return Transactional(
        effect=report.effect,
        undo=Undo.SEMANTIC if undoable else Undo.NONE,
        manifest=tuple(manifest),
        rollback_plan=_plan_back(chain, back),
        preview=seen,
        probe=Probe(
            read=Reading(tool=_own(OUTCOME), arguments={"key": "=key"}),
            committed="state.completed",
            result="state.output",
        ),
        composed=True,
    )


def _plan_back(chain: Chain, back: Mapping[str, str | None]) -> str:
    if not chain.saga:
        return "what was done stays when a later step fails, and the answer says what that is"
    told = [f"{name} by {tool}" if tool else f"{name} by nobody: it stays" for name, tool in back.items()]
    return f"where a step fails, those before it are taken back, the last one first: {', '.join(told)}"[:4096]


def _runtime(chain: Chain, contracts: Iterable[Contract]) -> Runtime:
    """No costs of its own: each step is paid for by itself."""
    reach = _most([contract.runtime.reach for contract in contracts], Reach.NONE)
    within = chain.deadline_ms
    if within is None:
        return Runtime(timeout_class=TimeoutClass.LONG_RUNNING, reach=reach)
    fits = (one for one, limit_s in defaults.TIMEOUT_S.items() if within <= limit_s * 1000)
    kind = next(fits, TimeoutClass.ASYNC)
    return Runtime(timeout_class=kind, timeout_ms=min(within, int(defaults.ASYNC_S * 1000)), reach=reach)


def _reading(name: str, *arguments: str) -> Contract:
    """A tool of the gateway's own."""
    schema = {"type": "object", "properties": dict.fromkeys(arguments, _TEXT), "required": list(arguments)}
    return Contract(
        identity=Identity(namespace=CHAINS, name=name, version="1.0.0", owner="holdfast"),
        affordance=Affordance(description="Read by the gateway itself.", input_schema=schema),
        security=Security(required_scopes=(HIDDEN,)),
        transactional=Transactional(effect=Effect.READ_ONLY),
    )


def _own(name: str) -> str:
    return f"{CHAINS}.{name}"


def _row(chain: Chain) -> str:
    return ", then ".join(dict.fromkeys(step.tool for step in steps(chain.body)))


def _most(found: list[Rank], least: Rank) -> Rank:
    return max([*found, least], key=lambda one: one.rank)


_WIDTH = (Egress.NONE, Egress.PRIVATE, Egress.ALLOWLISTED)


def _widest(found: Iterable[Egress]) -> Egress:
    """What needs approval is asked about by the step that does it."""
    return max((one for one in found if one in _WIDTH), key=_WIDTH.index, default=Egress.NONE)
