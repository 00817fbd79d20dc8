"""Runs of chains, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.model.approval import Answer
from holdfast.model.errors import HoldfastError, Overtaken
from holdfast.model.run import Evidence, Line, Run, RunState, is_time, waited_on
from holdfast.model.vocabulary import State
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.stores.memory.shelf import Shelf


class MemoryRuns:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._runs: dict[tuple[str, str], Run] = {}
        self._lines: dict[tuple[str, str], dict[str, Line]] = {}
        self._evidence: dict[tuple[str, str], Evidence] = {}

    async def begin(self, run: Run) -> Run:
        named = (run.tenant, run.principal, run.chain, run.key)
        for kept in self._runs.values():
            if (kept.tenant, kept.principal, kept.chain, kept.key) == named:
                if kept.fingerprint != run.fingerprint:
                    raise HoldfastError(
                        f"key {run.key!r} was used for another run of {run.chain!r};"
                        " use a new key for something else"
                    )
                return kept
        now = self._clock.now()
        made = self._runs[run.tenant, run.id] = replace(run, created_at=now, updated_at=now)
        self._lines[run.tenant, run.id] = {}
        told = {"chain": run.chain, "version": run.version, "key": run.key}
        self.record(run, "chain_run", run.principal, **told)
        return made

    async def get(self, tenant: str, run_id: str) -> Run | None:
        return self._runs.get((tenant, run_id))

    async def list(self, tenant: str, *, principal: str | None = None, limit: int = 50) -> Sequence[Run]:
        found = [
            run for run in self._runs.values() if run.tenant == tenant and principal in (None, run.principal)
        ]
        return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)[:limit]

    async def open(self) -> Sequence[tuple[str, str]]:
        return [name for name, run in self._runs.items() if not run.state.over]

    async def due(self) -> Sequence[tuple[str, str, int]]:
        return [(run.tenant, run.id, run.round) for run in self._runs.values() if self._is_due(run)]

    async def idle(self, since: float) -> Sequence[tuple[str, str, int]]:
        return [
            (run.tenant, run.id, run.round)
            for run in self._runs.values()
            if not run.state.over and not run.waits_for and run.updated_at <= since
        ]

    def _is_due(self, run: Run) -> bool:
        """Whether the first of what it waits for is over."""
        over = (not self._goes_on(run.tenant, on) for on in waited_on(run.waits_on))
        return is_time(run.waits_on, self._clock.now()) or any(over)

    def _goes_on(self, tenant: str, on: str) -> bool:
        """What it waited for may be forgotten by now; it is over all the same."""
        asked = self._shelf.approvals.get((tenant, on))
        if asked is not None:
            return asked.approval.answer is Answer.PENDING
        return any(
            (ref.tenant, entry.operation.call_id) == (tenant, on)
            and entry.operation.state in (State.CLAIMED, State.DISPATCHED, State.UNKNOWN)
            for ref, entry in self._shelf.operations.items()
        )

    async def ended(self) -> Sequence[tuple[str, str]]:
        unknown = {
            (ref.tenant, entry.operation.call_id)
            for ref, entry in self._shelf.operations.items()
            if entry.operation.state is State.UNKNOWN
        }
        over = [run for run in self._runs.values() if run.state.over]
        return [(run.tenant, run.id) for run in over if (run.tenant, run.call_id) in unknown]

    async def stuck(self, tenant: str, limit: int) -> Sequence[Run]:
        found = [run for run in self._runs.values() if run.tenant == tenant and run.stuck]
        return sorted(found, key=lambda run: (run.updated_at, run.id))[:limit]

    async def take_up(self, tenant: str, run_id: str) -> Run | None:
        run = self._runs.get((tenant, run_id))
        if run is None or run.state.over:
            return None
        failed = run.state is RunState.COMPENSATION_FAILED
        state = RunState.COMPENSATING if failed else run.state
        taken = replace(
            run, round=run.round + 1, state=state, waits_for="", waits_on="", updated_at=self._clock.now()
        )
        self._runs[tenant, run_id] = taken
        return taken

    def journal(self, run: Run) -> "MemoryJournal":
        return MemoryJournal(run, self, self._clock)

    async def lines(self, tenant: str, run_id: str) -> Sequence[Line]:
        return list(self._lines.get((tenant, run_id), {}).values())

    async def cancel(self, tenant: str, run_id: str, by: str) -> bool:
        run = self._runs.get((tenant, run_id))
        if run is None or run.state is not RunState.RUNNING or run.cancelled_by:
            return False
        self._runs[tenant, run_id] = replace(run, cancelled_by=by)
        self.record(run, "chain_cancel", by)
        return True

    async def choose(self, run: Run, line: Line, by: str) -> Run | None:
        kept = self._runs.get((run.tenant, run.id))
        if kept is None or kept.state is not RunState.RUNNING or not kept.waits_for:
            return None
        if line.name in self.written(run):
            return None
        now = self._clock.now()
        taken = replace(kept, round=kept.round + 1, waits_for="", waits_on="", updated_at=now)
        self._runs[run.tenant, run.id] = taken
        self.write(run, line)
        self.record(run, "chain_choose", by, step=line.name, said=line.message)
        return taken

    async def abandon(self, tenant: str, run_id: str, by: str, note: str) -> bool:
        run = self._runs.get((tenant, run_id))
        if run is None or run.state.over:
            return False
        waits = {"waits_for": "", "waits_on": ""}
        said = {"state": RunState.ABORTED, **waits, "why": f"abandoned by {by}: {note}"}
        self._runs[tenant, run_id] = replace(run, round=run.round + 1, **said)  # type: ignore[arg-type]
        self._erase(run)
        self.record(run, "chain_abandon", by, note=note)
        return True

    async def attest(self, tenant: str, found: Sequence[Evidence]) -> None:
        now = self._clock.now()
        for one in found:
            self._evidence[tenant, one.digest] = replace(one, at=now)
            said = {"chain": one.chain, "step": one.step, "digest": one.digest, "note": one.note}
            body = act_body(now, f"chain_{one.how}", one.by, **said)
            self._shelf.record(tenant, "", "control", now, body)

    async def attested(self, tenant: str, digests: Sequence[str]) -> Mapping[str, Evidence]:
        return {
            one: self._evidence[tenant, one]
            for one in dict.fromkeys(digests)
            if (tenant, one) in self._evidence
        }

    # --- for journals ---------------------------------------------------------------------

    def ours(self, run: Run) -> Run:
        now = self._runs[run.tenant, run.id]
        if now.round != run.round:
            raise Overtaken(f"run {run.id!r} was taken up by somebody else")
        return now

    def written(self, run: Run) -> dict[str, Line]:
        return self._lines[run.tenant, run.id]

    def write(self, run: Run, line: Line) -> None:
        """One that is not there yet, and that it was written."""
        lines = self.written(run)
        lines[line.name] = replace(line, at=self._clock.now(), number=len(lines))
        told = {"step": line.name, "state": line.state, "tool": line.tool, "call": line.call_id}
        self.record(run, "chain_step", run.principal, **told, code=line.code)

    def keep(self, run: Run) -> None:
        self._runs[run.tenant, run.id] = run
        if run.state.over:
            self._erase(run)

    def record(self, run: Run, act: str, by: str, **members: Any) -> None:
        now = self._clock.now()
        self._shelf.record(run.tenant, run.id, "control", now, act_body(now, act, by, **members))

    def _erase(self, run: Run) -> None:
        """What steps said to each other is nobody's any more."""
        lines = self.written(run)
        for name, line in lines.items():
            lines[name] = replace(line, arguments=None, result=None)


