"""A store in which a lot has happened: `fill` writes the records of many calls, as a week would leave them.

    python -m bench.console_data 100000 sqlite:///big.db

Bodies are made as the ledger makes them, and written through the store's own writer: the chains hold, the
tree is grown over them and the audit verifies. There are records only, and no operations behind them.
Tools are those of the gateway's catalog, which the newest call is always one of, and thirty that it lacks.
"""

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import orjson

from holdfast.gateway import Gateway
from holdfast.gateway.gateway import Source
from holdfast.lifecycle import receive
from holdfast.model.call import Call, Decision, Principal, Proposal
from holdfast.model.contract import Affordance, Contract, Cost, EffectEntry, Identity, Runtime, Transactional
from holdfast.model.errors import Code
from holdfast.model.moment import iso_cut
from holdfast.model.observation import ApprovalRef, Observation, Status
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import Effect, Floor, Operation, State, Undo
from holdfast.records.body import act_body, intent_body, outcome_body
from holdfast.stores.sql.engine import Transaction

DAYS = 7
AT_ONCE = 512
TENANT = "default"
UPSTREAMS = ("crm", "files", "git", "mail", "pay", "search")
VERBS = ("delete", "find", "list", "read", "update")
PEOPLE = tuple(f"person{number:02d}" for number in range(40))
AGENTS = ("claude", "copilot", "cron", "helper", "planner", "reviewer")
WRITES = frozenset({"delete", "update"})

FATES = {
    "done": 900,
    "failed": 40,
    "refused": 30,
    "replayed": 12,
    "approved": 8,
    "denied": 2,
    "held": 1,
    "unknown": 3,
    "settled": 2,
    "cancelled": 1,
    "alarmed": 1,
}
"""What becomes of a thousand calls."""
FAILURES = (Code.TIMEOUT, Code.DEPENDENCY_UNAVAILABLE, Code.OUTPUT_INVALID, Code.INTERNAL)
REFUSALS = (Code.POLICY_VIOLATION, Code.TYPE_MISMATCH, Code.PERMISSION_DENIED, Code.RATE_LIMITED)
Written = tuple[str, str, str, float, str]
"""Tenant, call, kind, time and body."""


class Bodies(NamedTuple):
    """What the records of one tool's calls say, by how they end."""

    intent: dict[str, Any]
    ends: dict[str, dict[str, Any]]


async def fill(config: Source | Gateway, calls: int, *, days: float = DAYS, seed: int = 1) -> None:
    """Record so many calls of the last days, have them sequenced, and take them into the view."""
    async with AsyncExitStack() as stack:
        if isinstance(config, Gateway):
            gateway = config
        else:
            gateway = await stack.enter_async_context(Gateway.open(config, connect=False))
        audit: Any = gateway._auditing._audit
        story = _calls(gateway, calls, days, random.Random(seed))
        while some := tuple(islice(story, AT_ONCE)):
            await audit._writer.submit(TENANT, False, _write, some)
            await asyncio.sleep(0)
        while await audit.sequence():
            pass
        while await gateway.views._kept.catch_up(AT_ONCE):
            pass


async def _write(transaction: Transaction, records: tuple[Written, ...]) -> None:
    for record in records:
        transaction.record(*record)


def _calls(gateway: Gateway, calls: int, days: float, chance: random.Random) -> Iterator[Written]:
    listed = [entry.tool for entry in gateway._ports.catalog.list()]
    own = [_bodies(gateway, tool) for tool in listed]
    others = [_bodies(gateway, tool) for tool in _tools()]
    step, now = days * 86_400 / max(calls, 1), time.time()
    fates = chance.choices(list(FATES), list(FATES.values()), k=calls)
    for number, fate in enumerate(fates):
        last = number == calls - 1
        from_catalog = own and (last or chance.random() < 0.3)
        bodies = chance.choice(own if from_catalog else others)
        at = now - (calls - number) * step - 60
        yield from _life(bodies, "done" if last else fate, at, chance)


def _life(bodies: Bodies, fate: str, at: float, chance: random.Random) -> Iterator[Written]:
    call_id = f"call_{int(at * 1000):012x}{chance.getrandbits(64):016x}"
    person = chance.choice(PEOPLE)
    who = {"caller": person, "agent": chance.choice(AGENTS), "nonce": f"{chance.getrandbits(96):024x}"}
    who["trace_id"] = f"{chance.getrandbits(128):032x}"
    if chance.random() < 0.4:
        who["task"] = f"task-{chance.randrange(2000)}"
    took = chance.lognormvariate(3.5, 1.2)
    told = partial(_told, call_id, who, took)
    intent = told("intent", at, bodies.intent)
    after = at + took / 1000
    ends = {name: partial(told, body=body) for name, body in bodies.ends.items()}
    match fate:
        case "refused":
            yield ends[chance.choice(REFUSALS)]("refusal", after)
        case "held" | "approved" | "denied":
            yield ends["held"]("hold", at)
            if fate != "held":
                said = {
                    "approval_id": f"apr_{call_id[5:]}",
                    "role": "operator",
                    "approve": fate == "approved",
                }
                answer = "APPROVED" if fate == "approved" else "DENIED"
                body = act_body(at + 30, "vote", "olga", **said, answer=answer)
                yield TENANT, call_id, "vote", at + 30, body
            if fate == "approved":
                yield told("intent", at + 31, bodies.intent)
                yield ends["done"]("outcome", at + 31 + took / 1000)
        case "failed":
            yield from (intent, ends[chance.choice(FAILURES)]("outcome", after))
        case "unknown" | "settled":
            yield from (intent, ends["unknown"]("outcome", after))
            if fate == "settled":
                said = {"from": "unknown", "to": "committed", "note": ""}
                yield TENANT, call_id, "settle", after + 9, act_body(after + 9, "settle", "olga", **said)
        case "cancelled":
            yield ends["cancelled"]("refusal", after)
        case _:
            yield from (intent, ends["done"]("outcome", after))
            if fate == "replayed":
                yield ends["replayed"]("replay", after + 5)
            if fate == "alarmed":
                body = act_body(after, "alarm", person, alarm="the key of another call was used")
                yield TENANT, call_id, "security", after, body


