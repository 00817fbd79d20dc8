"""How fast is a log sequenced, proved, exported and verified?"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from bench.tools import TOOLS
from holdfast import Gateway, Principal
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.records.chain import Chain, Record
from holdfast.records.export import Part
from holdfast.records.exported import inspect_export
from holdfast.records.report import Report
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.log import opened

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
SAMPLE = 20
"""Real calls whose records are written again and again, under other names."""
AIM = 50_000
_INSERT = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


async def audit(records: int = 100_000) -> None:
    """A log of many records, with bodies that a gateway wrote."""
    assert TOOLS
    with tempfile.TemporaryDirectory() as folder:
        upstreams = {"b": {"functions": "bench.tools:TOOLS"}}
        config = configuration.parse({"upstreams": upstreams}, folder=Path(folder))
        await _call(config)
        _repeat(config, records)
        started = time.perf_counter()
        async with Gateway.open(config) as gateway:
            while await gateway._auditing.tidy():  # the part itself is under test
                pass
        sequenced = time.perf_counter() - started
        print(f"\naudit log of {records} records")
        print(f"  sequenced         {records / sequenced:10,.0f} records/s")
        _verified(config)


async def _call(config: configuration.Config) -> None:
    async with Gateway.open(config) as gateway:
        for n in range(SAMPLE):
            await gateway.call("b.look", {"item": f"i-{n}"}, principal=AGENT)
            await gateway.call("b.mark", {"item": f"i-{n}"}, principal=AGENT, key=f"k-{n}")


def _repeat(config: configuration.Config, records: int) -> None:
    """Write the reads again as another writer: they leave nothing in the ledger."""
    with opened(config.store_path) as log:
        real = [leaf.record for leaf in log.leaves() if leaf.record is not None]
    reads = [record for record in real if '"tool":"b.look' in record.body]
    chain, connection = Chain("w_bench"), connect(config.store_path)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO chain_head VALUES ('*', 'w_bench', 0, zeroblob(32), 1, '')")
    for n in range(records):
        connection.execute(_INSERT, _again(chain, reads[n % len(reads)], n // len(reads)))
    connection.execute("COMMIT")
    connection.close()


def _again(chain: Chain, record: Record, turn: int) -> Record:
    body = record.body.replace('"nonce":"', f'"nonce":"{turn}-', 1)
    return chain.append(record.tenant, f"{record.call_id}{turn}", record.kind, record.at, body)


def _verified(config: configuration.Config) -> None:
    key = logfile.public_key(config)
    file = BytesIO()
    logfile.write_export(config, Part(), file)
    looks: dict[str, Callable[[], Report]] = {
        "database": lambda: logfile.verify(config.store_path, auditing.checkpoint_path(config), key),
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
