"""`holdfast tools changes|accept`: what imported tools changed, and who takes them as they are now; REG-8."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import ConfigError, NotFound

if TYPE_CHECKING:
    from holdfast.catalog.imports.lock import Pending
    from holdfast.gateway import Gateway

STYLES = {"+": "green", "-": "red", "@": "dim"}

Waiting = dict[tuple[str, str], "Pending"]
"""By namespace and tool."""


def changes(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List imported tools that changed and wait, with what changed."""

    async def found(gateway: "Gateway") -> Waiting:
        return _waiting(gateway.changes(decider(gateway, as_)))

    waiting = with_gateway(config, found)
    if as_json:
        show_json({"changes": [_plain(name, one) for name, one in waiting.items()]})
        return
    for name, one in waiting.items():
        _show(name, one)
    if waiting:
        show(text(("accept with: ", "dim"), f"{command()} tools accept TOOL --as NAME{with_config(config)}"))
    else:
        show(text("nothing waits to be accepted"))


def accept(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="TOOL|UPSTREAM", help="One tool, or all that waits of one upstream.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not show it and ask first.")] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Take changed tools as they are now; at a terminal the change is shown first."""
    if (what is None) != every:
        raise ConfigError("name a tool or an upstream, or give --all")

    async def accepted(gateway: "Gateway") -> list[str] | None:
        by = decider(gateway, as_)
        chosen = _chosen(_waiting(gateway.changes(by)), what)
        if not (yes or as_json) and sys.stdin.isatty():
            for name, one in chosen.items():
                _show(name, one)
            if not typer.confirm(f"accept as {by.user}?", default=False):
                return None
        for (namespace, tool), one in chosen.items():
            await gateway.accept(by, namespace, tool, one.digest)
        return [_joined(name) for name in chosen]

    done = with_gateway(config, accepted)
    if done is None:
        show(text("nothing was accepted; it still waits"))
        raise typer.Exit(Exit.REFUSED)
    if as_json:
        show_json({"accepted": done})
        return
    for name in done:
        show(text(("accepted", "bold green"), f"  {name}"))


def _waiting(found: Mapping[str, Mapping[str, Any]]) -> Waiting:
    return {(namespace, tool): one for namespace, tools in found.items() for tool, one in tools.items()}


def _chosen(waiting: Waiting, what: str | None) -> Waiting:
    chosen = {name: one for name, one in waiting.items() if what is None or what in (name[0], _joined(name))}
    if not chosen:
        told = "nothing waits to be accepted" if what is None else f"nothing of {what!r} waits to be accepted"
        raise NotFound(f"{told}; 'holdfast tools changes' lists what does")
    return chosen


def _show(name: tuple[str, str], one: "Pending") -> None:
    show(text((_joined(name), "bold"), f"  {one.reason}", (f"  since {one.seen_at}", "dim")))
    for line in one.diff.splitlines():
        show(text((f"  {line}", STYLES.get(line[:1], ""))))


def _plain(name: tuple[str, str], one: "Pending") -> dict[str, Any]:
    return {
        "tool": _joined(name),
        "upstream": name[0],
        "reason": one.reason,
        "seen_at": one.seen_at,
        "digest": one.digest,
        "diff": one.diff,
    }


def _joined(name: tuple[str, str]) -> str:
    return ".".join(name)