def _told(
    call_id: str, who: dict[str, str], took: float, kind: str, at: float, body: dict[str, Any]
) -> Written:
    said = {**body, **who, "timestamp": iso_cut(at)}
    if kind != "intent":
        said["latency_ms"] = round(took, 3)
    if kind == "hold":
        said["approval_id"] = f"apr_{call_id[5:]}"
    return TENANT, call_id, kind, at, orjson.dumps(said).decode()


def _bodies(gateway: Gateway, tool: Tool) -> Bodies:
    call, now = _call(gateway, tool), time.time()
    secrets = gateway._ports.secrets
    ends: dict[str, dict[str, Any]] = {
        "done": _end(call, Status.DONE, None, State.COMMITTED),
        "held": _end(call, Status.HELD, Code.APPROVAL_REQUIRED, None),
        "unknown": _end(call, Status.UNKNOWN, Code.OUTCOME_UNKNOWN, State.UNKNOWN),
        "cancelled": _end(call, Status.REFUSED, Code.CANCELLED, None),
        "replayed": _end(call, Status.DONE, None, State.COMMITTED, replayed=True),
        **{code: _end(call, Status.FAILED, code, State.NO_EFFECT) for code in FAILURES},
        **{code: _end(call, Status.REFUSED, code, None) for code in REFUSALS},
    }
    if tool.contract.runtime.cost.per_call:
        spent = {"currency": "USD", "parts": {"external_api": 1200}}
        ends["done"]["cost"] = spent
    return Bodies(orjson.loads(intent_body(call, now, secrets)), ends)


def _end(
    call: Call, status: Status, code: Code | None, state: State | None, *, replayed: bool = False
) -> dict[str, Any]:
    approval = ApprovalRef("apr_", "", "") if status is Status.HELD else None
    observation = Observation(
        call_id=call.id,
        tool=call.tool.contract.tool,
        status=status,
        code=code,
        trace_id=call.trace_id,
        data={"found": [1, 2, 3]} if status is Status.DONE else None,
        attempts=0 if status in (Status.REFUSED, Status.HELD) else 1,
        approval=approval,
        replayed=replayed,
    )
    body: dict[str, Any] = orjson.loads(outcome_body(call, time.time(), observation, code, "0" * 64, state))
    return body


def _call(gateway: Gateway, tool: Tool) -> Call:
    somebody = Principal(user="ana", agent="helper", scopes=frozenset({"**"}), trust=60)
    arguments = {"item": "a-1", "limit": 10}
    call = receive(Proposal(tool=tool.contract.tool, arguments=arguments, principal=somebody), gateway._ports)
    call.tool, call.arguments, call.key = tool, arguments, None
    call.commitment = "f" * 64
    call.decision = Decision(
        id="dec_0", version="starter", allow=True, floor=Floor.NONE, need={}, facts={"args": arguments}
    )
    return call


def _tools() -> list[Tool]:
    return [_tool(upstream, verb) for upstream in UPSTREAMS for verb in VERBS]


def _tool(upstream: str, verb: str) -> Tool:
    writes = verb in WRITES
    entry = EffectEntry(resource=upstream, operation=Operation.UPDATE, scope="one")
    return Tool.compile(
        Contract(
            identity=Identity(namespace=upstream, name=verb, version="1.2.0"),
            affordance=Affordance(description=f"{verb} in {upstream}", input_schema={"type": "object"}),
            transactional=Transactional(
                effect=Effect.MEDIUM_RISK_WRITE if writes else Effect.READ_ONLY,
                undo=Undo.EXACT,
                manifest=(entry,) if writes else (),
            ),
            runtime=Runtime(cost=Cost(per_call=0.0012)) if upstream in ("pay", "search") else Runtime(),
        )
    )


def main() -> None:
    calls, store = int(sys.argv[1]), sys.argv[2]
    started = time.perf_counter()
    asyncio.run(fill({"store": store, "upstreams": {"b": {"functions": "bench.tools:TOOLS"}}}, calls))
    print(f"{calls} calls in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
