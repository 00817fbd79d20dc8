"""How does a command get an open gateway, and as whom?

The gateway is opened in this process on the store the server uses too: several
processes share it safely (PPL-6), so a command works whether or not a server runs.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.identity import Identity, Unauthenticated
from holdfast.model.call import Principal

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

T = TypeVar("T")


def with_gateway(config: Path, work: "Callable[[Gateway], Awaitable[T]]") -> T:
    """Open, work, close."""
    import asyncio

    from holdfast.gateway import Gateway

    async def opened() -> T:
        async with Gateway.open(config, connect=False) as gateway:
            return await work(gateway)

    return asyncio.run(opened())


def caller(gateway: "Gateway", name: str | None) -> Principal:
    """Who makes a call."""
    return gateway.identity.at_terminal(name, secret=_given_secret(), key=os.environ.get("HOLDFAST_API_KEY"))


def decider(gateway: "Gateway", name: str | None) -> Principal:
    """Who decides as a person: asked for their approver secret where they have one."""
    return person(gateway.identity, name)


def person(identity: Identity, name: str | None) -> Principal:
    """The same, where no gateway can be opened."""
    known = identity.people.get(name or identity.os_user)
    secret = _given_secret()
    if known is not None and known.secret is not None and secret is None:
        if not sys.stdin.isatty():
            raise Unauthenticated(
                f"{known.name!r} decides with a secret; set HOLDFAST_APPROVER_SECRET, or use a terminal"
            )
        import typer

        secret = typer.prompt(f"approver secret of {known.name}", hide_input=True, err=True)
    return identity.at_terminal(name, secret=secret, key=os.environ.get("HOLDFAST_API_KEY"))


def _given_secret() -> str | None:
    return os.environ.get("HOLDFAST_APPROVER_SECRET") or None
