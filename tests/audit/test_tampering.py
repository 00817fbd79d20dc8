"""Is every touch of the database found, and said where?"""

import sqlite3
from pathlib import Path

import pytest

from holdfast.records.chain import Chain, Record, record_hash
from holdfast.records.merkle import Frontier, leaf_hash
from tests.audit.world import Place, said
from tests.requirements import requirement

COLUMNS = "tenant, writer, seq, call_id, kind, at, body, prev, hash"


def record_at(connection: sqlite3.Connection, leaf: int) -> Record:
    found = connection.execute(
        f"SELECT r.* FROM record r JOIN tree_leaf l USING (tenant, writer, seq) WHERE l.leaf = {leaf}"
    )
    return Record(*found.fetchone())


def name_of(record: Record) -> str:
    return f"record {record.seq} of writer '{record.writer}' (call '{record.call_id}')"


def where(record: Record) -> tuple[object, ...]:
    return (record.tenant, record.writer, record.seq)


BY_PLACE = "tenant = ? AND writer = ? AND seq = ?"


@requirement("AUD-1")
def test_an_untouched_log_is_intact_to_its_end(thousand: Place) -> None:
    report = thousand.verify()
    assert (report.ok, report.records, report.leaves, report.tail) == (True, 1000, 1000, 0)
    assert (report.checkpoints, report.waiting, report.unfinished, report.pruned) == (10, 0, 0, 0)


@requirement("AUD-1")
@pytest.mark.parametrize("leaf", [0, 499, 999])
@pytest.mark.parametrize(
    "change",
    [
        "body = replace(body, 'caller', 'called')",
        "call_id = call_id || 'x'",
        "kind = 'refused'",
        "at = at + 0.001",
        "prev = randomblob(32)",
        "hash = zeroblob(32)",
        "body = CAST(x'7bff' AS TEXT)",
    ],
)
def test_a_changed_record_is_named(log: Place, leaf: int, change: str) -> None:
    with log.tampering() as connection:
        record = record_at(connection, leaf)
        connection.execute(f"UPDATE record SET {change} WHERE {BY_PLACE}", where(record))
    told = said(log.verify())
    assert f"record {record.seq} of writer '{record.writer}' (call '{record.call_id}" in told
    assert "was changed" in told or "rewritten" in told


@requirement("AUD-1")
@pytest.mark.parametrize("leaf", [0, 499, 999])
def test_a_removed_record_is_named(log: Place, leaf: int) -> None:
    with log.tampering() as connection:
        record = record_at(connection, leaf)
        connection.execute(f"DELETE FROM record WHERE {BY_PLACE}", where(record))
    assert f"{name_of(record)} was removed" in said(log.verify())


@requirement("AUD-1")
@pytest.mark.parametrize("leaf", [0, 499, 999])
def test_a_record_removed_with_its_leaf_is_named(log: Place, leaf: int) -> None:
    with log.tampering() as connection:
        record = record_at(connection, leaf)
        connection.execute(f"DELETE FROM record WHERE {BY_PLACE}", where(record))
        connection.execute("DELETE FROM tree_leaf WHERE leaf = ?", (leaf,))
    told = said(log.verify())
    assert f"leaf {leaf} of the tree is missing" in told or "over 1000 records, and only 999 are left" in told


@requirement("AUD-1")
def test_two_records_that_changed_places_are_named(log: Place) -> None:
    with log.tampering() as connection:
        one, two = record_at(connection, 500), record_at(connection, 501)
        for record, seq in ((one, 10**6), (two, one.seq)):
            connection.execute(f"UPDATE record SET seq = {seq} WHERE {BY_PLACE}", where(record))
        connection.execute(f"UPDATE record SET seq = {two.seq} WHERE seq = {10**6}")
    told = said(log.verify())
    for record in (one, two):
        assert f"record {record.seq} of writer '{record.writer}'" in told


