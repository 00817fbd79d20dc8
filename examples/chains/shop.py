"""Tools that the chains beside this use: a shop that sells, three places to look things up, and a database.

What they change is kept in one JSON file, so that you can look at it past the gateway. A twin keeps nothing.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from holdfast import Effect, Floor, NoEffect, Undo, tool

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "idempotency": "none",
    "scopes": ["shop:write"],
}
READ: dict[str, Any] = {"effect": Effect.READ_ONLY, "scopes": ["shop:read"]}
PRICES = {"lamp": 4900, "desk": 19900, "anvil": 99900}
EMPTY: dict[str, Any] = {
    "orders": {},
    "charges": {},
    "parcels": {},
    "mails": [],
    "told": [],
    "schema": 1,
    "copies": [],
}


class Placed(BaseModel):
    order: str
    cents: int


class Charged(BaseModel):
    charge: str


class Sent(BaseModel):
    parcel: str


class Found(BaseModel):
    source: str
    title: str


class Schema(BaseModel):
    version: int
    copies: list[int]


class Books(BaseModel):
    orders: dict[str, str]
    charges: dict[str, int]
    parcels: dict[str, str]
    told: list[str]
    """Orders that customers believe are on their way."""
    mails: list[str]


class Shop:
    """All tools of one shop; `path` is where it keeps what it knows."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._data: dict[str, Any] = json.loads(json.dumps(EMPTY))

    def _read(self) -> dict[str, Any]:
        if self._path is not None and self._path.exists():
            self._data = json.loads(self._path.read_text(encoding="utf-8"))
        return self._data

    def _write(self, data: dict[str, Any]) -> None:
        self._data = data
        if self._path is not None:
            self._path.write_text(json.dumps(data, indent=1), encoding="utf-8")

    # --- order, charge, ship, notify --------------------------------------------------------

    @tool(**READ)
    async def books(self) -> Books:
        """Show what was ordered, charged and sent."""
        return Books(**{name: self._read()[name] for name in Books.model_fields})

    @tool(
        **WRITE,
        manifest=[("orders", "CREATE", "one")],
        compensation={"tool": "drop", "arguments": {"order": "=result.order"}},
    )
    async def order(self, item: str) -> Placed:
        """Write an order down.

        Args:
            item: what is wanted
        """
        if item not in PRICES:
            raise NoEffect(f"there is no {item!r} here")
        data = self._read()
        name = f"o-{len(data['orders']) + 1}"
        data["orders"][name] = item
        self._write(data)
        return Placed(order=name, cents=PRICES[item])

    @tool(**WRITE, manifest=[("orders", "DELETE", "one")])
    async def drop(self, order: str) -> str:
        """Strike an order out.

        Args:
            order: which
        """
        data = self._read()
        data["orders"].pop(order, None)
        self._write(data)
        return order

    @tool(
        **WRITE,
        manifest=[("charges", "CREATE", "one")],
        compensation={"tool": "refund", "arguments": {"charge": "=result.charge"}},
    )
    async def charge(self, order: str, cents: int) -> Charged:
        """Take the money for an order.

        Args:
            order: which
            cents: how much
        """
        data = self._read()
        data["charges"][f"c-{order}"] = cents
        self._write(data)
        return Charged(charge=f"c-{order}")

    @tool(**WRITE, manifest=[("charges", "DELETE", "one")])
    async def refund(self, charge: str) -> str:
        """Give the money back.

        Args:
            charge: which
        """
        data = self._read()
        data["charges"].pop(charge, None)
        self._write(data)
        return charge

    @tool(
        **WRITE,
        manifest=[("parcels", "CREATE", "one")],
        compensation={"tool": "recall", "arguments": {"parcel": "=result.parcel"}},
    )
    async def ship(self, order: str, item: str) -> Sent:
        """Hand a parcel over.

        Args:
            order: which
            item: what is in it
        """
        if item == "anvil":
            raise NoEffect("nobody carries an anvil")
        data = self._read()
        data["parcels"][f"p-{order}"] = item
        self._write(data)
        return Sent(parcel=f"p-{order}")

    @tool(**WRITE, manifest=[("parcels", "DELETE", "one")])
    async def recall(self, parcel: str) -> str:
        """Call a parcel back.

        Args:
            parcel: which
        """
        data = self._read()
        data["parcels"].pop(parcel, None)
        self._write(data)
        return parcel

    @tool(
        **{**WRITE, "undo": Undo.SEMANTIC},
        manifest=[("mails", "CREATE", "one")],
        compensation={"tool": "correct", "arguments": {"order": "=args.order"}},
    )
    async def notify(self, order: str) -> str:
        """Tell the customer that a parcel is on its way.

        Args:
            order: which
        """
        data = self._read()
        data["mails"].append(f"{order} is on its way")
        data["told"].append(order)
        self._write(data)
        return order

    @tool(**{**WRITE, "undo": Undo.SEMANTIC}, manifest=[("mails", "CREATE", "one")])
    async def correct(self, order: str) -> str:
        """Tell the customer that it is not; a mail that is read stays read.

        Args:
            order: which
        """
        data = self._read()
        data["mails"].append(f"{order} is not on its way after all")
        data["told"].remove(order)
        self._write(data)
        return order

    # --- three places to look -----------------------------------------------------------------

    @tool(**READ)
    async def web(self, topic: str) -> Found:
        """Look something up on the web.

        Args:
            topic: what
        """
        return Found(source="web", title=f"{topic}, a page")

    @tool(**READ)
    async def papers(self, topic: str) -> Found:
        """Look something up in papers.

        Args:
            topic: what
        """
        if topic == "rumour":
            raise NoEffect("nobody has written about it")
        return Found(source="papers", title=f"On {topic}")

    @tool(**READ)
    async def archive(self, topic: str) -> Found:
        """Look something up in an archive, where somebody has to go down and fetch it.

        Args:
            topic: what
        """
        await asyncio.sleep(float(os.environ.get("ARCHIVE_S", "20")))
        return Found(source="archive", title=f"{topic}, a box of letters")

    # --- a database ---------------------------------------------------------------------------

    @tool(**READ)
    async def schema(self) -> Schema:
        """Say which version the database is in, and of which there are copies."""
        data = self._read()
        return Schema(version=data["schema"], copies=data["copies"])

    @tool(
        **WRITE,
        manifest=[("copies", "CREATE", "one")],
        compensation={"tool": "forget_copy", "arguments": {"version": "=result"}},
    )
    async def copy(self, version: int) -> int:
        """Keep a copy of the database.

        Args:
            version: of which
        """
        data = self._read()
        data["copies"].append(version)
        self._write(data)
        return version

    @tool(**WRITE, manifest=[("copies", "DELETE", "one")])
    async def forget_copy(self, version: int) -> int:
        """Throw a copy away.

        Args:
            version: of which
        """
        data = self._read()
        data["copies"].remove(version)
        self._write(data)
        return version

    @tool(
        **{**WRITE, "floor": Floor.OPERATOR},
        manifest=[("schema", "UPDATE", "one")],
        preview={"read": {"tool": "schema", "arguments": {}}},
        compensation={"tool": "restore", "arguments": {"version": "=args.was"}},
    )
    async def migrate(self, was: int, to: int) -> Schema:
        """Change the database; an operator agrees first.

        Args:
            was: the version it is in
            to: the version it shall be in
        """
        data = self._read()
        if data["schema"] != was:
            raise NoEffect(f"the database is in version {data['schema']}, not {was}")
        data["schema"] = to
        self._write(data)
        return Schema(version=to, copies=data["copies"])

    @tool(**WRITE, manifest=[("schema", "UPDATE", "one")])
    async def restore(self, version: int) -> int:
        """Put a copy back.

        Args:
            version: of which
        """
        data = self._read()
        data["schema"] = version
        self._write(data)
        return version

    @tool(**READ)
    async def smoke(self, to: int) -> Schema:
        """Try the database out.

        Args:
            to: the version it should be in
        """
        data = self._read()
        if data["schema"] != to or to == 13:
            raise NoEffect(f"version {to} does not answer")
        return Schema(version=to, copies=data["copies"])


def tools() -> Shop:
    """Where it counts."""
    return Shop(Path(os.environ.get("SHOP_FILE", str(Path(__file__).with_name("shop.json")))))


def twin() -> Shop:
    """Where nothing counts."""
    return Shop(None)
