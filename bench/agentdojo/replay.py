"""What is left of AgentDojo's user tasks behind the gateway, and how often is a person asked?

The calls are those AgentDojo itself calls right for a task, made one after the other by an agent that is no
model. Where several writes follow each other with nothing to read in between, it proposes them as one plan
before the first; what a later reading would tell it, it does not know. A person says yes to whatever is
asked, for it is their own task. Each question counts one, and so does each standing rule that person accepted
beforehand.

A call is kept when the gateway did it, and a task when all its calls are, the environment ends as it does
without a gateway (but for times of day), and the suite's own judge says the same of it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy
from typing import Any
from urllib.request import Request, urlopen

import yaml

from bench.peers.installed import ROOT, environment
from bench.running import free_port, running
from holdfast import Gateway, Observation, Principal, Status
from holdfast.gateway.plans import Wish
from holdfast.gateway.rules import Wish as RuleWish

EXAMPLE = ROOT / "examples" / "agentdojo"
SERVER = Path(__file__).parent / "suite_server.py"
SUITES = ("workspace", "travel", "banking", "slack")
SCOPES = frozenset({"**"})
AGENT = Principal(user="emma", agent="assistant", scopes=SCOPES, trust=60)
EMMA = Principal(user="emma", agent="local", roles=frozenset({"user"}), scopes=SCOPES)
ANSWER_S = 60.0
UNSEEN = {"$any": {"longest": 16}, "like": "1"}
"""An id that nobody has seen yet: whatever it will be, it is short."""


@dataclass(slots=True)
class Task:
    suite: str
    id: str
    calls: int
    done: int = 0
    asked: int = 0
    plans: int = 0
    why: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        return self.done == self.calls and not self.why


@dataclass(frozen=True, slots=True)
class Replayed:
    tasks: list[Task]
    rules: int

    def of(self, suite: str) -> "Replayed":
        return Replayed([task for task in self.tasks if task.suite == suite], 0)

    @property
    def kept_tasks(self) -> float:
        return sum(task.kept for task in self.tasks) / len(self.tasks)

    @property
    def kept_calls(self) -> float:
        return sum(task.done for task in self.tasks) / sum(task.calls for task in self.tasks)

    @property
    def asked(self) -> int:
        """Every time a person had to say something, before or meanwhile."""
        return self.rules + sum(task.asked for task in self.tasks)

    @property
    def asked_per_task(self) -> float:
        return self.asked / len(self.tasks)


class Control:
    """Where a suite is told which task begins, and asked how it ended."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/control"

    async def say(self, do: str, **said: Any) -> Any:
        return await asyncio.to_thread(self._said, {"do": do, **said})

    def _said(self, said: Mapping[str, Any]) -> Any:
        headers = {"content-type": "application/json"}
        request = Request(self._url, json.dumps(said).encode(), headers)
        with urlopen(request, timeout=ANSWER_S) as answer:
            return json.load(answer)


async def replay(place: Path, suites: Sequence[str] = SUITES, *, answered: bool = True) -> Replayed:
    """Without an answer nobody says yes, neither beforehand nor when asked."""
    with ExitStack() as processes:
        ports = {suite: free_port() for suite in suites}
        started = [asyncio.to_thread(_start, place, suite, port) for suite, port in ports.items()]
        for process in await asyncio.gather(*started):
            processes.push(process)
        async with opened(place, ports) as gateway:
            rules = await accept_rules(gateway, suites) if answered else 0
            controls = {suite: Control(port) for suite, port in ports.items()}
            tasks = [
                await carried_out(gateway, control, suite, told, answered=answered)
                for suite, control in controls.items()
                for told in await control.say("tasks")
            ]
    return Replayed(tasks, rules)


def _start(place: Path, suite: str, port: int) -> ExitStack:
    python = environment("agentdojo") / "bin" / "python"
    with ExitStack() as begun:
        begun.enter_context(running((python, SERVER, suite, str(port)), port, place / f"{suite}.log"))
        return begun.pop_all()


