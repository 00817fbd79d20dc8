"""Is the log in a PostgreSQL database read as it is there, all of it, in one moment?"""

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import asyncpg
import pytest

from holdfast.model.errors import StoreError
from holdfast.model.record import Record
from holdfast.records.chain import Chain
from holdfast.records.inspection import inspect
from holdfast.records.merkle import Frontier, inclusion_proof, is_included, leaf_hash
from holdfast.records.report import Report
from holdfast.stores.log import opened
from holdfast.stores.postgres.aside import CHUNK
from holdfast.stores.postgres.connection import Connection
from tests.postgres import database, empty_database
from tests.requirements import requirement

WRITERS, TENANTS = ("w_1", "w_2", "w_3"), ("acme", "default")
SEQUENCED, WAITING = 120, 6


def written(count: int) -> list[Record]:
    chains = [Chain(writer) for writer in WRITERS]
    return [
        chains[n % 3].append(TENANTS[n % 2], f"call-{n}", "call", 1000.0 + n, f'{{"n":{n}}}')
        for n in range(count)
    ]


async def keep(connection: Connection, records: Sequence[Record], sequenced: int) -> None:
    """Write these, and take the first of them into the tree."""
    frontier = Frontier()
    leaves: list[tuple[object, ...]] = []
    nodes: list[tuple[object, ...]] = []
    for place, record in enumerate(records[:sequenced]):
        leaves.append((record.tenant, place, *record[1:4], record.at, record.hash))
        nodes += [("*", *node) for node in frontier.append(leaf_hash(record.hash))[1:]]
    rows = {"record": [tuple(record) for record in records], "tree_leaf": leaves, "tree_node": nodes}
    for table, values in rows.items():
        places = ", ".join(f"${n}" for n in range(1, len(values[0]) + 1))
        await connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with database() as url:
        yield url


@pytest.fixture
async def hand(url: str) -> AsyncIterator[Connection]:
    """Somebody who writes to a database with a log in it."""
    connection = await asyncpg.connect(url)
    await connection.execute("SET search_path = holdfast; SET holdfast.tenant = '*'")
    await keep(connection, written(SEQUENCED + WAITING), SEQUENCED)
    yield connection
    await connection.close()


def looked_at(url: str) -> Report:
    with opened(url) as log:
        return inspect(log, [], None)


def faults(url: str) -> list[str]:
    return [fault.kind for fault in looked_at(url).faults]


@requirement("AUD-1")
async def test_a_log_that_nobody_touched_has_no_fault(url: str, hand: Connection) -> None:
    report = looked_at(url)
    assert report.faults == []
    assert (report.leaves, report.waiting) == (SEQUENCED, WAITING)


@requirement("AUD-1")
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE record SET body = '{}' WHERE call_id = 'call-7'", "changed"),
        ("DELETE FROM record WHERE call_id = 'call-7'", "removed"),
        ("DELETE FROM tree_leaf WHERE call_id = 'call-7'", "removed"),
        ("UPDATE tree_node SET hash = sha256('') WHERE level = 2 AND place = 3", "changed"),
        ("DELETE FROM tree_node WHERE level = 1 AND place = 9", "removed"),
        ("UPDATE record SET body = '{}' WHERE call_id = 'call-123'", "changed"),
    ],
)
async def test_what_was_changed_is_found(url: str, hand: Connection, statement: str, fault: str) -> None:
    assert await hand.execute(statement) in ("UPDATE 1", "DELETE 1")
    assert fault in faults(url)


@requirement("AUD-1")
async def test_an_operation_without_its_records_is_found(url: str, hand: Connection) -> None:
    await hand.execute(
        "INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint,"
        " state, epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, window_s)"
        " SELECT 'acme', 'p', 't', 'k', 'unheard', '', '', '', 'committed', 1, 'n', 'w', '', '', 0, 0, '', 0"
    )
    assert [fault for fault in looked_at(url).faults if "unheard" in str(fault)]


async def test_a_log_of_many_chunks_comes_whole_and_in_order(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("SET search_path = holdfast; SET holdfast.tenant = '*'")
    await connection.execute(
        "INSERT INTO tree_leaf SELECT 'acme', n, 'w', n, 'c', n, sha256('') FROM generate_series(0, $1) n",
        2 * CHUNK,
    )
    await connection.close()
    with opened(url) as log:
        places = [leaf.place for leaf in log.leaves()]
        assert log.size() == len(places) == 2 * CHUNK + 1
    assert all(after == before + 1 for before, after in pairwise(places))


async def test_all_of_it_is_of_one_moment(url: str, hand: Connection) -> None:
    with opened(url) as log:
        leaves = log.leaves()
        first = next(leaves)
        await hand.execute("DELETE FROM record; DELETE FROM tree_leaf; DELETE FROM tree_node")
        assert log.size() == SEQUENCED
        assert len([first, *leaves]) == SEQUENCED
        assert len(list(log.waiting())) == WAITING
        assert len(list(log.nodes(1) or ())) == SEQUENCED // 2
    assert looked_at(url).leaves == 0


async def test_a_part_is_one_tenants_from_a_time_on(url: str, hand: Connection) -> None:
    with opened(url) as log:
        mine = list(log.leaves_of("acme", 1100.0))
        late = list(log.leaves_of(None, 1100.0))
    assert [leaf.place for leaf in mine] == list(range(100, SEQUENCED, 2))
    assert {leaf.tenant for leaf in mine} == {"acme"}
    assert [leaf.place for leaf in late] == list(range(100, SEQUENCED))


@requirement("AUD-1")
async def test_its_kept_subtrees_prove_a_record(url: str, hand: Connection) -> None:
    frontier, records = Frontier(), written(SEQUENCED)
    for record in records:
        frontier.append(leaf_hash(record.hash))
    with opened(url) as log:
        path = inclusion_proof(log.node, 77, SEQUENCED)
    assert is_included(leaf_hash(records[77].hash), 77, SEQUENCED, path, frontier.root())


async def test_a_proof_that_lacks_a_subtree_is_not_made(url: str, hand: Connection) -> None:
    await hand.execute("DELETE FROM tree_node WHERE level = 3 AND place = 2")
    with opened(url) as log, pytest.raises(StoreError, match=r"node 3/2 .* run 'holdfast audit verify'"):
        inclusion_proof(log.node, 30, SEQUENCED)


async def test_a_database_without_a_log_says_so() -> None:
    async with empty_database() as url:
        with pytest.raises(StoreError, match="nothing was recorded here yet"):
            looked_at(url)


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be read") as raised:
        looked_at("postgresql://ana:open-sesame@127.0.0.1:1/holdfast")
    assert "'postgresql://127.0.0.1:1/holdfast'" in str(raised.value)
    assert "sesame" not in str(raised.value)
