"""Tools whose effects are counted where no store can lose them."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

from holdfast import Effect, Floor, Undo, tool
from holdfast.model.vocabulary import DataClass

WRITE: Final[Any] = {
    "undo": Undo.EXACT,
    "manifest": [("register", "CREATE", "line")],
    "idempotency": "none",
    "timeout_ms": 2000,
}
PROBE: Final[dict[str, Any]] = {
    "read": {"tool": "seen", "arguments": {"name": "=args.name"}},
    "committed": "state.times > 0",
    "settle_after_s": 0.001,
}


class Slow:
    """Of the tool of that name: whether it has begun, and whether it may act."""

    begun: asyncio.Event
    go: asyncio.Event

    @classmethod
    def reset(cls) -> None:
        cls.begun, cls.go = asyncio.Event(), asyncio.Event()


def _file() -> Path:
    return Path(os.environ["LIVES_EFFECTS"])


def effects() -> Counter[str]:
    """How often each thing happened, in whichever process and life."""
    return Counter(_file().read_text().split()) if _file().exists() else Counter()


def _happen(name: str) -> dict[str, str]:
    with _file().open("a") as file:
        file.write(f"{name}\n")
    return {"name": name}


@tool(effect=Effect.READ_ONLY)
async def seen(name: str) -> dict[str, int]:
    """Look up how often something happened.

    Args:
        name: What it is called.
    """
    return {"times": effects()[name]}


@tool(effect=Effect.LOW_RISK_INTERNAL, **WRITE)
async def plain(name: str) -> dict[str, str]:
    """Let something happen that nobody can look up.

    Args:
        name: What it is called.
    """
    return _happen(name)


@tool(effect=Effect.LOW_RISK_INTERNAL, **WRITE)
async def slow(name: str) -> dict[str, str]:
    """Let something happen when the test says so.

    Args:
        name: What it is called.
    """
    Slow.begun.set()
    await Slow.go.wait()
    return _happen(name)


@tool(effect=Effect.LOW_RISK_INTERNAL, probe=PROBE, labels=["looked-up"], **WRITE)
async def probed(name: str) -> dict[str, str]:
    """Let something happen that can be looked up afterwards.

    Args:
        name: What it is called.
    """
    done = _happen(name)
    if name.startswith("lost"):
        raise RuntimeError("the answer is lost")
    return done


@tool(effect=Effect.LOW_RISK_INTERNAL, floor=Floor.OPERATOR, **WRITE)
async def grave(name: str) -> dict[str, str]:
    """Let something happen that an operator must allow.

    Args:
        name: What it is called.
    """
    return _happen(name)


@tool(effect=Effect.READ_ONLY, data_class=DataClass.CONFIDENTIAL)
async def confidential(name: str) -> dict[str, str]:
    """Read what must not get out.

    Args:
        name: What it is called.
    """
    return {"name": name}


TOOLS = [seen, plain, slow, probed, grave, confidential]
