"""The tools that the policies of these tests are about."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from holdfast import Effect, Floor, Undo, tool
from holdfast.model.vocabulary import DataClass

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("accounts", "UPDATE", "account")],
    "idempotency": {},
}
Pii = Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]


class Address(BaseModel):
    country: str
    street: Pii | None = None


@tool(effect=Effect.READ_ONLY)
async def balance(account: str) -> dict[str, int]:
    """Look at one account."""
    return {"cents": 100}


@tool(effect=Effect.READ_ONLY, data_class=DataClass.REGULATED, tags=["export"])
async def export(table: str, region: str | None = None, limit: int = 10) -> dict[str, int]:
    """Export a table."""
    return {"rows": limit}


@tool(**WRITE)
async def note(account: str, text: str, card: Pii | None = None) -> dict[str, int]:
    """Write a note on an account."""
    return {"note": 1}


@tool(**WRITE)
async def transfer(
    amount: float, to: list[str], address: Address | None = None, memo: str | None = None
) -> dict[str, int]:
    """Move money."""
    return {"transfer": 1}


@tool(**{**WRITE, "undo": Undo.NONE}, floor=Floor.OPERATOR, preview={})
async def close(account: str) -> dict[str, int]:
    """Close an account for good."""
    return {"closed": 1}


TOOLS = (balance, export, note, transfer, close)
