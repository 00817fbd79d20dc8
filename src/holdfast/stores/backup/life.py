"""How often did this store begin to live, and does it know what happened in between?"""

import secrets
from typing import NamedTuple

from holdfast.model.restored import RESTORED
from holdfast.records.body import act_body
from holdfast.stores.backup.standing import end_all
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.sql.engine import HALTED, Transaction

LIVES = "SELECT number, id, since, why, recovered_at FROM store_life WHERE tenant = '*' ORDER BY number"
ADD_LIFE = "INSERT INTO store_life VALUES ('*', ?, ?, ?, ?, ?)"
ADD_HALT = "INSERT INTO halt VALUES ('*', ?, ?, ?, ?) ON CONFLICT DO NOTHING"


class Life(NamedTuple):
    number: int
    id: str
    since: float
    why: str
    recovered_at: float | None = None

    @property
    def recovered(self) -> bool:
        """Whether it is known what happened before it; before the first there was nothing."""
        return self.number == 1 or self.recovered_at is not None


def begun(number: int, since: float, why: str) -> Life:
    return Life(number, secrets.token_hex(8), since, why)


async def notice(transaction: Transaction, why: str, by: str, now: float) -> bool:
    """The store was put back behind our back: halt, and count a new life; False when that is known."""
    await transaction.brake()
    if RESTORED in await transaction.halts((RESTORED,)):
        return False
    lives = await transaction.all(LIVES)
    life = begun(1 + max((number for number, *_ in lives), default=1), now, why)
    await transaction.run(ADD_LIFE, life)
    await transaction.run(ADD_HALT, (RESTORED, by, why, now))
    body = act_body(now, "restore noticed", by, life=life.number, note=why)
    transaction.record(EVERYWHERE, "", "control", now, body)
    transaction.ring(HALTED)
    return True


async def recovered(transaction: Transaction, by: str, now: float, told: dict[str, object]) -> None:
    """What happened since is known, or given up: writes go on."""
    await transaction.brake()
    await transaction.run(
        "UPDATE store_life SET recovered_at = ? WHERE tenant = '*' AND number > 1 AND recovered_at IS NULL",
        (now,),
    )
    if told.get("nothing_left"):
        await end_all(transaction, now, by)
    await transaction.run("DELETE FROM halt WHERE tenant = '*' AND target = ?", (RESTORED,))
    transaction.record(EVERYWHERE, "", "control", now, act_body(now, "recover", by, **told))
    transaction.ring(HALTED)
