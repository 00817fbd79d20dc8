"""`holdfast login`, `holdfast logout`: let the gateway use an upstream in somebody's name, or no longer."""

import os
import sys
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile
from holdfast.cli.screen import show, text
from holdfast.model.errors import ConfigError, HoldfastError, NotFound

if TYPE_CHECKING:
    from holdfast.cli.redirect import Redirects
    from holdfast.config import Config
    from holdfast.config.upstream import McpServer
    from holdfast.gateway.wiring import Store
    from holdfast.model.call import Principal
    from holdfast.upstreams.http.outgoing import Outgoing

WAIT_S = 300.0
ASK_S = 10.0
"""How long an upstream may take to say what it wants."""
MOST_BYTES = 1 << 20
"""It says it in a header."""

Name = Annotated[
    str, typer.Argument(metavar="UPSTREAM", help="Its name in the configuration.", show_default=False)
]
ForGateway = Annotated[
    bool, typer.Option("--gateway", help="For what the gateway asks itself, such as the list of tools.")
]


def add(app: typer.Typer) -> None:
    for function in (login, logout):
        app.command()(function)


def login(
    upstream: Name,
    as_: As = None,
    gateway: ForGateway = False,
    wait: Annotated[float, typer.Option("--wait", min=1, help="Seconds to wait for you.")] = WAIT_S,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Sign in to an upstream in your browser, so that your calls reach it in your name."""
    import asyncio

    from holdfast.config import load

    loaded = load(config)
    server = _signed_in_to(loaded, upstream)
    whose, alone = asyncio.run(_login(loaded, upstream, server, _person(loaded, as_), gateway, wait))
    show(text(("signed in", "bold green"), f"  {upstream}  for {whose}"))
    if alone:
        why = "so that the gateway can list its tools"
        again = f"{command()} login {upstream} --gateway{with_config(config)}"
        show(text(("  next: ", "dim"), again, (f"  {why}", "dim")))


def logout(
    upstream: Name, as_: As = None, gateway: ForGateway = False, config: ConfigFile = DEFAULT_CONFIG
) -> None:
    """Forget a sign-in to an upstream, at once and in every process."""
    import asyncio

    from holdfast.config import load

    loaded = load(config)
    server = _signed_in_to(loaded, upstream)
    whose = asyncio.run(_logout(loaded, upstream, server, _person(loaded, as_), gateway))
    show(text(("signed out", "bold green"), f"  {upstream}  for {whose}"))


async def _login(
    config: "Config", name: str, server: "McpServer", person: "Principal", gateway: bool, wait: float
) -> tuple[str, bool]:
    """For whom, and whether the gateway itself is still signed out."""
    from holdfast.cli.redirect import Redirects
    from holdfast.gateway.egress import authorizer
    from holdfast.gateway.outgoing import Egress
    from holdfast.gateway.secrets import wallet
    from holdfast.gateway.storing import store_of
    from holdfast.system import SystemClock

    egress = Egress(config)
    own = wallet(config, SystemClock(), egress)
    challenge, holder = await _challenge(name, server, egress.outgoing_of(name)), _holder(person, gateway)
    async with store_of(config, SystemClock()) as store:
        known = authorizer(name, server, store.tokens, egress, own)
        before = await known.redirect_uris(holder) if known is not None else ()
        async with Redirects(*_ports(server, before)) as redirects:
            asking = authorizer(
                name,
                server,
                store.tokens,
                egress,
                own,
                redirect_uri=redirects.uri,
                open_url=lambda address: _opened(redirects, address, wait),
            )
            if asking is not None:
                await asking.sign_in(holder, challenge)
        alone = await store.tokens.load(("*", "*"), name) is None
        return await _noted(store, "sign in", name, server, person, gateway), alone


async def _logout(
    config: "Config", name: str, server: "McpServer", person: "Principal", gateway: bool
) -> str:
    from holdfast.gateway.egress import authorizer
    from holdfast.gateway.outgoing import Egress
    from holdfast.gateway.secrets import wallet
    from holdfast.gateway.storing import store_of
    from holdfast.system import SystemClock

    egress = Egress(config)
    own = wallet(config, SystemClock(), egress)
    async with store_of(config, SystemClock()) as store:
        known = authorizer(name, server, store.tokens, egress, own)
        if known is None or not await known.sign_out(_holder(person, gateway)):
            raise NotFound(f"there is no such sign-in to {name!r}; 'holdfast login {name}' makes one")
        return await _noted(store, "sign out", name, server, person, gateway)


async def _noted(
    store: "Store", act: str, name: str, server: "McpServer", person: "Principal", gateway: bool
) -> str:
    """For whom it was; the log keeps that too."""
    shared = server.auth is not None and server.auth.shared
    whose = "everybody" if shared else "the gateway itself" if gateway else person.user
    tenant = "*" if shared or gateway else person.tenant
    await store.audit.note(tenant, act, person.user, upstream=name, holder=whose)
    return whose


async def _opened(redirects: "Redirects", address: str, wait: float) -> tuple[str, str | None, str | None]:
    import asyncio
    import webbrowser

    show(text("open this address to sign in:"), text(address))
    if sys.stdout.isatty():
        await asyncio.to_thread(webbrowser.open, address)
    return await redirects.wait(address, wait)


async def _challenge(name: str, server: "McpServer", outgoing: "Outgoing") -> str:
    """What the upstream wants of somebody it does not know."""
    import json

    from holdfast.upstreams.http.outgoing import NotFetched

    ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **{name.lower(): value for name, value in server.headers.items()},
    }
    try:
        answer = await outgoing.ask(
            "POST",
            server.url or "",
            purpose="a sign-in",
            limit_bytes=MOST_BYTES,
            deadline_s=ASK_S,
            headers=accept,
            body=json.dumps(ask).encode(),
        )
    except NotFetched as error:
        raise HoldfastError(f"upstream {name!r} does not answer: {error}; is it up?") from None
    return (answer.header("www-authenticate") or "") if answer.status == 401 else ""


def _ports(server: "McpServer", before: tuple[str, ...]) -> tuple[int, ...]:
    """The configured one, else the one that is registered already, else any."""
    configured = 0 if server.auth is None else server.auth.redirect_port
    if configured:
        return (configured,)
    return (*(port for uri in before if (port := urlsplit(uri).port)), 0)


def _holder(person: "Principal", gateway: bool) -> str:
    from holdfast.upstreams.mcp.auth import whose

    return "" if gateway else whose(person.tenant, person.id)


def _person(config: "Config", name: str | None) -> "Principal":
    from holdfast.cli.session import credential, identity_of

    secret = os.environ.get("HOLDFAST_APPROVER_SECRET") or None
    return identity_of(config).at_terminal(name, secret=secret, key=credential())


def _signed_in_to(config: "Config", name: str) -> "McpServer":
    upstream = config.upstreams.get(name)
    if upstream is None:
        known = ", ".join(repr(n) for n in sorted(config.upstreams)) or "none"
        raise ConfigError(f"there is no upstream {name!r}; known: {known}")
    server = upstream.mcp
    if server is None or server.auth is None or server.auth.type != "oauth":
        raise ConfigError(f"nobody signs in to {name!r}; set 'upstreams.{name}.mcp.auth.type' to 'oauth'")
    return server