class MemoryJournal:
    """Of a run as it was taken up."""

    def __init__(self, run: Run, runs: MemoryRuns, clock: Clock) -> None:
        self._run = run
        self._runs = runs
        self._clock = clock
        self._since = clock.monotonic()

    async def lines(self) -> Sequence[Line]:
        return list(self._runs.written(self._run).values())

    async def add(self, line: Line) -> Line:
        self._runs.ours(self._run)
        lines = self._runs.written(self._run)
        if line.name not in lines:
            self._runs.write(self._run, line)
        return lines[line.name]

    async def move(
        self, state: RunState, *, waits_for: str = "", waits_on: str = "", why: str = "", output: Any = None
    ) -> None:
        run, now = self._runs.ours(self._run), self._clock.monotonic()
        spent, self._since = run.spent_s + now - self._since, now
        waits = {"waits_for": waits_for, "waits_on": waits_on}
        said = {"state": state, **waits, "why": why or run.why, "output": output}
        at = self._clock.now()
        self._runs.keep(replace(run, spent_s=spent, updated_at=at, **said))
        told = {"to": state, "waits_for": waits_for, "why": why or run.why}
        self._runs.record(run, "chain_state", run.principal, **told)

    async def cancelled(self) -> str:
        return self._runs.ours(self._run).cancelled_by
