"""A process that claims something, and can be stopped before that is committed.

    python -m tests.stores.postgres.stopped URL FOLDER

It says `inside` when it has written, waits for a line, goes on, and says what the store answered.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

from holdfast.stores.keyring import root_secret
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sql.claim import Claim, Lost, Won, claim
from holdfast.stores.sql.engine import Transaction
from holdfast.system import SystemClock
from tests.conflicts.test_kept import HALL, staged
from tests.conflicts.test_laws import PAINT
from tests.stores.calls import make_call
from tests.stores.test_staged import RATE

PATIENCE_S = 60.0


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(url: str, folder: Path) -> None:
    tries = 0

    async def claimed(transaction: Transaction, wish: Claim) -> object:
        nonlocal tries
        tries += 1
        answer: Won | Lost | object = await claim(transaction, wish)
        if tries == 1:
            say("inside")
            sys.stdin.readline()
        return answer

    keys, clock = partial(root_secret, folder / "ledger.db.keys"), SystemClock()
    async with PostgresStore(url, keys, clock) as store:
        assert store._parts
        call = make_call(clock, "stopped", tool=PAINT, stage=[*staged(HALL), RATE])
        call.id = call.nonce = "call_stopped"
        wish, writer = store.ledger._wish(call), store._parts[2]
        writer._patience_s = PATIENCE_S  # it is stopped for most of what a job has
        answer = await writer.submit(wish.tenant, True, claimed, wish)
        say(f"{type(answer).__name__} {tries}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
