"""The log as it lies in the store of a configuration: verified and exported without opening a gateway."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from holdfast.config import Config
from holdfast.gateway.auditing import ALL_TENANTS, checkpoint_path, signer
from holdfast.gateway.storing import store_of
from holdfast.model.errors import StoreError
from holdfast.records import checkpoint, export
from holdfast.records.checkpoint import CheckpointFile
from holdfast.records.export import Head, Part
from holdfast.records.inspection import inspect
from holdfast.records.merkle import inclusion_proof
from holdfast.records.note import BadNote, Verifier
from holdfast.records.report import Report
from holdfast.stores.log import opened
from holdfast.system import SystemClock


def place(config: Config) -> Path | str:
    """Where the log of a configuration lies: a file, or a database by its URL."""
    return config.store if config.on_postgres else config.store_path


def verify(store: Path | str, checkpoints: Path, key: Verifier | None) -> Report:
    """Look at everything in a database, against checkpoints from outside it."""
    with opened(store) as log:
        return inspect(log, CheckpointFile(checkpoints).read(), key)


def public_key(config: Config) -> Verifier:
    return signer(config).verifier


def write_export(config: Config, part: Part, file: BinaryIO) -> int:
    """Export what the last checkpoint speaks for; how many leaves that are."""
    signs = signer(config)
    notes = CheckpointFile(checkpoint_path(config)).read()
    with opened(place(config)) as log:
        head = _head(notes, signs.verifier)
        if log.size() < head.size:
            raise StoreError("the log is shorter than its last checkpoint; run 'holdfast audit verify'")
        leaves = log.leaves() if part.whole else log.leaves_of(part.tenant, part.since or 0.0)
        node = log.node
        return export.write(
            file, part, head, leaves, signs, lambda leaf: inclusion_proof(node, leaf, head.size)
        )


async def exported(config: Config, tenant: str, since: float | None) -> BinaryIO:
    """An export in a file that nobody else sees and that is gone when it is closed."""
    file: BinaryIO = TemporaryFile()  # noqa: SIM115  # its reader closes it
    try:
        await asyncio.to_thread(write_export, config, Part(tenant, since), file)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


async def note_issued(config: Config, by: str, key: Mapping[str, str]) -> bool:
    """Record that a credential was made; False where there is no log yet to record it in."""
    if not config.on_postgres and not config.store_path.exists():
        return False
    person = config.auth.people.get(key["user"])
    told = {f"key_{name}": value for name, value in key.items() if name != "hash"}
    async with store_of(config, SystemClock()) as store:
        tenant = ALL_TENANTS if person is None else person.tenant
        await store.audit.note(tenant, "issue key", by, **told)
    return True


def _head(notes: list[str], key: Verifier) -> Head:
    if not notes:
        raise StoreError(
            "nothing is signed here yet, so there is nothing to export; the first call changes that"
        )
    try:
        last = checkpoint.opened(notes[-1], key)
    except BadNote as bad:
        raise StoreError(
            f"the last checkpoint cannot be trusted: {bad}; run 'holdfast audit verify'"
        ) from None
    return Head(last.size, last.root, notes)
