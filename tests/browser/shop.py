"""The tools behind the console in a browser: a shop, with one tool of each kind that looks otherwise."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from holdfast import Effect, Floor, NoEffect, Reach, Undo, tool

OrderId = Annotated[str, Field(pattern=r"^o-[0-9]{4,8}$")]
Cents = Annotated[int, Field(ge=1, le=1_000_000)]
PAID = 49_000


class Order(BaseModel):
    order_id: str
    customer: str
    paid_cents: int


class Plan(BaseModel):
    order_id: str
    left_before_cents: int
    left_after_cents: int


@tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
def get_order(order_id: OrderId) -> Order:
    """Look up one order by its number.

    Args:
        order_id: the number on the invoice
    """
    if order_id == "o-0404":
        raise NoEffect(f"there is no order {order_id!r}")
    return Order(order_id=order_id, customer="Mira Sand", paid_cents=PAID)


@tool(effect=Effect.READ_ONLY, scopes=["orders:read"])
def preview_refund(order_id: OrderId, amount_cents: Cents) -> Plan:
    """Say what a refund would leave of a payment.

    Args:
        order_id: the number on the invoice
        amount_cents: how much would be given back
    """
    return Plan(order_id=order_id, left_before_cents=PAID, left_after_cents=PAID - amount_cents)


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["orders:write"],
    manifest=[("order notes", "CREATE", "one order")],
    idempotency="none",
    side_effects="colleagues see the note",
)
def add_note(order_id: OrderId, text: str) -> dict[str, str]:
    """Put an internal note on an order.

    Args:
        order_id: the number on the invoice
        text: what colleagues should know
    """
    return {"order_id": order_id}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.SEMANTIC,
    scopes=["orders:write"],
    manifest=[("parcels", "UPDATE", "one order")],
    idempotency="none",
)
def move_parcel(order_id: OrderId) -> dict[str, str]:
    """Send a parcel elsewhere, and lose the answer: nobody knows whether it went.

    Args:
        order_id: the number on the invoice
    """
    raise ConnectionError("the carrier hung up")


@tool(
    effect=Effect.CRITICAL_MUTATION,
    undo=Undo.NONE,
    floor=Floor.TWO_PERSON,
    reach=Reach.NETWORK,
    scopes=["refunds:write"],
    manifest=[("payments", "CREATE", "one order")],
    idempotency="none",
    state={
        "read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}},
        "version": "string(state.paid_cents)",
    },
    preview={
        "read": {
            "tool": preview_refund,
            "arguments": {"order_id": "=args.order_id", "amount_cents": "=args.amount_cents"},
        }
    },
    postconditions=[
        {
            "read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}},
            "holds": "state.paid_cents > 0",
            "message": "the order is gone",
        }
    ],
    rollback_plan="charge the customer again, with their consent",
    side_effects="money leaves the shop's account and reaches the customer within days",
)
def refund(order_id: OrderId, amount_cents: Cents, reason: Literal["damaged", "late"]) -> dict[str, int]:
    """Give a customer money back for one order.

    Args:
        order_id: the number on the invoice
        amount_cents: how much, in cents
        reason: why the customer gets it
    """
    return {"refund_id": 1}


@tool(
    effect=Effect.HIGH_RISK_EXTERNAL,
    undo=Undo.NONE,
    floor=Floor.OPERATOR,
    reach=Reach.NETWORK,
    scopes=["mail:send"],
    manifest=[("outbox", "CREATE", "one customer")],
    idempotency="none",
    preview={"read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}}},
    verification={"target": "the shop's inbox", "delay_s": 3600},
    rollback_plan="send a correction",
    side_effects="the customer gets a mail from the shop",
)
def send_mail(order_id: OrderId, subject: str, body: str) -> dict[str, int]:
    """Write a mail to the customer of an order.

    Args:
        order_id: the number on the invoice
        subject: the subject line
        body: plain text
    """
    return {"mail_id": 1}


TOOLS = [get_order, preview_refund, add_note, move_parcel, refund, send_mail]
