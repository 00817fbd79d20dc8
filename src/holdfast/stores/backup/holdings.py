"""What else came and went meanwhile: tenants and their keys, sign-ins, brakes, policies?"""

from collections.abc import Mapping, Sequence

from holdfast.model.restored import RESTORED
from holdfast.records.body import act_body
from holdfast.stores.backup.rows import Table
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.sql.engine import HALTED, POLICIES, Transaction

ERASED = "SELECT DISTINCT tenant FROM record WHERE kind = 'control' AND body LIKE '%\"operation\":\"erase\"%'"

_PROMOTED = "SELECT number, version FROM promotion WHERE tenant = '*' ORDER BY number"


async def take_keys(
    transaction: Transaction, there: Mapping[str, bytes], erased: frozenset[str], now: float
) -> tuple[int, int]:
    """How many tenants are new here, and how many were erased there, which a backup must not undo."""
    await transaction.shred()
    here: dict[str, bytes] = dict(await transaction.all("SELECT tenant, wrapped FROM tenant_key"))
    born = gone = 0
    for tenant, wrapped in there.items():
        if here.get(tenant) != wrapped:
            await transaction.run("DELETE FROM tenant_key WHERE tenant = ?", (tenant,))
            await transaction.run("INSERT INTO tenant_key VALUES (?, ?)", (tenant, wrapped))
            born += tenant not in here
    for tenant in sorted(erased & here.keys() - there.keys()):
        await transaction.run("DELETE FROM tenant_key WHERE tenant = ?", (tenant,))
        transaction.record(tenant, "", "control", now, act_body(now, "erase", "recover"))
        gone += 1
    return born, gone


async def take_tokens(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    """The newer sign-in stays."""
    at, taken = table.columns.index("at"), 0
    for row in rows:
        found = await table.find(transaction, row)
        if found is None or found[at] < row[at]:
            await table.put(transaction, row)
            taken += 1
    return taken


async def take_halts(transaction: Transaction, table: Table, rows: Sequence[Row]) -> list[str]:
    """Brakes that were pulled meanwhile are pulled again; what was released there is still braked here."""
    await transaction.brake()
    target = table.columns.index("target")
    others = [row for row in rows if row[target] != RESTORED]
    pulled = [str(row[target]) for row in others if await table.add(transaction, [row])]
    transaction.ring(HALTED)
    return pulled


async def take_promotions(
    transaction: Transaction, bundles: tuple[Table, Sequence[Row]], promotions: tuple[Table, Sequence[Row]]
) -> tuple[list[str], bool]:
    """The versions promoted meanwhile, and whether they are in force again.

    They are where nobody promoted anything here since the restore: what happened there comes next.
    """
    await transaction.brake()
    table, rows = promotions
    here = await transaction.all(_PROMOTED)
    named = [(said["number"], said["version"]) for said in map(table.dict, rows)]
    since = [str(version) for _, version in named[len(here) :]]
    if named[: len(here)] != here:
        return [str(version) for number, version in named if (number, version) not in here], False
    await bundles[0].add(transaction, bundles[1])
    for row in rows:
        await table.put(transaction, row)
    transaction.ring(POLICIES)
    return since, True