@requirement("AUD-1")
def test_an_inserted_record_is_named(log: Place) -> None:
    with log.tampering() as connection:
        record = record_at(connection, 500)
        forged = record._replace(tenant="mallory", call_id="call_forged")
        forged = forged._replace(hash=record_hash(*forged[:-1]))
        connection.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", forged)
    assert f"{name_of(forged)} is not in the tree, although later ones are" in said(log.verify())


@requirement("AUD-1")
def test_records_of_a_writer_nobody_knows_are_told_as_a_tail_at_least(log: Place) -> None:
    forged = Chain("w_forged").append(
        "default", "call_forged", "outcome", 1.0, '{"nonce":"x","state":"committed"}'
    )
    with log.tampering() as connection:
        connection.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", forged)
    report = log.verify()
    assert report.waiting == 1
    assert "call 'call_forged' has an outcome and no intent" in said(report)


@requirement("AUD-1")
def test_a_log_that_lost_its_end_is_found_out(log: Place) -> None:
    with log.tampering() as connection:
        connection.execute("DELETE FROM record WHERE (tenant, writer, seq) IN"
                           " (SELECT tenant, writer, seq FROM tree_leaf WHERE leaf >= 950)")  # fmt: skip
        connection.execute("DELETE FROM tree_leaf WHERE leaf >= 950")
    told = said(log.verify())
    assert "checkpoint 10 is over 1000 records, and only 950 are left: the end was cut off" in told
    assert "has no intent" in told  # the ledger still knows what was done


@requirement("AUD-1")
@pytest.mark.parametrize(("level", "place"), [(1, 0), (3, 60), (9, 0)])
def test_a_changed_subtree_is_named(log: Place, level: int, place: int) -> None:
    with log.tampering() as connection:
        connection.execute(
            "UPDATE tree_node SET hash = zeroblob(32) WHERE level = ? AND place = ?", (level, place)
        )
    assert f"node {level}/{place} of the tree does not fit leaves" in said(log.verify())


@requirement("AUD-1")
@pytest.mark.parametrize("column", ["call_id = 'call_other'", "at = 0.0", "hash = zeroblob(32)"])
def test_a_changed_leaf_is_named(log: Place, column: str) -> None:
    with log.tampering() as connection:
        record = record_at(connection, 321)
        connection.execute(f"UPDATE tree_leaf SET {column} WHERE leaf = 321")
    assert name_of(record) in said(log.verify())


def rewrite(connection: sqlite3.Connection, leaf: int) -> None:
    """Somebody who knows how all of it is made, and has no key."""
    changed = record_at(connection, leaf)
    heads: dict[str, tuple[int, bytes]] = {}
    frontier = Frontier()
    connection.execute("DELETE FROM tree_node")
    for place, *row in connection.execute(
        "SELECT l.leaf, r.* FROM tree_leaf l JOIN record r USING (tenant, writer, seq) ORDER BY l.leaf"
    ).fetchall():
        old = Record(*row)
        chain = Chain(old.writer)
        chain.reset(heads.get(old.writer, (0, bytes(32))))
        body = old.body.replace('"caller":"', '"caller":"not-') if old == changed else old.body
        new = chain.append(old.tenant, old.call_id, old.kind, old.at, body)
        heads[old.writer] = chain.mark()
        connection.execute(
            f"UPDATE record SET body = ?, prev = ?, hash = ? WHERE {BY_PLACE}",
            (body, new.prev, new.hash, *where(old)),
        )
        connection.execute("UPDATE tree_leaf SET hash = ? WHERE leaf = ?", (new.hash, place))
        for node in frontier.append(leaf_hash(new.hash))[1:]:
            connection.execute("INSERT INTO tree_node VALUES ('*', ?, ?, ?)", node)
    for writer, (_, head) in heads.items():
        connection.execute("UPDATE chain_head SET hash = ? WHERE writer = ?", (head, writer))


