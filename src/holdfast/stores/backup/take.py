"""Everything of a store at one moment, in one file: how is it taken while others write?"""

from pathlib import Path

from holdfast.records.merkle import root_of
from holdfast.stores.backup.archive import Sign, written
from holdfast.stores.backup.manifest import Manifest
from holdfast.stores.backup.snapshot import Snapshot
from holdfast.stores.backup.tables import TABLES
from holdfast.stores.sql.sequencer import Tree

LIFE = "SELECT number, id FROM store_life WHERE tenant = '*' ORDER BY number DESC LIMIT 1"


async def take(snapshot: Snapshot, path: Path, now: float, sign: Sign) -> Manifest:
    """Write the backup; raises StoreError, and then there is no file."""
    with written(path) as pen:
        members = {}
        for table in TABLES:
            columns = await snapshot.columns(table)
            names = ", ".join(columns)
            batches = snapshot.stream(f"SELECT {names} FROM {table}")  # noqa: S608
            members[table] = await pen.table(table, columns, batches)
        tree = Tree(snapshot.all)
        size = await tree.size()
        root = await tree.of(lambda nodes: root_of(nodes, size))
        number, name = (*await snapshot.all(LIFE), (1, ""))[0]
        manifest = Manifest(
            engine=snapshot.engine,
            shape=await snapshot.shape(),
            life=number,
            life_id=name,
            taken_at=now,
            tree_size=size,
            tree_root=root.hex(),
            tables=members,
        )
        pen.close(manifest, sign)
    return manifest
