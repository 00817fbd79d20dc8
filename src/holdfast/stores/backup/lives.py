"""The lives of one open store: which it has had, what it missed, and when it may write again."""

from collections.abc import Sequence
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.model.restored import RESTORED
from holdfast.ports import Clock
from holdfast.records.note import Verifier
from holdfast.stores.backup import life
from holdfast.stores.backup.export_merge import merge_export
from holdfast.stores.backup.life import LIVES, Life
from holdfast.stores.backup.merge import Merge, Merged
from holdfast.stores.backup.snapshot import Snapshot
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.keyring import Keyring
from holdfast.stores.sql.engine import HALTS, Reader, Writer

_KEYS = "SELECT tenant, wrapped FROM tenant_key"
_UNKNOWN = """
SELECT count(*) FROM operation o WHERE o.state = 'unknown' AND NOT EXISTS (
  SELECT 1 FROM job j WHERE j.tenant = o.tenant AND j.call_id = o.call_id AND j.state <> 'ENDED')
"""


class SqlLives:
    def __init__(self, writer: Writer, reader: Reader, secrets: Keyring, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock

    async def all(self) -> Sequence[Life]:
        return [Life(*row) for row in await self._reader.all(EVERYWHERE, LIVES)]

    async def restored(self) -> bool:
        """Whether writes are refused until it is known what happened since."""
        return any(target == RESTORED for target, *_ in await self._reader.all(EVERYWHERE, HALTS))

    async def notice(self, why: str, by: str) -> bool:
        """Somebody put the store back without saying so: halt every write; False when that is known."""
        return await self._writer.submit(EVERYWHERE, True, life.notice, why, by, self._clock.now())

    async def merge(self, source: Snapshot, since: float) -> Merged:
        """Take over what a lost store knows; raises StoreError when it is another gateway's."""
        await self._same_root(source)
        merged = await Merge(source, self._writer, self._reader, since, self._clock.now()).run()
        self._secrets.forget_but(dict(await self._reader.all(EVERYWHERE, _KEYS)))
        return merged

    async def merge_export(self, path: Path, key: Verifier, since: float) -> Merged:
        """Take over what an exported log tells; raises StoreError when it is not intact."""
        return await merge_export(path, key, self._secrets, self._writer, self._reader, since)

    async def unknown(self) -> int:
        """Operations whose outcome nobody knows."""
        [(count,)] = await self._reader.all(EVERYWHERE, _UNKNOWN)
        return int(count)

    async def recovered(self, by: str, told: dict[str, object]) -> None:
        """What happened since is known, or given up: let writes through."""
        await self._writer.submit(EVERYWHERE, True, life.recovered, by, self._clock.now(), told)

    async def _same_root(self, source: Snapshot) -> None:
        kept = await source.all(f"{_KEYS} WHERE tenant = '*'")
        if not kept or not self._secrets.opens(*kept[0]):
            raise StoreError(f"'{source.place}' was made with another key file: it is not what was lost here")