@requirement("AUD-1")
@pytest.mark.parametrize("leaf", [0, 555, 999])
def test_all_later_hashes_and_checkpoints_rewritten_without_the_key_are_found_by_those_outside(
    log: Place, leaf: int
) -> None:
    with log.tampering() as connection:
        connection.execute("BEGIN")
        rewrite(connection, leaf)
        connection.execute("DELETE FROM tree_checkpoint WHERE size > ?", (leaf,))
        connection.execute("COMMIT")
    report = log.verify()
    first = leaf // 100 * 100
    assert [fault.kind for fault in report.faults] == ["changed"]
    assert f"leaves {first} to {first + 99} were rewritten after it was signed" in said(report)
    assert report.anchored == first


@requirement("AUD-1")
def test_checkpoints_inside_the_database_tell_too_and_cannot_be_forged(log: Place) -> None:
    with log.tampering() as connection:
        connection.execute("BEGIN")
        rewrite(connection, 555)
        connection.execute("COMMIT")
    log.checkpoints.unlink()
    report = log.verify()
    assert "checkpoint 6 inside the log of" in said(report)
    with log.tampering() as connection:
        connection.execute("UPDATE tree_checkpoint SET note = replace(note, 'time 20', 'time 19')")
    assert "checkpoint 1 inside the log cannot be trusted: its signature does not fit its text" in said(
        log.verify()
    )


@requirement("AUD-1")
def test_without_checkpoints_from_outside_the_tail_is_not_anchored(log: Place) -> None:
    log.checkpoints.unlink()
    report = log.verify()
    assert (report.ok, report.tail) == (True, 1000)
    assert "tail not anchored: no checkpoint from outside vouches for the last 1000 records" in report.lines()


@requirement("AUD-1")
@pytest.mark.parametrize("at", [5, 40, 120, 250])
def test_a_checkpoint_file_that_was_touched_is_named(log: Place, at: int) -> None:
    raw = bytearray(log.checkpoints.read_bytes())
    raw[at] ^= 1
    log.checkpoints.write_bytes(raw)
    assert "checkpoint 1" in said(log.verify()) or "checkpoint 2" in said(log.verify())


@requirement("AUD-1")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "UPDATE operation SET state = 'no_effect' WHERE call_id = ?",
            "is no_effect in the ledger, its records say committed",
        ),
        ("DELETE FROM operation WHERE call_id = ?", "has an outcome and no operation in the ledger"),
        (
            "UPDATE operation SET nonce = 'other' WHERE call_id = ?",
            "is committed in the ledger and has no intent",
        ),
    ],
)
def test_a_ledger_changed_behind_the_logs_back_is_found_out(log: Place, change: str, told: str) -> None:
    with log.tampering() as connection:
        (call_id,) = connection.execute("SELECT call_id FROM operation WHERE key = 'k-5-4'").fetchone()
        connection.execute(change, (call_id,))
    assert f"call '{call_id}' {told}" in said(log.verify())


@requirement("AUD-1", "AUD-5")
def test_an_effect_that_was_never_recorded_is_missing(log: Place) -> None:
    with log.tampering() as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(operation)").fetchall()]
        copied = ", ".join(
            {"key": "'unseen'", "call_id": "'call_unseen'", "nonce": "'n'"}.get(c, c) for c in columns
        )
        connection.execute(f"INSERT INTO operation SELECT {copied} FROM operation WHERE key = 'k-5-4'")
    assert "call 'call_unseen' is committed in the ledger and has no intent" in said(log.verify())


@requirement("AUD-1")
def test_a_database_that_cannot_be_read_is_no_log(tmp_path: Path, thousand: Place) -> None:
    from holdfast.gateway import logfile
    from holdfast.model.errors import StoreError

    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(5000))
    for path in (broken, tmp_path / "none.db"):
        with pytest.raises(StoreError, match=r"cannot be|there is no database"):
            logfile.verify(path, thousand.checkpoints, thousand.key)
