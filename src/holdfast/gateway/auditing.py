"""Keeps the audit: puts records into the tree, has the tree signed, drops what is past its time."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from holdfast.config import Config
from holdfast.model import defaults
from holdfast.model.errors import NotFound, StoreError
from holdfast.model.record import Entry, Proof, Use, record_place
from holdfast.ports import Audit, Clock, Views
from holdfast.records import checkpoint
from holdfast.records.checkpoint import Checkpoint, CheckpointFile, Notary
from holdfast.records.merkle import is_consistent, leaf_hash, root_from_inclusion
from holdfast.records.note import Signer, Verifier, kept_key, key_from, read_key
from holdfast.stores.backup.lives import SqlLives

log = logging.getLogger(__name__)

DAY_S = 86_400.0
SCOPE = "holdfast:audit"
ALL_TENANTS = "*"
CALL_RECORDS = 1000
"""Records of one call that are looked at: far more than approvals, attempts and settlements leave."""


class LogState(NamedTuple):
    """How far the log goes, and how far it is signed."""

    size: int
    root: bytes
    signed: Checkpoint | None
    """The newest checkpoint; None where nothing was signed yet, or nobody signs."""


def key_path(config: Config) -> Path:
    return config.beside(".audit.key")


def checkpoint_path(config: Config) -> Path:
    if config.audit.checkpoints is not None:
        return config.folder / config.audit.checkpoints
    return config.beside(".checkpoints")


def signer(config: Config, *, make: bool = False) -> Signer:
    """The configured key; with `make`, one beside the store is made where none is named."""
    if config.audit.key is not None:
        return key_from(config.audit.key, config.folder)
    path = key_path(config)
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
            return kept_key(path)
        if not path.exists():
            raise StoreError(f"there is no audit key '{path}' yet; the first call makes one")
        return read_key(path)
    except OSError as error:
        raise StoreError(f"the audit key '{path}' cannot be read: {error}") from error


def notary(config: Config) -> Notary:
    """What signs this gateway's checkpoints."""
    return Notary(signer(config, make=True), CheckpointFile(checkpoint_path(config)))


GATHERED = 50
"""Rounds of sequencing before a backup: each takes some ten thousand records, and others come meanwhile."""


