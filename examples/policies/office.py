"""A small office: orders, customers, money, mail and deployments. What is done here is only remembered."""

from typing import Any

from holdfast import Effect, Undo, tool
from holdfast.model.vocabulary import DataClass

UNDOABLE: dict[str, Any] = {"effect": Effect.LOW_RISK_INTERNAL, "undo": Undo.EXACT, "idempotency": {}}
DONE: list[dict[str, Any]] = []


@tool(effect=Effect.READ_ONLY)
async def find_order(order: str) -> dict[str, str]:
    """Look at an order."""
    return {"order": order, "state": "sent"}


@tool(effect=Effect.READ_ONLY, data_class=DataClass.CONFIDENTIAL)
async def customer(order: str) -> dict[str, str]:
    """Who ordered it, with their address."""
    return {"name": "Ada", "email": "ada@example.org"}


@tool(**UNDOABLE, manifest=[("refunds", "CREATE", "one")])
async def refund(order: str, amount: float) -> dict[str, Any]:
    """Give money back; it can be charged again."""
    DONE.append({"refund": order, "amount": amount})
    return DONE[-1]


@tool(**UNDOABLE, manifest=[("mails", "CREATE", "one")])
async def draft_mail(to: str, text: str) -> dict[str, Any]:
    """Put a mail into the outbox, which sends it in an hour."""
    DONE.append({"mail": to})
    return DONE[-1]


@tool(**UNDOABLE, manifest=[("services", "UPDATE", "one")])
async def deploy(service: str, version: str) -> dict[str, Any]:
    """Put a version of a service in place; the one before can be put back."""
    DONE.append({"deploy": service, "version": version})
    return DONE[-1]


TOOLS = [find_order, customer, refund, draft_mail, deploy]
