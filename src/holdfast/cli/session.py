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
    from holdfast.config import Config
    from holdfast.gateway import Gateway

T = TypeVar("T")


def with_gateway(config: Path, work: "Callable[[Gateway], Awaitable[T]]") -> T:
    """Open, work, close."""
    import asyncio

    from holdfast.gateway import Gateway

    async def opened() -> T:
        async with Gateway.open(config, connect=False) as gateway:
            await recognize(gateway.identity)
            return await work(gateway)

    return asyncio.run(opened())


def caller(gateway: "Gateway", name: str | None) -> Principal:
    """Who makes a call."""
    return gateway.identity.at_terminal(name, secret=_given_secret(), key=credential())


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
    return identity.at_terminal(name, secret=secret, key=credential())


def credential() -> str | None:
    """What whoever is at the terminal holds: a token, or a key."""
    return os.environ.get("HOLDFAST_TOKEN") or os.environ.get("HOLDFAST_API_KEY") or None


async def recognize(identity: Identity) -> None:
    """Get what it takes to check the credential: for a token, the keys of its issuer."""
    if identity.issuer_keys is not None and (held := credential()) is not None:
        await identity.learn({"authorization": f"Bearer {held}"})


def identity_of(config: "Config") -> Identity:
    """Where no gateway can be opened; whoever holds a credential can be recognized."""
    import asyncio

    from holdfast.gateway.issuer import fetcher
    from holdfast.gateway.outgoing import Egress
    from holdfast.identity import build

    identity = build(config.auth.model_dump(), fetch=fetcher(config, Egress(config)))
    asyncio.run(recognize(identity))
    return identity


def _given_secret() -> str | None:
    return os.environ.get("HOLDFAST_APPROVER_SECRET") or None
