"""Drives runs with DBOS: what was enqueued is driven, by this process or by another one.

DBOS is given tenant, run and round, and keeps nothing else: what a run knows is sealed in our own store. It
is one for each process, so its workflow is a function of this module; what it drives is set when it starts. A
process works under the name of a slot. What a dead one left under its slot is taken over by whoever sees
that its lease is over. Where DBOS lost a run all the same, housekeeping finds that nobody drives it and
enqueues it again; where DBOS does not answer, as for a while after its database was away, it is driven here
without it. A run never depends on what DBOS remembers: of two that drive it, the later one counts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from holdfast.chains.engine import Drive, Interrupted
from holdfast.model import defaults
from holdfast.model.errors import ConfigError, StoreError
from holdfast.model.timeout import timeout

log = logging.getLogger(__name__)

QUEUE = "holdfast-chains"
VERSION = "holdfast-1"
"""Of the one workflow there is, which is never changed: an old run is driven by whatever drives runs now."""
POLL_S = 2.0
"""For what another process left in the queue, or had no room for; what is begun here starts at once."""
AT_ONCE = 16
POOL = 8
"""Connections of DBOS to PostgreSQL: it polls with a few threads, and what drives a run uses our own."""
ANSWER_S = 5.0
CLOSE_S = 5.0
"""A step that is under way when the process stops has this long to be written down."""
KEPT = timedelta(days=1)
FORGET_EVERY = 300
FORGET_AT_ONCE = 500
"""What DBOS knows of rounds that are over is of no use; it is deleted in portions, every so many rounds of
housekeeping."""
MOST_BREAKS = 16
"""Of one round: what breaks more often before it has begun is not tried for ever."""
MOST_TRIES = 2 * MOST_BREAKS
"""Of one round, with those that a lost database cut short before they were at work: they broke nothing."""
ALIVE = ("ENQUEUED", "PENDING", "DELAYED")

_driving: Drive | None = None
_active: "dict[asyncio.Task[Any], str]" = {}
"""The workflows that are under way here, and what is driven here without one."""
_room = asyncio.Semaphore(AT_ONCE)


class Slots(Protocol):
    """Names under which processes work, one for each."""

    async def take(self) -> str:
        """Our own name, for as long as it is kept."""
        ...

    async def keep(self) -> bool:
        """False where somebody took over meanwhile what was under way here."""
        ...

    async def dead(self) -> list[str]:
        """Names whose owners are gone; each is told to one process at a time."""
        ...

    async def taken_over(self, slot: str) -> None:
        """What was left under a dead name is on its way again."""
        ...

    async def all(self) -> frozenset[str]:
        """The living, and the dead whose runs nobody has taken over yet."""
        ...

    async def leave(self) -> None:
        """Let the next one take over what is left under our name, at once."""
        ...


@dataclass(slots=True)
class Pace:
    """How patient an engine is, and how much it does at once."""

    poll_s: float = POLL_S
    answer_s: float = ANSWER_S
    lease_s: float = defaults.CHAIN_LEASE_S
    at_once: int = AT_ONCE


class DbosEngine:
    def __init__(self, url: str, slots: Slots, pace: Pace | None = None) -> None:
        """`url`: a SQLite file of its own, or the PostgreSQL database of the store."""
        self._pace = pace or Pace()
        self._url = url
        self._slots = slots
        self._dbos: Any = None
        self._workflow: Any = None
        self._slot = ""
        self._turn = 0
        self._silent_until = 0.0

    async def start(self, drive: Drive) -> None:
        global _driving, _room
        if _driving is not None:
            raise ConfigError(
                "chains are driven in this process already; one gateway of a process drives them"
            )
        dbos = await asyncio.to_thread(_imported)
        _quiet()
        if self._url.startswith("sqlite:///"):
            await asyncio.to_thread(_prepared, Path(self._url.removeprefix("sqlite:///")))
        slot = self._slot = await self._slots.take()
        _driving, _room = drive, asyncio.Semaphore(AT_ONCE)
        try:
            dbos.DBOS(config=_config(dbos, self._url, slot))
            self._workflow = dbos.DBOS.workflow(name="holdfast.drive")(_drive)
            # In the loop that is to drive: it makes the loop it finds running its own.
            dbos.DBOS.launch()
            await dbos.DBOS.register_queue_async(
                QUEUE,
                worker_concurrency=AT_ONCE,
                polling_interval_sec=self._pace.poll_s,
                on_conflict="always_update",
            )
        except BaseException as error:
            _driving = None
            await asyncio.to_thread(dbos.DBOS.destroy)
            if not isinstance(error, Exception):
                raise
            what = str(error).partition("\n")[0] or type(error).__name__
            raise StoreError(f"the engine of chains does not start: {what}") from error
        self._dbos = dbos

    async def enqueue(self, tenant: str, run_id: str, number: int) -> None:
        if _is_active(f"{tenant}/{run_id}/{number}:"):
            return
        try:
            await self._enqueue(tenant, run_id, number)
        except StoreError as error:
            log.warning("run %s is driven here, whatever the engine makes of it: %s", run_id, error)
            _drive_alone(tenant, run_id, number)

    async def _enqueue(self, tenant: str, run_id: str, number: int) -> None:
        names = [f"{tenant}/{run_id}/{number}:{times}" for times in range(MOST_TRIES)]
        found = await self._found(workflow_ids=names)
        begun = [one for one in found if one.status in ALIVE]
        if await self._is_driven(begun):
            return
        if len(found) - len(begun) >= MOST_BREAKS or len(found) == MOST_TRIES:
            log.error(
                "run %s broke %d times before it began; it is left alone for a day", run_id, MOST_BREAKS
            )
            return
        # Two that ask at the same time ask for the same.
        dbos = self._dbos.DBOS
        with self._dbos.SetWorkflowID(names[len(found)]):
            if len(_active) < self._pace.at_once:  # at once and here, rather than when somebody looks
                await self._answer(dbos.start_workflow_async, self._workflow, tenant, run_id)
            else:
                await self._answer(dbos.enqueue_workflow_async, QUEUE, self._workflow, tenant, run_id)

    async def drives(self, tenant: str, run_id: str) -> bool:
        name = f"{tenant}/{run_id}/"
        if _is_active(name):
            return True
        try:
            return await self._is_driven(await self._found(workflow_id_prefix=name, status=list(ALIVE)))
        except StoreError as error:
            log.warning("it is not known whether run %s is driven elsewhere: %s", run_id, error)
            return False

    async def _is_driven(self, found: list[Any]) -> bool:
        """Whether one of these workflows, none of which is at work here, is at work elsewhere, or will be.

        DBOS says of one that it is begun before it begins it, and may be cut short between the two: of those
        in this process it is known better. And it looks into its queue less and less often where processes
        get into each other's way there, or its database is away (up to two minutes apart): what waits in it
        for longer than a lease though there is room here is not left to it.
        """
        queued = [one for one in found if one.status != "PENDING"]
        if queued and (len(_active) >= self._pace.at_once or not all(map(self._is_late, queued))):
            return True
        elsewhere = {one.executor_id for one in found if one.status == "PENDING"} - {self._slot}
        known = await self._slots.all() if elsewhere else frozenset()
        return not known.isdisjoint(elsewhere)

    def _is_late(self, queued: Any) -> bool:
        since = datetime.now(UTC).timestamp() - (queued.updated_at or 0) / 1000
        return since > self._pace.lease_s

    async def tend(self) -> None:
        if not await self._slots.keep():
            log.warning("this process was silent for longer than its lease; others took its runs over")
        for slot in await self._slots.dead():
            log.warning("a process that drove chains as %s is gone; its runs are taken over", slot)
            await self._answer(asyncio.to_thread, self._dbos.DBOS._recover_pending_workflows, [slot])
            await self._slots.taken_over(slot)
        if self._turn % FORGET_EVERY == 0:
            await self._forget()
        self._turn += 1

    async def close(self) -> None:
        """What is under way is finished if it is soon; the rest is the next process's."""
        global _driving
        if self._dbos is None:
            return
        _driving = None  # what DBOS starts from now on is left as it is
        under_way = set(_active)
        if under_way:
            _, slow = await asyncio.wait(under_way, timeout=CLOSE_S)
            for task in slow:
                task.cancel()
            if slow:
                await asyncio.wait(slow, timeout=CLOSE_S)
        await asyncio.to_thread(self._dbos.DBOS.destroy)
        # It has made the loop's threads its own, and has ended them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="holdfast"))
        await self._slots.leave()
        self._dbos = None

    async def _found(self, **asked: Any) -> list[Any]:
        bare = {"load_input": False, "load_output": False}
        found: list[Any] = await self._answer(self._dbos.DBOS.list_workflows_async, **asked, **bare)
        return found

    async def _forget(self) -> None:
        old = await self._found(
            status=["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
            end_time=(datetime.now(UTC) - KEPT).isoformat(),
            limit=FORGET_AT_ONCE,
        )
        if old:
            await self._answer(self._dbos.DBOS.delete_workflows_async, [one.workflow_id for one in old])

    async def _answer(self, asked: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        """DBOS waits for a database that is away, for as long as it takes; whoever asks here does not, and
        whoever asks next does not even begin to.
        """
        now = asyncio.get_running_loop().time
        if now() < self._silent_until:
            raise StoreError("the engine of chains did not answer a moment ago")
        try:
            async with timeout(self._pace.answer_s):
                return await asked(*given, **named)
        except Exception as error:
            if isinstance(error, TimeoutError):
                self._silent_until = now() + self._pace.answer_s
            raise StoreError(f"the engine of chains did not answer: {type(error).__name__}") from error


def _is_active(beginning: str) -> bool:
    return any(name.startswith(beginning) for name in _active.values())


async def _drive(tenant: str, run_id: str) -> None:
    """The workflow: it has no steps of its own, so whoever takes it over begins it anew."""
    name = str(_imported().DBOS.workflow_id)
    if not _is_active(name.rpartition(":")[0] + ":"):  # else it was in the queue for too long
        await _driven(name, tenant, run_id)


def _drive_alone(tenant: str, run_id: str, number: int) -> None:
    name = f"{tenant}/{run_id}/{number}:alone"
    task = asyncio.create_task(_driven(name, tenant, run_id), name=f"holdfast-run-{run_id}")
    _active[task] = name
    task.add_done_callback(lambda it: _active.pop(it, None))
    task.add_done_callback(lambda it: it.cancelled() or it.exception())  # it was told


async def _driven(name: str, tenant: str, run_id: str) -> None:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - whatever runs here is one
    _active[task] = name
    try:
        async with _room:
            if _driving is None:
                raise Interrupted
            await _driving(tenant, run_id)
    except Interrupted:
        raise asyncio.CancelledError from None  # DBOS does not take it for the end: the next process goes on
    except Exception:
        log.exception("run %s broke; it goes on when it is taken up again", run_id)
        raise
    finally:
        _active.pop(task, None)


def _imported() -> Any:
    try:
        import dbos
    except ImportError:
        raise ConfigError(
            "chains need the extra 'chains'; install it with: pip install 'holdfast[chains]'"
        ) from None
    return dbos


def _prepared(path: Path) -> None:
    from holdfast.chains.engines.dbos_file import prepare  # imports what only this engine needs

    prepare(path)


def _config(dbos: Any, url: str, slot: str) -> dict[str, Any]:
    return {
        "name": "holdfast",
        "system_database_url": url,
        "application_version": VERSION,
        "executor_id": slot,
        "log_level": "ERROR",
        "serializer": dbos.DBOSPortableJSONSerializer(),
        "enable_otlp": False,
        "sys_db_pool_size": POOL,
        "sys_db_idle_transaction_timeout_sec": ANSWER_S,  # a process that is stopped in one blocks all others
    }


def _quiet() -> None:
    """Its logger has a handler of its own otherwise, and advertises."""
    own = logging.getLogger("dbos")
    own.setLevel(logging.ERROR)
    if not own.handlers:
        own.addHandler(logging.NullHandler())
    own.propagate = True
