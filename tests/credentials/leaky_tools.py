"""Tools that do with their secret what careless tools do."""

import logging
from typing import Any

from holdfast import Effect, NoEffect, Undo, tool

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("things", "UPDATE", "thing")],
    "idempotency": {},
    "credentials": [{"secret": "crm", "as": "argument", "name": "token"}],
}


def end(how: str, token: str) -> dict[str, Any]:
    logging.getLogger("leaky").warning("signing in with %s", token)
    match how:
        case "raise":
            raise RuntimeError(f"401: token {token!r} is not known")
        case "chain":
            try:
                raise ConnectionError(f"POST https://crm/?key={token}")
            except ConnectionError as error:
                raise ValueError("it broke") from error
        case "no_effect":
            raise NoEffect(f"{token} may not do that")
        case "misfit":
            return {"said": [token]}
    return {"said": f"used {token}", token: "as a key"}


@tool(**WRITE)
async def send(how: str, token: str) -> dict[str, Any]:
    """Send something, and say too much."""
    return end(how, token)


@tool(**WRITE)
def send_in_thread(how: str, token: str) -> dict[str, Any]:
    """The same, in a thread."""
    return end(how, token)


TOOLS = [send, send_in_thread]
