"""What does the shop remember?

A real database of its own, apart from the gateway's: `shop.db` beside this file, or wherever `SHOP_DB` says.
It is made and filled on first use. Amounts are whole cents, so that no rounding happens on the way.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
  order_id TEXT PRIMARY KEY, customer TEXT NOT NULL, email TEXT NOT NULL, item TEXT NOT NULL,
  status TEXT NOT NULL, paid_cents INTEGER NOT NULL, refunded_cents INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1, CHECK (refunded_cents BETWEEN 0 AND paid_cents));
CREATE TABLE IF NOT EXISTS refunds (
  refund_id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, amount_cents INTEGER NOT NULL,
  reason TEXT NOT NULL, reference TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS notes (
  note_id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, text TEXT NOT NULL,
  reference TEXT NOT NULL UNIQUE, removed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS outbox (
  mail_id INTEGER PRIMARY KEY, recipient TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL);
"""

ORDERS = [
    ("o-1001", "Mira Sand", "mira@example.com", "kettle, blue", "delivered", 4900),
    ("o-1002", "Jon Berg", "jon@example.com", "lamp, brass", "delivered", 12900),
    ("o-1003", "Lea Fox", "lea@example.com", "chair, oak", "shipped", 24900),
    ("o-1004", "Tom Reed", "tom@example.com", "desk, oak", "cancelled", 0),
]


def path() -> Path:
    return Path(os.environ.get("SHOP_DB") or Path(__file__).with_name("shop.db"))


@contextmanager
def shop() -> Iterator[sqlite3.Connection]:
    """One transaction on the shop's database: all of it happens, or nothing."""
    connection = sqlite3.connect(path(), timeout=5, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("BEGIN IMMEDIATE")
        _fill(connection)
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()  # without a COMMIT this rolls back


def _fill(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.executemany(
        "INSERT INTO orders (order_id, customer, email, item, status, paid_cents) VALUES (?, ?, ?, ?, ?, ?)",
        ORDERS,
    )
    connection.execute("PRAGMA user_version = 1")
