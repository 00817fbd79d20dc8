"""How fast is a log sequenced, proved, exported and verified?"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import asyncpg

from bench.tools import TOOLS
from holdfast import Gateway, Principal
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.records.export import Part
from holdfast.records.exported import inspect_export
from holdfast.records.report import Report
from holdfast.stores.log import opened
from holdfast.stores.sql.engine import OPEN_CHAIN
from holdfast.stores.sqlite.connection import connect

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
SAMPLE = 20
"""Real calls whose records are written again and again, under other names."""
AIM = 50_000
_INSERT = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


async def audit(records: int = 100_000, store: str = "sqlite:///holdfast.db") -> None:
    """A log of many records, with bodies that a gateway wrote."""
    assert TOOLS
    with tempfile.TemporaryDirectory() as folder:
        said = {"store": store, "upstreams": {"b": {"functions": "bench.tools:TOOLS"}}}
        config = configuration.parse(said, folder=Path(folder))
        await _call(config)
        await _repeat(config, records)
        started = time.perf_counter()
        async with Gateway.open(config) as gateway:
            while await gateway._auditing.tidy():  # the part itself is under test
                pass
        sequenced = time.perf_counter() - started
        print(f"\naudit log of {records} records, {config.store.partition(':')[0]}")
        print(f"  sequenced         {records / sequenced:10,.0f} records/s")
        _verified(config)


async def _call(config: configuration.Config) -> None:
    async with Gateway.open(config) as gateway:
        for n in range(SAMPLE):
            await gateway.call("b.look", {"item": f"i-{n}"}, principal=AGENT)
            await gateway.call("b.mark", {"item": f"i-{n}"}, principal=AGENT, key=f"k-{n}")


async def _repeat(config: configuration.Config, records: int) -> None:
    """Write the reads again as another writer: they leave nothing in the ledger."""
    with opened(logfile.place(config)) as log:
        real = [leaf.record for leaf in log.leaves_of(None, 0.0) if leaf.record is not None]
    reads = [record for record in real if '"tool":"b.look' in record.body]
    chain = Chain("w_bench")
    made = [_again(chain, reads[n % len(reads)], n // len(reads)) for n in range(records)]
    if config.on_postgres:
        connection = await asyncpg.connect(config.store)
        await connection.execute("SET holdfast.tenant = '*'; SET search_path = holdfast")
        await connection.execute(OPEN_CHAIN.replace("?", "$1", 1).replace("?", "$2"), "w_bench", GENESIS)
        places = ", ".join(f"${n}" for n in range(1, 10))
        await connection.executemany(f"INSERT INTO record VALUES ({places})", made)
        await connection.close()
        return
    file = connect(config.store_path)
    file.execute("BEGIN")
    file.execute(OPEN_CHAIN, ("w_bench", GENESIS))
    file.executemany(_INSERT, made)
    file.execute("COMMIT")
    file.close()


def _again(chain: Chain, record: Record, turn: int) -> Record:
    body = record.body.replace('"nonce":"', f'"nonce":"{turn}-', 1)
    return chain.append(record.tenant, f"{record.call_id}{turn}", record.kind, record.at, body)


def _verified(config: configuration.Config) -> None:
    key = logfile.public_key(config)
    file = BytesIO()
    logfile.write_export(config, Part(), file)
    looks: dict[str, Callable[[], Report]] = {
        "database": lambda: logfile.verify(logfile.place(config), auditing.checkpoint_path(config), key),
        "export": lambda: inspect_export(BytesIO(file.getvalue()), [], key),
    }
    for name, look in looks.items():
        cpu = time.process_time()
        report = look()
        cpu = time.process_time() - cpu
        assert report.ok, report.faults[:3]
        rates = (
            f"{report.records / report.seconds:10,.0f} records/s, {report.records / cpu:,.0f} per s of CPU"
        )
        print(f"  verified {name:<9}{rates}   aim >= {AIM:,}")


if __name__ == "__main__":
    asyncio.run(audit())
