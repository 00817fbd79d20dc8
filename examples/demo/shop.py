"""A shop's tools: what a support agent may read, and what it may do.

Written to be copied. Each tool says what it does to the world (`effect`), how that can be taken back
(`undo`), who must agree (`floor`), and how to find out afterwards whether it happened (`probe`,
`postconditions`). The functions themselves are plain Python: they know nothing of gates or approvals.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field
from shop_db import shop

from holdfast import Effect, Floor, Invocation, NoEffect, Reach, Undo, tool

OrderId = Annotated[str, Field(pattern=r"^o-[0-9]{4}$")]
# marked: calls that change the same order, or the same note, are run one after the other
ChangedOrder = Annotated[str, Field(pattern=r"^o-[0-9]{4}$", json_schema_extra={"x-resource": "orders"})]
ChangedNote = Annotated[int, Field(ge=1, json_schema_extra={"x-resource": "order-notes"})]
Cents = Annotated[int, Field(ge=1, le=1_000_000)]
Status = Literal["new", "shipped", "delivered", "cancelled"]
Reason = Literal["damaged", "late", "wrong_item", "goodwill"]


class Order(BaseModel):
    order_id: str
    customer: str
    email: Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]
    item: str
    status: Status
    paid_cents: int
    refunded_cents: int
    version: int
    """Grows with every change; give it as `if_match` to act only on the order you saw."""


class OrderLine(BaseModel):
    order_id: str
    item: str
    status: Status


class Refund(BaseModel):
    refund_id: int
    amount_cents: int
    reason: Reason
    reference: str


class Refunds(BaseModel):
    order_id: str
    refunds: list[Refund]
    total_cents: int


class RefundPlan(BaseModel):
    order_id: str
    customer: str
    amount_cents: int
    left_before_cents: int
    left_after_cents: int


class Note(BaseModel):
    note_id: int
    order_id: str
    text: str


class Removed(BaseModel):
    note_id: int
    removed: bool


class Mail(BaseModel):
    mail_id: int
    recipient: Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]
    subject: str


# --- reads: nothing changes, so nothing is claimed and nobody is asked ------------------------------------


@tool(
    effect=Effect.READ_ONLY,
    scopes=["orders:read"],
    examples=[{"description": "one order", "arguments": {"order_id": "o-1001"}}],
)
def get_order(order_id: OrderId) -> Order:
    """Look up one order by its number: customer, item, what was paid and what was given back.

    Args:
        order_id: the number on the invoice, such as o-1001
    """
    with shop() as db:
        row = db.execute("SELECT * FROM orders WHERE order_id = ?", (order_id,)).fetchone()
    if row is None:
        raise NoEffect(f"there is no order {order_id!r}; list_orders shows the open ones")
    return Order.model_validate(dict(row))


@tool(
    effect=Effect.READ_ONLY,
    scopes=["orders:read"],
    cache_ttl_s=5.0,  # a list may be a little old; what is acted upon is read by `get_order`, which is not
    examples=[{"description": "everything on its way", "arguments": {"status": "shipped"}}],
)
def list_orders(status: Status | None = None) -> list[OrderLine]:
    """List orders by number, item and status, without anything about the customer.

    Args:
        status: only orders in this state; all of them when left out
    """
    with shop() as db:
        rows = db.execute(
            "SELECT order_id, item, status FROM orders WHERE ?1 IS NULL OR status = ?1 ORDER BY order_id",
            (status,),
        ).fetchall()
    return [OrderLine.model_validate(dict(row)) for row in rows]


@tool(
    effect=Effect.READ_ONLY,
    scopes=["orders:read"],
    examples=[{"description": "what o-1001 got back", "arguments": {"order_id": "o-1001"}}],
)
def order_refunds(order_id: OrderId) -> Refunds:
    """List every refund of one order, with the reference each was made under.

    Args:
        order_id: the number on the invoice, such as o-1001
    """
    with shop() as db:
        rows = db.execute(
            "SELECT refund_id, amount_cents, reason, reference FROM refunds WHERE order_id = ?", (order_id,)
        ).fetchall()
    refunds = [Refund.model_validate(dict(row)) for row in rows]
    return Refunds(order_id=order_id, refunds=refunds, total_cents=sum(r.amount_cents for r in refunds))


@tool(
    effect=Effect.READ_ONLY,
    scopes=["orders:read"],
    examples=[{"description": "before a refund", "arguments": {"order_id": "o-1001", "amount_cents": 1500}}],
)
def preview_refund(order_id: OrderId, amount_cents: Cents) -> RefundPlan:
    """Say what a refund would leave of a payment, without making it.

    Args:
        order_id: the number on the invoice, such as o-1001
        amount_cents: how much would be given back, in cents
    """
    order = get_order(order_id)
    left = order.paid_cents - order.refunded_cents
    return RefundPlan(
        order_id=order_id,
        customer=order.customer,
        amount_cents=amount_cents,
        left_before_cents=left,
        left_after_cents=left - amount_cents,
    )


# --- an undoable write: the key goes into the same transaction, so the effect happens exactly once --------


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["orders:write"],
    manifest=[("order notes", "UPDATE", "one note")],
    idempotency="none",  # removing it twice is the same as once, but the shop keeps no key for it
    side_effects="colleagues no longer see the note",
    do_not_use_when=["the note is merely old"],
    examples=[{"description": "take note 1 away", "arguments": {"note_id": 1}}],
)
def remove_note(note_id: ChangedNote) -> Removed:
    """Hide a note from an order. Removing one that is already hidden changes nothing.

    Args:
        note_id: the number that add_note gave
    """
    with shop() as db:
        changed = db.execute("UPDATE notes SET removed = 1 WHERE note_id = ?", (note_id,)).rowcount
    if not changed:
        raise NoEffect(f"there is no note {note_id}; use the number that add_note gave")
    return Removed(note_id=note_id, removed=True)


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    compensation={"tool": remove_note, "arguments": {"note_id": "=result.note_id"}},
    scopes=["orders:write"],
    manifest=[("order notes", "CREATE", "one order")],
    idempotency="transaction",
    side_effects="colleagues see the note on the order; the customer does not",
    do_not_use_when=["the customer should read it: send a mail"],
    examples=[
        {"description": "a note on o-1001", "arguments": {"order_id": "o-1001", "text": "asked for a call"}}
    ],
)
def add_note(
    order_id: OrderId, text: Annotated[str, Field(min_length=1, max_length=500)], invocation: Invocation
) -> Note:
    """Put an internal note on an order, for colleagues to see.

    Args:
        order_id: the number on the invoice, such as o-1001
        text: what colleagues should know
    """
    with shop() as db:
        if not db.execute("SELECT 1 FROM orders WHERE order_id = ?", (order_id,)).fetchone():
            raise NoEffect(f"there is no order {order_id!r}; list_orders shows the open ones")
        db.execute(
            "INSERT INTO notes (order_id, text, reference) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (order_id, text, invocation.call_id),
        )
        row = db.execute("SELECT * FROM notes WHERE reference = ?", (invocation.call_id,)).fetchone()
    return Note(note_id=row["note_id"], order_id=row["order_id"], text=row["text"])


# --- an external send: no way back, so a person says yes first --------------------------------------------


@tool(
    effect=Effect.HIGH_RISK_EXTERNAL,
    undo=Undo.NONE,
    floor=Floor.USER,
    reach=Reach.NETWORK,
    scopes=["mail:send"],
    manifest=[("outbox", "CREATE", "one customer")],
    idempotency="none",
    preview={"read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}}},
    verification={"target": "the shop's inbox: a bounce means it did not arrive", "delay_s": 3600},
    rollback_plan="send a correction; a mail that left cannot be called back",
    rate_limit={"calls": 30, "per_s": 3600},
    side_effects="the customer gets a mail from the shop",
    do_not_use_when=["only colleagues should read it: add a note"],
    examples=[
        {
            "description": "tell Mira",
            "arguments": {"order_id": "o-1001", "subject": "Your kettle", "body": "It is on its way."},
        }
    ],
)
def send_mail(
    order_id: OrderId,
    subject: Annotated[str, Field(min_length=1, max_length=200)],
    body: Annotated[str, Field(min_length=1, max_length=5000)],
) -> Mail:
    """Write a mail to the customer of an order. The address is the order's: nobody else can be written to.

    Args:
        order_id: the number on the invoice, such as o-1001
        subject: the subject line
        body: plain text
    """
    order = get_order(order_id)
    with shop() as db:
        mail = db.execute(
            "INSERT INTO outbox (recipient, subject, body) VALUES (?, ?, ?)", (order.email, subject, body)
        )
    return Mail(mail_id=mail.lastrowid or 0, recipient=order.email, subject=subject)


# --- a critical write: two people, a look before, a look after, and a way to find a lost outcome ----------


@tool(
    effect=Effect.CRITICAL_MUTATION,
    undo=Undo.NONE,
    floor=Floor.TWO_PERSON,
    reach=Reach.NETWORK,
    scopes=["refunds:write"],
    manifest=[("payments", "CREATE", "one order"), ("orders", "UPDATE", "one order")],
    idempotency="none",  # the payment system keeps a reference but does not refuse a second one
    # before: does it make sense, is the order still what the caller saw, what would happen
    lookups={"order": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}}},
    semantics=[
        {
            "holds": "args.amount_cents <= order.paid_cents - order.refunded_cents",
            "message": "more than what is left of the payment; read the order and give back less",
            "path": "/amount_cents",
        }
    ],
    state={
        "read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}},
        "version": "string(state.version)",
        "rules": [
            {"holds": "state.status != 'cancelled'", "message": "a cancelled order has nothing to refund"}
        ],
    },
    preview={
        "read": {
            "tool": preview_refund,
            "arguments": {"order_id": "=args.order_id", "amount_cents": "=args.amount_cents"},
        }
    },
    # after: read it back; and when the answer is lost, ask whether a refund with our reference is there
    postconditions=[
        {
            "read": {"tool": order_refunds, "arguments": {"order_id": "=args.order_id"}},
            "holds": "state.refunds.exists(r, r.refund_id == result.refund_id"
            " && r.amount_cents == args.amount_cents)",
            "message": "the order does not show this refund",
        }
    ],
    probe={
        "read": {"tool": order_refunds, "arguments": {"order_id": "=args.order_id"}},
        "committed": "state.refunds.exists(r, r.reference == key)",
        "result": "state.refunds.filter(r, r.reference == key)[0]",
        "settle_after_s": 1.0,
    },
    rollback_plan="charge the customer again, with their consent",
    side_effects="money leaves the shop's account and reaches the customer within days",
    preconditions=["the order is paid and not cancelled"],
    do_not_use_when=["the customer wants an exchange"],
    examples=[
        {
            "description": "part of the kettle's price",
            "arguments": {"order_id": "o-1001", "amount_cents": 1500, "reason": "damaged"},
        }
    ],
)
def refund(order_id: ChangedOrder, amount_cents: Cents, reason: Reason, invocation: Invocation) -> Refund:
    """Give a customer money back for one order, in part or in full.

    Args:
        order_id: the number on the invoice, such as o-1001
        amount_cents: how much, in cents; at most what is left of the payment
        reason: why the customer gets it
    """
    reference = invocation.key or invocation.call_id
    with shop() as db:
        made = db.execute(
            "INSERT INTO refunds (order_id, amount_cents, reason, reference) VALUES (?, ?, ?, ?)",
            (order_id, amount_cents, reason, reference),
        )
        db.execute(
            "UPDATE orders SET refunded_cents = refunded_cents + ?, version = version + 1 WHERE order_id = ?",
            (amount_cents, order_id),
        )
    return Refund(
        refund_id=made.lastrowid or 0, amount_cents=amount_cents, reason=reason, reference=reference
    )


TOOLS = [
    get_order,
    list_orders,
    order_refunds,
    preview_refund,
    add_note,
    remove_note,
    refund,
    send_mail,
]
