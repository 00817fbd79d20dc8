"""A support desk as an MCP server, of the kind many people have already: it knows nothing of Holdfast.

It speaks MCP over stdin and stdout, keeps its tickets in `desk.db` beside this file (or wherever `DESK_DB`
says), and does what it is told, as often as it is told. What its tools really do to the world is written in
`desk.yaml`, for the gateway.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

SCHEMA = """
CREATE TABLE IF NOT EXISTS tickets (ticket_id TEXT PRIMARY KEY, customer TEXT, subject TEXT, state TEXT);
CREATE TABLE IF NOT EXISTS replies (reply_id INTEGER PRIMARY KEY, ticket_id TEXT, text TEXT);
"""
TICKETS = [
    ("t-17", "Mira Sand", "The kettle arrived with a dent", "open"),
    ("t-18", "Jon Berg", "Where is my invoice?", "open"),
    ("t-19", "Lea Fox", "Thank you, the chair is lovely", "closed"),
]

TicketId = Annotated[str, Field(description="Which ticket, such as t-17", pattern=r"^t-[0-9]+$")]

server = MCPServer("desk", version="1.4.0", instructions="A small support desk: tickets and replies.")


class Ticket(BaseModel):
    ticket_id: str
    customer: str
    subject: str
    state: str
    replies: list[str]


class Tickets(BaseModel):
    tickets: list[str]


class Sent(BaseModel):
    reply_id: int
    ticket_id: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_tickets() -> Tickets:
    """List every ticket with its subject and state."""
    with desk() as db:
        rows = db.execute("SELECT ticket_id, subject, state FROM tickets ORDER BY ticket_id").fetchall()
    return Tickets(tickets=[f"{number}: {subject} ({state})" for number, subject, state in rows])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def get_ticket(ticket_id: TicketId) -> Ticket:
    """Read one ticket and the replies it got."""
    with desk() as db:
        return _ticket(db, ticket_id)


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def send_reply(
    ticket_id: TicketId, text: Annotated[str, Field(description="What the customer reads", min_length=1)]
) -> Sent:
    """Send the customer of a ticket a reply by mail."""
    with desk() as db:
        _ticket(db, ticket_id)
        cursor = db.execute("INSERT INTO replies (ticket_id, text) VALUES (?, ?)", (ticket_id, text))
        return Sent(reply_id=cursor.lastrowid or 0, ticket_id=ticket_id)


@server.tool()
def close_ticket(ticket_id: TicketId) -> Ticket:
    """Close a ticket."""
    return _set_state(ticket_id, "closed")


@server.tool()
def reopen_ticket(ticket_id: TicketId) -> Ticket:
    """Open a closed ticket again."""
    return _set_state(ticket_id, "open")


@server.resource("ticket://{ticket_id}", mime_type="text/plain")
def ticket_text(ticket_id: str) -> str:
    """A ticket as plain text."""
    with desk() as db:
        ticket = _ticket(db, ticket_id)
    return "\n".join([f"{ticket.ticket_id} from {ticket.customer}: {ticket.subject}", *ticket.replies])


@server.prompt()
def answer_ticket(ticket_id: str) -> str:
    """How to answer a ticket in the desk's own voice."""
    return f"Read ticket {ticket_id}, then write a short, friendly reply that says what happens next."


def _ticket(db: sqlite3.Connection, ticket_id: str) -> Ticket:
    row = db.execute("SELECT * FROM tickets WHERE ticket_id = ?", (ticket_id,)).fetchone()
    if row is None:
        raise ToolError(f"there is no ticket {ticket_id!r}")
    replies = db.execute("SELECT text FROM replies WHERE ticket_id = ? ORDER BY reply_id", (ticket_id,))
    number, customer, subject, state = row
    said = [text for (text,) in replies]
    return Ticket(ticket_id=number, customer=customer, subject=subject, state=state, replies=said)


def _set_state(ticket_id: str, state: str) -> Ticket:
    with desk() as db:
        _ticket(db, ticket_id)
        db.execute("UPDATE tickets SET state = ? WHERE ticket_id = ?", (state, ticket_id))
        return _ticket(db, ticket_id)


@contextmanager
def desk() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(os.environ.get("DESK_DB") or Path(__file__).with_name("desk.db"), timeout=5)
    try:
        with db:
            db.executescript(SCHEMA)
            db.executemany("INSERT OR IGNORE INTO tickets VALUES (?, ?, ?, ?)", TICKETS)
            yield db
    finally:
        db.close()


if __name__ == "__main__":
    server.run("stdio")
