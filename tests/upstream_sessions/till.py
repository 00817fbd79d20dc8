"""A till whose entries count once they are committed: sessions by handle, kept in this process.

Everything that reaches it is counted, so that a test can say what was never sent.
"""

import itertools
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import holdfast
from holdfast import Effect, tool
from holdfast.model.errors import NoEffect
from holdfast.model.function import FunctionTool


class Till:
    """The server behind the tools. `says` changes what a tool answers, `breaks` makes it fail."""

    def __init__(self) -> None:
        self.entries: dict[str, int] = {}
        """What is committed."""
        self.open: dict[str, list[tuple[str, int]]] = {}
        self.heard: list[tuple[str, str]] = []
        """Which tool was asked, with which handle."""
        self.says: dict[str, Any] = {}
        self.breaks: dict[str, Exception] = {}
        self.slowly: Callable[[], Awaitable[object]] | None = None
        """What `add` waits for before it does anything."""
        self.gate: threading.Event | None = None
        """What `commit` waits for after it has done all, in a thread that nobody can stop."""
        self._count = itertools.count(1)

    def begin(self) -> dict[str, Any]:
        handle = f"transaction-{next(self._count)}"
        self.open[handle] = []
        return self._answer("begin", handle, {"tx": handle, "note": f"opened {handle}"})

    def add(self, tx: str, name: str, amount: int) -> dict[str, Any]:
        self._known("add", tx)
        self.open[tx].append((name, amount))
        return self._answer("add", tx, {"tx": tx, "entry": name, "amount": amount})

    def total(self, tx: str) -> dict[str, Any]:
        self._known("total", tx)
        return self._answer("total", tx, {"total": sum(amount for _, amount in self.open[tx])})

    def commit(self, tx: str) -> dict[str, Any]:
        self._known("commit", tx)
        for name, amount in self.open.pop(tx):
            self.entries[name] = amount
        return self._answer("commit", tx, {"committed": True})

    def rollback(self, tx: str) -> dict[str, Any]:
        self._heard("rollback", tx)
        self.open.pop(tx, None)
        return self._answer("rollback", tx, {"rolled_back": True})

    def remove(self, name: str) -> dict[str, Any]:
        self._heard("remove", name)
        return self._answer("remove", name, {"removed": self.entries.pop(name, 0)})

    def _known(self, tool: str, tx: str) -> None:
        self._heard(tool, tx)
        if tx not in self.open:
            raise NoEffect(f"there is no transaction {tx!r}")

    def _heard(self, tool: str, handle: str) -> None:
        self.heard.append((tool, handle))
        if f"before {tool}" in self.breaks:
            raise self.breaks[f"before {tool}"]

    def _answer(self, tool: str, handle: str, answer: dict[str, Any]) -> dict[str, Any]:
        if tool in self.breaks:
            raise self.breaks[tool]
        said = self.says.get(tool, answer)
        return said(handle) if callable(said) else dict(said)


ENTRY = [("till/entry", "CREATE", "one")]
TAKEN_OUT = {"tool": "till.remove", "arguments": {"name": "=result.entry"}}
SAME_AMOUNT = {"holds": "result.amount == args.amount", "message": "another amount", "severity": "critical"}


def tools(
    till: Till, *, idle_s: float = 300.0, without: Sequence[str] = (), lasting: bool = False
) -> list[FunctionTool[..., Any]]:
    def part(role: str, handle: str = "tx") -> dict[str, Any]:
        said: dict[str, Any] = {"name": "till", "role": role, "handle": handle}
        return said | ({"idle_s": idle_s} if role == "begin" else {})

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        session=part("begin", "result.tx"),
    )
    async def begin() -> dict[str, Any]:
        """Begin to enter something."""
        return till.begin()

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        compensation=TAKEN_OUT,
        sanity=[SAME_AMOUNT],
        session=part("step"),
    )
    async def add(tx: str, name: str, amount: int) -> dict[str, Any]:
        """Enter an amount under a name."""
        if till.slowly is not None:
            await till.slowly()
        return till.add(tx, name, amount)

    @tool(effect=Effect.READ_ONLY, session=part("step"))
    async def total(tx: str) -> dict[str, Any]:
        """What was entered so far."""
        return till.total(tx)

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        session=part("commit"),
    )
    def commit(tx: str) -> dict[str, Any]:
        """Keep what was entered."""
        said = till.commit(tx)
        if till.gate is not None:
            till.gate.wait()
        return said

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        session=part("rollback"),
    )
    async def rollback(tx: str) -> dict[str, Any]:
        """Drop what was entered."""
        return till.rollback(tx)

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=[("till/entry", "DELETE", "one")],
        idempotency="none",
    )
    async def remove(name: str) -> dict[str, Any]:
        """Take an entry out again."""
        return till.remove(name)

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        session=part("step"),
    )
    async def mark(tx: str, name: str) -> dict[str, Any]:
        """Leave a mark that nothing takes back."""
        return till.add(tx, name, 0)

    every: list[FunctionTool[..., Any]] = [begin, add, total, commit, rollback, remove]
    every += [mark] if lasting else []
    return [one for one in every if one.name not in without]
