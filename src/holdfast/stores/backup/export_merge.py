"""What does an exported log add to a store that was put back? The operations it tells of, and itself."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.ports import Secrets
from holdfast.records.exported import Export
from holdfast.records.log import Leaf
from holdfast.records.merkle import Frontier, leaf_hash
from holdfast.records.note import Verifier
from holdfast.records.verify import verify_export
from holdfast.stores.backup.exported import Telling, take_told
from holdfast.stores.backup.given import REVOCATION, take_given, told_revocation
from holdfast.stores.backup.labels import LabelsTold, take_gained
from holdfast.stores.backup.merge import Merged
from holdfast.stores.backup.operations import Taken
from holdfast.stores.backup.tail import head, take_leaves
from holdfast.stores.sql.engine import Reader, Writer

BATCH = 500


def is_export(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).startswith(b'{"holdfast_export":')


async def merge_export(
    path: Path, key: Verifier, secrets: Secrets, writer: Writer, reader: Reader, since: float
) -> Merged:
    """Raises StoreError for one that is not intact."""
    report = verify_export(path, key)
    if not report.ok:
        raise StoreError(f"the export '{path}' is not intact: {report.faults[0]}")
    merged, taken = Merged(str(path)), Taken()
    tenants = [tenant for (tenant,) in await reader.all("*", "SELECT tenant FROM tenant_key")]
    telling, seen = Telling(secrets, tenants), LabelsTold(secrets, tenants)
    revoked = []
    for leaf in _leaves(path, key):
        if leaf.record is not None:
            telling.see(leaf.record)
            seen.see(leaf.record)
            if (said := told_revocation(leaf.record)) is not None:
                revoked.append(said)
    await writer.submit_long("*", take_given, REVOCATION, revoked)
    for start in range(0, len(seen.gained), BATCH):
        await writer.submit_long("*", take_gained, seen.gained[start : start + BATCH])
    rows = telling.rows()
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        taken = taken.plus(await writer.submit_long("*", take_told, part, since))
    merged.operations, merged.unknown = taken
    merged.unreadable = telling.unreadable
    merged.records, merged.log_fault = await _take_log(path, key, writer, reader)
    return merged


async def _take_log(path: Path, key: Verifier, writer: Writer, reader: Reader) -> tuple[int, str | None]:
    size, root = await head(reader)
    with path.open("rb") as file:
        if not Export(file, key).whole:
            return 0, "the export is a part of the log"
    tree = Frontier()
    for leaf in _leaves(path, key):
        if tree.size == size:
            break
        tree.append(leaf_hash(leaf.hash))
    if tree.size == size and tree.root() != root:
        return 0, f"its log and the one here differ within the first {size} records"
    return await take_leaves(_after(path, key, size), writer, reader)


async def _after(path: Path, key: Verifier, size: int) -> AsyncIterator[list[Leaf]]:
    batch: list[Leaf] = []
    for leaf in _leaves(path, key):
        if leaf.place >= size:
            batch.append(leaf)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _leaves(path: Path, key: Verifier) -> Iterator[Leaf]:
    with path.open("rb") as file:
        yield from Export(file, key).leaves()
