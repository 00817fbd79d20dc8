"""Drives runs with DBOS: what was enqueued is driven, by this process or by another one.

DBOS is given tenant, run and round, and keeps nothing else: what a run knows is sealed in our own store. It
is one for each process, so its workflow is a function of this module; what it drives is set when it starts. A
process works under the name of a slot. What a dead one left under its slot is taken over by whoever sees
that its lease is over. Where DBOS lost a run all the same, housekeeping finds that nobody drives it and
enqueues it again: a run never depends on what DBOS remembers.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from holdfast.chains.engine import Drive, Interrupted
from holdfast.model.errors import ConfigError, StoreError

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
ALIVE = ("ENQUEUED", "PENDING", "DELAYED")

_driving: Drive | None = None
_active: "dict[asyncio.Task[Any], tuple[str, str]]" = {}
"""What is under way here, and of which run."""
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


class DbosEngine:
    def __init__(self, url: str, slots: Slots) -> None:
        """`url`: a SQLite file of its own, or the PostgreSQL database of the store."""
        self._url = url
        self._slots = slots
        self._dbos: Any = None
        self._workflow: Any = None
        self._slot = ""
        self._turn = 0

    async def start(self, drive: Drive) -> None:
        global _driving, _room
        if _driving is not None:
            raise ConfigError(
                "chains are driven in this process already; one gateway of a process drives them"
            )
        dbos = await asyncio.to_thread(_imported)
        if self._url.startswith("sqlite:///"):
            await asyncio.to_thread(_prepare, Path(self._url.removeprefix("sqlite:///")))
        slot = self._slot = await self._slots.take()
        _driving, _room = drive, asyncio.Semaphore(AT_ONCE)
        _quiet()
        try:
            dbos.DBOS(config=_config(dbos, self._url, slot))
            self._workflow = dbos.DBOS.workflow(name="holdfast.drive")(_drive)
            # In the loop that is to drive: it makes the loop it finds running its own.
            dbos.DBOS.launch()
            await dbos.DBOS.register_queue_async(
                QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=POLL_S, on_conflict="always_update"
            )
        except BaseException:
            _driving = None
            await asyncio.to_thread(dbos.DBOS.destroy)
            raise
        self._dbos = dbos

    async def enqueue(self, tenant: str, run_id: str, number: int) -> None:
        names = [f"{tenant}/{run_id}/{number}:{times}" for times in range(MOST_BREAKS)]
        found = await self._found(workflow_ids=names)
        if await self._is_driven([one for one in found if one.status in ALIVE], tenant, run_id):
            return
        if len(found) == MOST_BREAKS:
            log.error(
                "run %s broke %d times before it began; it is left alone for a day", run_id, MOST_BREAKS
            )
            return
        # Two that ask at the same time ask for the same.
        with self._dbos.SetWorkflowID(names[len(found)]):
            if len(_active) < AT_ONCE:  # at once and here, rather than when somebody looks
                await _answer(self._dbos.DBOS.start_workflow_async(self._workflow, tenant, run_id))
            else:
                await _answer(self._dbos.DBOS.enqueue_workflow_async(QUEUE, self._workflow, tenant, run_id))

    async def drives(self, tenant: str, run_id: str) -> bool:
        found = await self._found(workflow_id_prefix=f"{tenant}/{run_id}/", status=list(ALIVE))
        return await self._is_driven(found, tenant, run_id)

    async def _is_driven(self, found: list[Any], tenant: str, run_id: str) -> bool:
        """Whether one of these workflows is at work, or will be.

        DBOS says of one that it is begun before it begins it, and may be cut short between the two: of those
        in this process it is known better.
        """
        if any(one.status != "PENDING" for one in found):
            return True
        if (tenant, run_id) in _active.values():
            return True
        elsewhere = [one.executor_id for one in found if one.executor_id != self._slot]
        known = await self._slots.all() if elsewhere else frozenset()
        return not known.isdisjoint(elsewhere)

    async def tend(self) -> None:
        if not await self._slots.keep():
            log.warning("this process was silent for longer than its lease; others took its runs over")
        for slot in await self._slots.dead():
            log.warning("a process that drove chains as %s is gone; its runs are taken over", slot)
            await _answer(asyncio.to_thread(self._dbos.DBOS._recover_pending_workflows, [slot]))
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
        found: list[Any] = await _answer(self._dbos.DBOS.list_workflows_async(**asked, **bare))
        return found

    async def _forget(self) -> None:
        old = await self._found(
            status=["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
            end_time=(datetime.now(UTC) - KEPT).isoformat(),
            limit=FORGET_AT_ONCE,
        )
        if old:
            await _answer(self._dbos.DBOS.delete_workflows_async([one.workflow_id for one in old]))


async def _answer(asked: Awaitable[Any]) -> Any:
    """DBOS waits for a database that is away, for as long as it takes; whoever asks here does not."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await asked
    except Exception as error:
        raise StoreError(f"the engine of chains did not answer: {type(error).__name__}") from error


async def _drive(tenant: str, run_id: str) -> None:
    """The workflow: it has no steps of its own, so whoever takes it over begins it anew."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a workflow is one
    _active[task] = tenant, run_id
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
        del _active[task]


def _imported() -> Any:
    try:
        import dbos
    except ImportError:
        raise ConfigError(
            "chains need the extra 'chains'; install it with: pip install 'holdfast[chains]'"
        ) from None
    return dbos


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


def _prepare(path: Path) -> None:
    """With a write-ahead log it is five times as fast."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
