"""What do the MCP servers offer, and is that what was accepted?

Every server is asked in parallel, at the start and whenever it says that something changed. What it lists is
compared with the lock file and put into the catalog in one step. A server that does not answer keeps its
tools: they are unavailable until it is back, and come back by themselves (REG-2, REG-3, REG-8).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.imports.again import Import
from holdfast.catalog.imports.before import Before
from holdfast.catalog.imports.imported import Imported, import_tools
from holdfast.catalog.imports.lock import Lock, Pending, Tools, accept
from holdfast.catalog.imports.names import local_name
from holdfast.catalog.imports.native import companions
from holdfast.catalog.imports.overlay import Overlay
from holdfast.config import Config
from holdfast.gateway import promised_egress
from holdfast.gateway.native import Native, distrusted
from holdfast.model import defaults
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError, ConfigError, HoldfastError
from holdfast.model.vocabulary import ToolStatus
from holdfast.ports import Clock

if TYPE_CHECKING:
    from holdfast.upstreams.mcp.change import Change
    from holdfast.upstreams.mcp.listing import Snapshot
    from holdfast.upstreams.mcp.upstream import McpUpstream

log = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""How long the start waits for a server; what takes longer turns up later."""
LISTING_S = 30.0
"""How long a whole listing may take."""
CALM_S = 0.5
"""Between two listings of one server, however often it says that something changed."""

MISS_S = 5.0
"""Between two looks for a tool that is not there."""

Note = Callable[..., Awaitable[None]]