@asynccontextmanager
async def opened(place: Path, ports: Mapping[str, int]) -> AsyncIterator[Gateway]:
    upstreams = {
        suite: {
            "mcp": {"url": f"http://127.0.0.1:{port}/mcp"},
            "contracts": str(EXAMPLE / "overlays" / f"{suite}.yaml"),
        }
        for suite, port in ports.items()
    }
    config = {
        "store": f"sqlite:///{place / 'holdfast.db'}",
        "policies": str(_policies(place, ports)),
        "upstreams": upstreams,
        "auth": {"people": {"emma": {"scopes": ["**"], "trust": 60}}},
        "limits": {"ingress": {"rate": 10_000, "burst": 10_000}},
    }
    file = place / "holdfast.yaml"
    file.write_text(yaml.safe_dump(config))
    async with Gateway.open(file) as gateway:
        yield gateway


def _policies(place: Path, suites: Iterable[str]) -> Path:
    """Those that speak of tools which are here: a policy about a tool that nobody knows is an error."""
    folder = place / "policies"
    folder.mkdir()
    for name in ("assistant", *suites):
        if (file := EXAMPLE / "policies" / f"{name}.cedar").exists():
            copy(file, folder)
    return folder


async def accept_rules(gateway: Gateway, suites: Sequence[str]) -> int:
    """What a person said once and for all; how often they said it."""
    accepted = 0
    for path in sorted((EXAMPLE / "rules").glob("*.yaml")):
        said = yaml.safe_load(path.read_text())
        if said["tool"].partition(".")[0] in suites:
            rule = await gateway.rules.propose(EMMA, RuleWish(**said))
            await gateway.rules.accept(EMMA, rule.id)
            accepted += 1
    return accepted


async def carried_out(
    gateway: Gateway, control: Control, suite: str, told: Mapping[str, Any], *, answered: bool
) -> Task:
    calls: list[dict[str, Any]] = told["calls"]
    task = Task(suite, told["id"], len(calls))
    await control.say("begin", name=told["id"])
    seen = [told["prompt"]]
    acts = [writes(gateway, suite, call) for call in calls]
    for place, call in enumerate(calls):
        if answered and acts[place] and not (place and acts[place - 1]):
            end = acts.index(False, place) if False in acts[place:] else len(calls)
            await plan(gateway, task, calls[place:end], seen)
        observation = await made(gateway, task, place, call, answered=answered)
        seen.append(json.dumps(observation.data, default=str))
        if observation.status is not Status.DONE:
            task.why.append(f"{call['tool']}: {observation.status} {observation.code}: {observation.message}")
            break
        task.done += 1
    judged = await control.say("judge")
    if judged["differs"]:
        task.why.append(f"the environment differs in {', '.join(judged['differs'][:5])}")
    if judged["utility"] != judged["utility_alone"]:
        task.why.append(f"useful: {judged['utility']}, without a gateway: {judged['utility_alone']}")
    return task


def writes(gateway: Gateway, suite: str, call: Mapping[str, Any]) -> bool:
    return any(
        listing.tool.contract.tool == f"{suite}.{call['tool']}" and listing.tool.writes
        for listing in gateway.tools(AGENT)
    )


async def plan(
    gateway: Gateway, task: Task, wanted: Sequence[Mapping[str, Any]], seen: Sequence[str]
) -> None:
    """One question for the writes that come next; where there is but one, its own call asks."""
    if len(wanted) < 2:
        return
    steps = [
        Wish(tool=f"{task.suite}.{call['tool']}", arguments=known(call["arguments"], seen)) for call in wanted
    ]
    planned = await gateway.plans.propose(AGENT, steps, task=f"{task.suite}/{task.id}")
    if planned.approval is not None:
        await gateway.decide(EMMA, planned.approval.id, True, "my own task")
        task.asked += 1
        task.plans += 1


def known(arguments: Mapping[str, Any], seen: Sequence[str]) -> dict[str, Any]:
    """What an agent can say of a call before the ones before it are made: not an id it has never seen."""
    text = "\n".join(seen)
    return {
        name: UNSEEN if _is_id(name) and str(value) not in text else value
        for name, value in arguments.items()
    }


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith("_id")


async def made(
    gateway: Gateway, task: Task, place: int, call: Mapping[str, Any], *, answered: bool
) -> Observation:
    name, key = f"{task.suite}.{call['tool']}", f"{task.suite}-{task.id}-{place}"
    details: dict[str, Any] = {"principal": AGENT, "key": key, "task": f"{task.suite}/{task.id}"}
    first = await gateway.call(name, call["arguments"], **details)
    if first.status is not Status.HELD or first.approval is None:
        return first
    task.asked += 1
    if not answered:
        return first
    await gateway.decide(EMMA, first.approval.id, True, "my own task")
    return await gateway.call(name, call["arguments"], **details)