class Auditing:
    """One gateway's care for the log. Without a notary records are sequenced and nothing is signed."""

    def __init__(
        self,
        audit: Audit,
        signs: Notary | None,
        clock: Clock,
        lives: SqlLives | None = None,
        views: Views | None = None,
    ) -> None:
        self._audit = audit
        self._views = views
        self._lives = lives
        self._notary = signs
        self._clock = clock
        self._signed_at = float("-inf")
        self._alarmed = False

    # --- housekeeping ---------------------------------------------------------------------

    async def tidy(self, *, sign_now: bool = False) -> int:
        """Sequence what waits; sign the tree when it is time. Returns how many records were sequenced."""
        sequenced = await self._audit.sequence(others=sign_now)
        due = self._clock.monotonic() - self._signed_at >= defaults.CHECKPOINT_S
        if self._notary is not None and (sign_now or due):
            await self._sign(self._notary)
        return sequenced

    async def gather(self) -> None:
        """Whatever was recorded so far, by whichever process, is in the tree."""
        for _ in range(GATHERED):
            if not await self._audit.sequence():
                break

    async def usage(self, since: float) -> Sequence[Use]:
        await self._audit.sequence()
        return await self._audit.usage(since)

    async def notice_erasures(self) -> None:
        await self._audit.notice_erasures()

    async def prune(self, config: Config, tenants: Iterable[str]) -> int:
        """Drop what is past its tenant's retention and behind a checkpoint."""
        last = None if self._notary is None else await asyncio.to_thread(self._notary.last)
        if last is None:
            return 0
        total, own = 0, config.audit.tenants
        for tenant in sorted({*tenants, *own, ALL_TENANTS}):
            days = own[tenant].retention_days if tenant in own else config.audit.retention_days
            if days is not None:
                before = self._clock.now() - days * DAY_S
                gone = await self._audit.prune(tenant, before, last.size)
                if gone and self._views is not None:
                    await self._views.forget(tenant, before)
                total += gone
        return total

    async def _sign(self, signs: Notary) -> None:
        """Only a tree that grew out of the last one signed: the key is no help to whoever rewrote it."""
        known = await asyncio.to_thread(signs.last)
        size, root = await self._audit.head()
        if size == (0 if known is None else known.size) and (known is None or known.root == root):
            self._signed_at = self._clock.monotonic()
            return
        if known is not None and not await self._grew(known, size, root):
            await self._put_back(known, size)
            return
        note = await asyncio.to_thread(signs.publish, size, root, self._clock.now(), known)
        self._signed_at = self._clock.monotonic()
        if note is not None:
            await self._audit.keep_checkpoint(size, note)

    async def _grew(self, known: Checkpoint, size: int, root: bytes) -> bool:
        if known.size > size:
            return False
        proof = await self._audit.consistency(known.size, size)
        return is_consistent(known.size, known.root, size, root, proof)

    # --- a store that is older than what was signed ---------------------------------------

    async def notice(self) -> None:
        """Before anything runs: is this the store that was signed last, or one that somebody put back?"""
        if (behind := await self.behind()) is not None:
            await self._put_back(*behind)

    async def behind(self) -> tuple[Checkpoint, int] | None:
        """The last checkpoint and the size of the log, where the log does not lead to the checkpoint."""
        known = None if self._notary is None else await asyncio.to_thread(self._notary.last)
        if known is None:
            return None
        size, root = await self._audit.head()
        return None if await self._grew(known, size, root) else (known, size)

    def set_aside(self, number: int) -> Path | None:
        """Begin the checkpoints anew: what they vouched for is lost. Where the old ones are now."""
        if self._notary is None or not self._notary.file.path.exists():
            return None
        path = self._notary.file.path
        return path.rename(path.with_name(f"{path.name}.before-{number}"))

    async def _put_back(self, known: Checkpoint, size: int) -> None:
        """A log that ends before its last checkpoint lacks calls as well: their keys must not run again."""
        lives = [] if self._lives is None else await self._lives.all()
        recovered = max((life.recovered_at or 0.0 for life in lives), default=0.0)
        if self._lives is None:
            await self._alarm(known, size)
            return
        if datetime.fromisoformat(known.time).timestamp() < recovered:
            log.error(
                "audit: the checkpoints here end at %s, before the store was recovered without what it did"
                " last; nothing is signed here until you move that file away",
                known.time,
            )
            return
        if await self._lives.restored():
            return  # known, and waiting for its recovery
        why = f"its log of {size} records does not lead to the checkpoint of {known.time} over {known.size}"
        if await self._lives.notice(f"it was put back without 'holdfast store restore': {why}", "holdfast"):
            log.error("the store was put back: %s; writes are refused: run 'holdfast store recover'", why)

    async def _alarm(self, known: Checkpoint, size: int) -> None:
        log.error(
            "audit: the log of %d records did not grow out of the checkpoint of %s over %d: it was rewritten,"
            " or restored from a backup; no checkpoint is signed: run 'holdfast audit verify'",
            size,
            known.time,
            known.size,
        )
        if not self._alarmed:
            self._alarmed = True
            await self.note(ALL_TENANTS, "checkpoint refused", "holdfast", checkpoint=known.size, size=size)

    # --- looking --------------------------------------------------------------------------

    async def of_call(self, tenant: str, call_id: str, after: int = -1, limit: int = 1000) -> Sequence[Entry]:
        await self._audit.sequence()
        return await self._audit.of_call(tenant, call_id, after, limit)

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        await self._audit.sequence()
        return await self._audit.since(tenant, at, after, limit)

    async def before(self, tenant: str, at: float, leaf: int, limit: int) -> Sequence[Entry]:
        await self._audit.sequence()
        return await self._audit.before(tenant, at, leaf, limit)

    async def state(self) -> LogState:
        await self._audit.sequence()
        size, root = await self._audit.head()
        last = None if self._notary is None else await asyncio.to_thread(self._notary.last)
        return LogState(size, root, last)

    async def tenants(self) -> Sequence[str]:
        await self._audit.sequence()
        return await self._audit.tenants()

    async def proof(self, tenant: str, record: str) -> Proof:
        """That a record is in the log, up to the newest checkpoint over it; raises NotFound."""
        found = await self.claimed(tenant, record)
        leaf = leaf_hash(found.entry.record.hash)
        if root_from_inclusion(leaf, found.entry.leaf, found.size, found.path) != found.root:
            raise StoreError(
                f"record {record!r} does not lead to the signed root; run 'holdfast audit verify'"
            )
        return found

    async def claimed(self, tenant: str, record: str) -> Proof:
        """What the store says proves a record, for somebody who checks it; raises NotFound."""
        await self._audit.sequence()
        place = record_place(record)
        entry = None if place is None else await self._audit.find(tenant, *place)
        if entry is None:
            raise NotFound(f"there is no record {record[:80]!r} here; 'writer:number' names one")
        note = await self._audit.checkpoint(entry.leaf)
        if note is None:
            size, root = await self._audit.head()
        else:
            signed = checkpoint.read(note)
            size, root = signed.size, signed.root
        path = tuple(await self._audit.inclusion(entry.leaf, size))
        return Proof(entry, size, root, path, note)

    @property
    def verifier(self) -> Verifier | None:
        """What knows this gateway's signature; None where nothing is signed."""
        return None if self._notary is None else self._notary.verifier

    # --- acting ---------------------------------------------------------------------------

    async def erase(self, tenant: str, by: str) -> bool:
        return await self._audit.erase(tenant, by)

    async def note(self, tenant: str, act: str, by: str, *, about: str = "", **members: object) -> None:
        await self._audit.note(tenant, act, by, about=about, **members)
