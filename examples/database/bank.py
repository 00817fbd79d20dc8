"""A bank's book as an MCP server whose changes count once they are committed; it knows nothing of Holdfast.

Each transaction is a connection of its own to one SQLite file (`bank.db` beside this, or wherever `BANK_DB`
says), known by a handle. `python bank.py` speaks over stdin and stdout; `python bank.py --port 9000` serves
MCP over HTTP, where several processes of a gateway share it. What the tools really do is in `bank.yaml`.
"""

import os
import secrets
import sqlite3
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents >= 0))"
)
WAIT_S = 5.0
"""How long a transaction waits for one that has the book."""

Handle = Annotated[str, Field(description="The transaction, as 'begin' names it", min_length=1)]
Account = Annotated[str, Field(description="Whose account", min_length=1)]
Cents = Annotated[int, Field(description="What is put in; below zero, what is taken out")]

server = MCPServer("bank", version="1.0.0", instructions="Accounts, changed in transactions.")
open_now: dict[str, sqlite3.Connection] = {}


class Begun(BaseModel):
    transaction: str


class Entered(BaseModel):
    account: str
    cents: int
    balance: int


class Balance(BaseModel):
    account: str
    balance: int


class Ended(BaseModel):
    ended: str


@server.tool()
def begin() -> Begun:
    """Begin a transaction; nobody else changes the book until it ends."""
    db = book()
    db.execute("BEGIN IMMEDIATE")
    handle = f"tx-{secrets.token_hex(12)}"
    open_now[handle] = db
    return Begun(transaction=handle)


@server.tool()
def enter(transaction: Handle, account: Account, cents: Cents) -> Entered:
    """Put money into an account, or take it out."""
    return changed(found(transaction), account, cents)


@server.tool()
def balance(transaction: Handle, account: Account) -> Balance:
    """What an account holds, with what was entered in this transaction."""
    return Balance(account=account, balance=held(found(transaction), account))


@server.tool()
def commit(transaction: Handle) -> Ended:
    """Keep what was entered in a transaction."""
    db = found(transaction)
    db.execute("COMMIT")
    del open_now[transaction]
    db.close()
    return Ended(ended="committed")


@server.tool()
def rollback(transaction: Handle) -> Ended:
    """Drop what was entered in a transaction; one that is not there any more was dropped already."""
    db = open_now.pop(transaction, None)
    if db is not None:
        db.execute("ROLLBACK")
        db.close()
    return Ended(ended="rolled back")


@server.tool()
def correct(account: Account, cents: Cents) -> Entered:
    """Enter something by itself, to put right what was committed."""
    db = book()
    try:
        return changed(db, account, cents)
    finally:
        db.close()


def book() -> sqlite3.Connection:
    path = os.environ.get("BANK_DB") or Path(__file__).with_name("bank.db")
    db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    db.execute(SCHEMA)
    return db


def found(transaction: str) -> sqlite3.Connection:
    if transaction not in open_now:
        raise ToolError("there is no such transaction")
    return open_now[transaction]


def held(db: sqlite3.Connection, account: str) -> int:
    row = db.execute("SELECT cents FROM account WHERE name = ?", (account,)).fetchone()
    return 0 if row is None else int(row[0])


def changed(db: sqlite3.Connection, account: str, cents: int) -> Entered:
    now = held(db, account) + cents
    if now < 0:
        raise ToolError(f"{account!r} does not hold that much")
    db.execute(
        "INSERT INTO account VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET cents = ?2", (account, now)
    )
    return Entered(account=account, cents=cents, balance=now)


if __name__ == "__main__":
    if "--port" in sys.argv:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--port") + 1]))
    else:
        server.run("stdio")