class Discovery:
    """Keeps the catalog in step with what MCP servers list. Without any it does nothing."""

    def __init__(
        self,
        config: Config,
        upstreams: "Mapping[str, McpUpstream]",
        catalog: MemoryCatalog,
        clock: Clock,
        note: Note,
    ) -> None:
        self._config = config
        self._upstreams = dict(upstreams)
        self._catalog = catalog
        self._clock = clock
        self._note = note
        self._overlays: dict[str, Overlay] = {}
        self._lock = Lock()
        self._stamp: tuple[int, int] | None = None
        self._snapshots: dict[str, Snapshot] = {}
        self._reports: dict[str, tuple[str, ...]] = {}
        self._news: dict[str, set[str]] = {name: set() for name in upstreams}
        self._woken: dict[str, asyncio.Future[None]] = {}
        self._listed_at: dict[str, float] = {}
        self._looked_at: dict[str, float] = {}
        self._misses: dict[str, int] = dict.fromkeys(upstreams, 0)
        self._tasks: list[asyncio.Task[None]] = []
        self._imports: dict[str, Import] = {}
        self._before = Before()
        self._importing = asyncio.Lock()
        self._taking: set[asyncio.Future[None]] = set()
        self.native = Native(config, self._upstreams, catalog)

    @property
    def reports(self) -> list[str]:
        """What an operator should know about what was found."""
        return [f"{name}: {said}" for name, told in self._reports.items() for said in told]

    # --- opening --------------------------------------------------------------------------

    async def open(self, *, connect: bool) -> None:
        """Register what the lock file knows; with `connect`, ask every server what it offers now."""
        unknown = self.read(down=connect)
        asked = list(self._upstreams) if connect else unknown
        for name in asked:
            self._upstreams[name].on_change = lambda change, name=name: self._heard(name, change)
            self._upstreams[name].start()
        await asyncio.gather(*(self._first_look(name) for name in asked))
        if connect:
            self._tasks = [asyncio.create_task(self._follow(n), name=f"holdfast-follow-{n}") for n in asked]

    def read(self, *, down: bool = False) -> list[str]:
        """Register what the lock file knows, as unavailable when `down`; the servers it knows nothing of."""
        self._read_files()
        unknown = []
        for name in self._upstreams:
            if known := _descriptors(self._lock.tools(name)):
                imported = self._imported(name, known, self._around(name))
                self._register(name, imported, {}, down=down)
            else:
                unknown.append(name)
        return unknown

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._taking:
            await asyncio.wait(self._taking, timeout=PATIENCE_S)

    def _read_files(self) -> None:
        wrong: list[str] = []
        for name in self._upstreams:
            try:
                self._overlays[name] = self._overlay(name)
            except (ConfigError, AdmissionError) as error:
                wrong.append(str(error))
        if wrong:
            raise ConfigError("\n  ".join(wrong))
        self._lock = Lock.load(self._lock_path)
        self._stamp = _stamp(self._lock_path)
        self._before.load(self._lock_path)

    def _overlay(self, name: str) -> Overlay:
        file = self._config.upstreams[name].contracts
        overlay = Overlay() if file is None else Overlay.load(self._config.folder / file)
        return promised_egress.stated(overlay, self._config, name)

    async def _first_look(self, name: str) -> None:
        look = asyncio.ensure_future(self._look(name))
        if not await self._clock.until(look, PATIENCE_S):
            look.cancel()
            log.warning("upstream %s does not answer yet; its tools come when it does", name)

    async def _look(self, name: str) -> bool:
        """List a server and put what it offers into the catalog; False when it does not answer."""
        upstream = self._upstreams[name]
        try:
            if await upstream.ready(PATIENCE_S):
                await self._refresh(name)
                return True
            error: object = upstream.last_error or "it is not ready in time"
        except Exception as failed:
            error = failed
        log.warning("upstream %s could not be listed: %s", name, error)
        return False

    # --- following ------------------------------------------------------------------------

    def _heard(self, name: str, change: "Change") -> None:
        if change.kind == "resource":
            if self.native.wanted(name, change.uri):
                self.native.changed("resource", change.uri)
            return
        self._news[name].add(change.kind)
        woken = self._woken.get(name)
        if woken is not None and not woken.done():
            woken.set_result(None)

    async def _follow(self, name: str) -> None:
        """Look again when the server says so, when its list is old, and whether it still lives."""
        while True:
            self._woken[name] = asyncio.get_running_loop().create_future()
            if not self._news[name]:
                await self._clock.until(self._woken[name], defaults.LIVENESS_S)
            news, self._news[name] = self._news[name], set()
            old = self._clock.monotonic() - self._listed_at.get(name, float("-inf"))
            if news - {"down"} or old >= defaults.DISCOVERY_TTL_S:
                alive = await self._look(name)
            else:
                alive = await self._lives(name)
                if alive and self._misses[name]:
                    alive = await self._look(name)  # back again, perhaps with something else
            self._count(name, alive=alive)
            await self._clock.sleep(CALM_S)

    async def _lives(self, name: str) -> bool:
        try:
            await self._upstreams[name].ping(defaults.CONNECT_S)
        except Exception as error:
            log.info("upstream %s did not answer its liveness probe: %s", name, error)
            return False
        return True

    def _count(self, name: str, *, alive: bool) -> None:
        if alive:
            self._misses[name] = 0
            return
        self._misses[name] += 1
        if self._misses[name] == defaults.PROBES_TO_UNAVAILABLE:
            log.warning("upstream %s is gone; its tools are unavailable until it is back", name)
            self._mark(name, ToolStatus.UNAVAILABLE)
            self.native.changed("tools")

    def _mark(self, name: str, status: ToolStatus) -> None:
        for listing in self._catalog.list():
            if listing.upstream == name:
                contract = listing.tool.contract
                self._catalog.set_status(contract.tool, contract.version, status)

    async def look_for(self, tool: str) -> None:
        """Ask its server again, for somebody who would look for a tool in vain; REG-2."""
        name = tool.partition("@")[0]
        upstream = name.partition(".")[0]
        if upstream in self._upstreams and self._catalog.find(name, None) is None:
            await self.look_again(upstream)

    async def look_again(self, upstream: str) -> None:
        """List a server anew, but not for everybody who asks."""
        now = self._clock.monotonic()
        if now - self._looked_at.get(upstream, float("-inf")) < MISS_S:
            return
        self._looked_at[upstream] = now
        self._upstreams[upstream].start()
        look = asyncio.ensure_future(self._look(upstream))
        if not await self._clock.until(look, defaults.CONNECT_S):
            look.cancel()

    # --- importing ------------------------------------------------------------------------

    async def _refresh(self, name: str) -> None:
        self._news[name].clear()  # what was said until now is in the list that is asked for now
        snapshot = await self._upstreams[name].snapshot(LISTING_S)
        before = self._snapshots.get(name)
        self._listed_at[name] = self._clock.monotonic()
        if before == snapshot and self._misses[name] < defaults.PROBES_TO_UNAVAILABLE:
            return  # importing hundreds of tools for nothing would hold everybody up
        # Whoever asked may not wait so long. What was listed is taken in all the same, and as a whole.
        taking = asyncio.ensure_future(self._take(name, snapshot))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        await asyncio.shield(taking)

    async def _take(self, name: str, snapshot: "Snapshot") -> None:
        before, gone = self._snapshots.get(name), self._misses[name] >= defaults.PROBES_TO_UNAVAILABLE
        await self._import(name, snapshot)
        self._snapshots[name] = snapshot
        self.native.seen(name, snapshot)
        for kind in ("tools", "prompts", "resources"):
            back = gone and kind == "tools"  # the same tools, and nobody was shown them for a while
            if before is None or back or getattr(before, kind) != getattr(snapshot, kind):
                self.native.changed(kind)

    async def _import(self, name: str, snapshot: "Snapshot") -> None:
        """One server after the other, so that the lock file in memory misses none of them."""
        async with self._importing:
            # In a thread: a few hundred tools that are new take seconds.
            imported = await asyncio.to_thread(self._imported, name, snapshot.tools, self._around(name))
            self._register(name, imported, snapshot.capabilities)
            unsaid = [f"its instructions are not passed on: {why}" for why in distrusted(snapshot)]
            self._reports[name] = (*snapshot.faults, *unsaid, *imported.reports)
            for said in self._reports[name]:
                log.warning("upstream %s: %s", name, said)
            await self._keep(name, imported)
            await asyncio.to_thread(self._before.save, self._lock_path, self._made())

    def _made(self) -> list[Contract]:
        """The contracts of all upstreams, as they were last imported."""
        return [offer.contract for one in self._imports.values() for offer in one.imported.offers]

    def _imported(self, name: str, tools: Sequence[Any], around: Mapping[str, Contract]) -> Imported:
        overlay, lock = self._overlays[name], self._lock
        last = self._imports.get(name)
        if (
            last is not None
            and last.is_of(overlay, lock, around)
            and (again := last.again(tools)) is not None
        ):
            return again
        imported = self._import_tools(name, tools, around)
        self._imports[name] = Import(tools, overlay, lock, around, imported)
        return imported

    def _import_tools(self, name: str, tools: Sequence[Any], around: Mapping[str, Contract]) -> Imported:
        settings = self._config.upstreams[name]
        return import_tools(
            name,
            tools,
            overlay=self._overlays[name],
            lock=self._lock,
            trust_annotations=settings.trust_annotations,
            now=self._now(),
            plain=settings.prefix == "",
            known=around.get,
            others=[contract.identity.name for contract in around.values()],
            unkept=promised_egress.broken(self._config, name),
            recall=self._before.find,
        )

    def _register(
        self, name: str, imported: Imported, capabilities: Mapping[str, Any], *, down: bool = False
    ) -> None:
        offers = [*imported.offers, *companions(name, capabilities, promised_egress.word(self._config, name))]
        statuses = imported.statuses
        if down:
            statuses = {(o.contract.tool, o.contract.version): ToolStatus.UNAVAILABLE for o in offers}
        self._catalog.replace(name, offers, statuses)
        self.native.standing(name, hidden=imported.hidden, pinned=imported.pinned)

    def _around(self, name: str) -> dict[str, Contract]:
        """What other upstreams offer, by tool; looked up in the event loop: the catalog knows no threads."""
        tools = dict.fromkeys(o.tool.contract.tool for o in self._catalog.list() if o.upstream != name)
        found = {tool: self._catalog.find(tool, None) for tool in tools}
        return {tool: one.tool.contract for tool, one in found.items() if one is not None}

    async def _keep(self, name: str, imported: Imported) -> None:
        """Write the lock down, and put on record what was put into quarantine just now."""
        fresh = set(imported.quarantined) - set(_waiting(self._lock.tools(name)))
        if imported.lock != self._lock:
            self._lock = imported.lock
            try:
                self._lock = await asyncio.to_thread(imported.lock.save, self._lock_path)
                self._stamp = _stamp(self._lock_path)
            except ConfigError as error:
                log.error("%s; what was found now is not remembered", error)
        for tool in sorted(fresh):
            drift = imported.quarantined[tool]
            why = drift if isinstance(drift, str) else drift.text()
            log.warning("%s.%s changed and waits for an operator: holdfast tools changes", name, tool)
            await self._note("*", "quarantine", "holdfast", tool=f"{name}.{tool}", change=why[:4000])

    # --- the lock file --------------------------------------------------------------------

    @property
    def _lock_path(self) -> Path:
        return self._config.folder / self._config.lock

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="seconds")

    async def notice(self) -> None:
        """Somebody may have accepted a change: another process, or a person with an editor."""
        if not self._upstreams or _stamp(self._lock_path) == self._stamp:
            return
        try:
            self._read_files()
        except HoldfastError as error:
            log.error("what was changed beside the lock file is not used: %s", error)
            self._stamp = _stamp(self._lock_path)
            return
        for name, snapshot in list(self._snapshots.items()):
            await self._import(name, snapshot)
        self.native.changed("tools")

    def pending(self) -> dict[str, dict[str, Pending]]:
        """What waits for an operator, by upstream and tool."""
        return {name: found for name in self._upstreams if (found := _waiting(self._lock.tools(name)))}

    async def accept(self, name: str, tool: str, by: str, digest: str | None = None) -> None:
        """Take a changed tool as it is now; `digest` names what was shown. Raises NotFound."""
        await self.notice()
        async with self._importing:
            lock = accept(self._lock, name, tool, by, self._now(), digest=digest)
            self._lock = await asyncio.to_thread(lock.save, self._lock_path)
            self._stamp = _stamp(self._lock_path)
        await self._note("*", "accept", by, tool=f"{name}.{tool}", digest=digest)
        if (snapshot := self._snapshots.get(name)) is not None:
            await self._import(name, snapshot)
            self.native.changed("tools")


def _descriptors(tools: Tools) -> list[Mapping[str, Any]]:
    """What the lock file knows of a server: what waits where something does, else what was accepted."""
    found = [entry.pending or entry.current for entry in tools.values()]
    return [one.descriptor for one in found if one is not None]


def _waiting(tools: Tools) -> dict[str, Pending]:
    """What nobody has accepted yet, by our own names."""
    return {
        local_name(native): entry.pending
        for native, entry in tools.items()
        if entry.pending is not None and entry.pending.accepted_by is None
    }


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
