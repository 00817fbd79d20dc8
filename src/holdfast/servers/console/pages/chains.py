"""*Chains*: which are there, how far has each run come, and what does it wait for?"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from holdfast.chains.declared import steps
from holdfast.chains.reading import read
from holdfast.gateway.chain_choices import open_choices
from holdfast.gateway.chain_outcome import remaining
from holdfast.gateway.chains import Shown
from holdfast.model.errors import ConfigError, HoldfastError
from holdfast.model.run import Line, Run, RunState, StepState, waited_on
from holdfast.model.view import CallRow, Wanted
from holdfast.servers.answers import TransportError
from holdfast.servers.console.graph import Graph, graph, short, words
from holdfast.servers.console.look import Look

PAGE = 50
MOST_CALLS = 200
LONGEST_NOTE = 1000
UNDO = "~undo"
HEADLINES = {
    RunState.RUNNING: "It is running",
    RunState.COMPLETED: "It was done, all of it",
    RunState.COMPENSATING: "It is being taken back",
    RunState.COMPENSATED: "It could not be done, and was taken back",
    RunState.COMPENSATION_FAILED: "It could not be taken back",
    RunState.ABORTED: "It was ended as it stood",
}
KINDS = {
    RunState.RUNNING: "running",
    RunState.COMPLETED: "done",
    RunState.COMPENSATING: "held",
    RunState.COMPENSATED: "unknown",
    RunState.COMPENSATION_FAILED: "failed",
    RunState.ABORTED: "failed",
}
WAITS = {
    "approval ": "It waits for an approval",
    "the job ": "It waits for a job",
    "the outcome ": "It waits until an outcome is known",
    "the turn ": "It waits for its turn",
}
"""What the headline says of a run that goes on by itself, by what `waits_for` begins with."""
ENDS = {"commit": "committed", "rollback": "rolled back"}
_OF_STEP = re.compile(r"of step '([a-z0-9_]+)(?:#\d+)*(?:~commit)?(~undo)?'")


class Row(NamedTuple):
    """One line of the journal, with the call that it was."""

    line: Line
    name: str
    undoing: bool
    call: CallRow | None
    ended: str = ""
    """How a transaction ended, where that is what it tells."""


async def page(look: Look) -> Response:
    """GET /chains"""
    chains, by = look.gateway.chains, look.principal
    fault, declared = "", {}
    try:
        declared = chains.seen(by)
    except ConfigError as error:
        fault = str(error)
    return await look.page(
        "chains.html",
        declared=declared,
        fault=fault,
        runs=await chains.list(by, PAGE),
        kinds=KINDS,
    )


async def run(look: Look) -> Response:
    """GET /chains/{run}"""
    shown = await look.gateway.chains.look(look.principal, look.request.path_params["run"])
    return await look.page("run.html", **await told(look, shown))


async def told(look: Look, shown: Shown) -> dict[str, Any]:
    now, operates = shown.run, look.gateway.operates(look.principal)
    await look.gateway.views.fresh()
    found = await look.gateway.views.calls(look.principal, Wanted(task=now.id, limit=MOST_CALLS))
    calls = {row.call_id: row for row in found.rows}
    failed = [one for one in shown.lines if one.state is StepState.FAILED]
    # Where branches side by side ended it, why it ended tells of each of them.
    failing = next((one for one in failed if not now.why or now.why.startswith(f"step {one.name!r}")), None)
    drawn = _graph(shown, found.rows)
    may = look.gateway.chains.choices.may(look.principal, now)
    open_ = open_choices(now, shown.lines) if may else []
    return {
        "run": now,
        "headline": _headline(now, bool(open_)),
        "kind": "held" if now.waits_for and not now.state.over else KINDS[now.state],
        "rows": [_row(line, calls) for line in shown.lines if not line.name.endswith("~join")],
        "failing": failing,
        "graph": drawn,
        "words": "; ".join(words(drawn)) if drawn is not None else "",
        "short": short,
        "live": not now.state.over,
        "mark": _mark(shown, found.rows),
        "choices": open_,
        "resumes": operates and now.stuck and not open_,
        "abandons": operates and not now.state.over,
        "cancels": now.state is RunState.RUNNING and not now.cancelled_by,
        "awaited": [on for on in waited_on(now.waits_on) if f"call {on!r}" in now.waits_for],
        "approvals": [on for on in waited_on(now.waits_on) if f"approval {on!r}" in now.waits_for],
    }


def _headline(run: Run, choosing: bool) -> str:
    if choosing:
        return "It waits for your choice"
    if run.stuck:
        return "It waits for a person"
    if run.state is RunState.RUNNING:
        return next(
            (said for what, said in WAITS.items() if run.waits_for.startswith(what)), HEADLINES[run.state]
        )
    return HEADLINES[run.state]


def _mark(shown: Shown, calls: Sequence[CallRow]) -> str:
    """Another text when the page would say something else."""
    run = shown.run
    lines = [[line.name, line.state.value] for line in shown.lines]
    moves = [run.state.value, run.round, run.waits_for, run.cancelled_by]
    return sha256(orjson.dumps([moves, lines, [[row.call_id, row.status] for row in calls]])).hexdigest()[:16]


def _row(line: Line, calls: Mapping[str, CallRow]) -> Row:
    undoing = line.name.endswith(UNDO)
    name, _, what = line.name.partition("~")
    return Row(line, name, undoing, calls.get(line.call_id), ENDS.get(what, ""))


def _graph(shown: Shown, calls: Sequence[CallRow]) -> Graph | None:
    """None where what was declared is no longer kept."""
    try:
        chain = read(dict(shown.run.declared), shown.run.chain)
    except ConfigError:
        return None
    states, undone = _states(shown, calls), _undone(shown)
    order = [
        line.name.removesuffix(UNDO).partition("#")[0] for line in shown.lines if line.name.endswith(UNDO)
    ]
    return graph(chain, states, undone, order)


def _states(shown: Shown, calls: Sequence[CallRow]) -> dict[str, str]:
    """Of a step in a loop, what its last round came to."""
    found = {line.name.partition("#")[0]: line.state.value for line in shown.lines if "~" not in line.name}
    gone = {line.name for line in shown.lines} - {line.name for line in remaining(shown.run, shown.lines)}
    found |= {name.partition("#")[0]: "skipped" for name in gone}
    waits = _OF_STEP.findall(shown.run.waits_for)
    found |= {name: "waiting" for name, undoing in waits if not undoing}
    if shown.run.state is RunState.RUNNING and not shown.run.waits_for:
        known = {line.call_id for line in shown.lines}
        busy = {row.tool for row in calls if row.status == "running" and row.call_id not in known}
        found |= {name: "running" for name, tool in _tools(shown.run) if tool in busy and name not in found}
    return found


def _tools(run: Run) -> list[tuple[str, str]]:
    return [(step.id, step.tool) for step in steps(read(dict(run.declared), run.chain).body)]


def _undone(shown: Shown) -> dict[str, str]:
    found = {
        line.name.removesuffix(UNDO).partition("#")[0]: "undone"
        for line in shown.lines
        if line.name.endswith(UNDO) and line.state is StepState.DONE
    }
    if shown.run.state not in (RunState.COMPENSATING, RunState.COMPENSATION_FAILED):
        return found
    there = remaining(shown.run, shown.lines)
    done = [line for line in there if line.writes and line.state is StepState.DONE]
    left = [name for line in reversed(done) if (name := line.name.partition("#")[0]) not in found]
    if left:  # the last one that stands is the one that is being taken back
        found[left[0]] = "failed" if shown.run.state is RunState.COMPENSATION_FAILED else "running"
    return found


async def resume(look: Look) -> Response:
    """POST /chains/{run}/resume"""
    await look.form()
    run_id = look.request.path_params["run"]
    await look.gateway.chains.resume(look.principal, run_id)
    return look.see_other(f"/chains/{run_id}", "resumed")


async def choose(look: Look) -> Response:
    """POST /chains/{run}/choose"""
    form = await look.form()
    run_id = look.request.path_params["run"]
    choices = look.gateway.chains.choices
    await choices.choose(look.principal, run_id, form.get("step"), form.get("case"))
    return look.see_other(f"/chains/{run_id}", "chosen")


async def abandon(look: Look) -> Response:
    """POST /chains/{run}/abandon"""
    form = await look.form()
    run_id, note = look.request.path_params["run"], form.get("note").strip()[:LONGEST_NOTE]
    if not note:
        raise TransportError(400, "say why it is abandoned", "whoever reads the record later needs it")
    await look.gateway.chains.abandon(look.principal, run_id, note)
    return look.see_other(f"/chains/{run_id}", "abandoned")


async def cancel(look: Look) -> Response:
    """POST /chains/{run}/cancel"""
    await look.form()
    run_id = look.request.path_params["run"]
    if not await look.gateway.chains.cancel(look.principal, run_id):
        raise HoldfastError(f"run {run_id[:64]!r} is over, or being taken back; it cannot be cancelled")
    return look.see_other(f"/chains/{run_id}", "cancelled")
