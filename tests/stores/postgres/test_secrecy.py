"""Can anybody who reads the database read what callers sent and got?"""

from pathlib import Path

from holdfast.model.observation import Status
from holdfast.model.vocabulary import State
from holdfast.ports import Begun
from holdfast.testing import ManualClock
from tests.postgres import server
from tests.requirements import requirement
from tests.stored import asked, durable, place, url_of
from tests.stores.calls import make_call, observed

CANARY = "canary"
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'holdfast'::regnamespace"


def everything(url: str) -> dict[str, str]:
    """Every row of every table as a superuser sees it, and its bytes as they are."""
    name = url.rpartition("?")[0].rpartition("/")[2]
    admin = server().admin_url(name)
    return {
        table: "\n".join(row for (row,) in asked(admin, f'SELECT t::text FROM holdfast."{table}" t'))
        for (table,) in asked(admin, TABLES)
    }


@requirement("CON-6")
async def test_nothing_a_caller_sent_or_got_can_be_read_from_the_tables(tmp_path: Path) -> None:
    clock = ManualClock()
    async with place("postgres", tmp_path), durable("postgres", tmp_path, clock) as store:
        call = make_call(clock, "k-1", arguments={"to": f"{CANARY}-argument"})
        await store.approvals.ask(call, {"operator": 1}, {"shown": f"{CANARY}-packet"})
        begun = await store.ledger.begin(call)
        assert isinstance(begun, Begun)
        call.operation = begun.operation
        told = observed(call, data={"iban": f"{CANARY}-result"}, mutations=({"to": f"{CANARY}-change"},))
        assert await store.ledger.finish(call, told, State.COMMITTED)
        refusal = observed(call, Status.REFUSED, message=f"{CANARY}-message")
        await store.ledger.refuse(call, refusal, None)
        await store.tokens.save(("acme", "ann"), "crm", f"{CANARY}-token".encode(), 1.0, new=True)
        seen = everything(url_of("postgres", tmp_path))
    assert {"operation", "record", "approval", "token", "tenant_key"} <= {name for name in seen if seen[name]}
    hidden = (CANARY, CANARY.encode().hex())
    assert [name for name, rows in seen.items() if any(word in rows for word in hidden)] == []
