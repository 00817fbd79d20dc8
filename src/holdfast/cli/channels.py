"""`holdfast channels [test NAME]`: are people being told, and does a channel work?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import decider, with_gateway

if TYPE_CHECKING:
    from holdfast.gateway.notices.notices import State

HEADINGS = ("channel", "kind", "tells of", "roles", "sent", "waiting", "failed", "last sent", "went wrong")


class Channels(Listed):
    """`holdfast channels` alone lists."""

    default = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args[:1] and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [self.default, *args])


def add(app: typer.Typer) -> None:
    group = typer.Typer(cls=Channels, help="How people hear of questions and alerts; try whether they do.")
    group.command(Channels.default)(channels)
    group.command("test")(try_)
    app.add_typer(group, name="channels")


def channels(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List the channels, and whether what they tell gets through."""
    found = with_gateway(config, lambda gateway: gateway.notices.channels(decider(gateway, as_)))
    if as_json:
        from holdfast.servers.channels import shown

        show_json({"channels": [shown(state) for state in found]})
    elif found:
        show(table(HEADINGS, [_row(state) for state in found]))
    else:
        show(text("no channel is set; write them under 'channels' in the configuration"))


def try_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As the configuration calls it.")],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Send a test through a channel now, and say what happened."""
    from holdfast.cli.exits import Exit
    from holdfast.gateway.notices.outcome import Sent

    found = with_gateway(config, lambda gateway: gateway.notices.test(decider(gateway, as_), name))
    said = {to: None if isinstance(outcome, Sent) else outcome.said for to, outcome in found.items()}
    if as_json:
        results = [{"to": to or name, "sent": why is None, "said": why or ""} for to, why in said.items()]
        show_json({"channel": name, "results": results})
    for to, why in () if as_json else said.items():
        told = ("sent", "bold green") if why is None else ("not sent", "bold red")
        show(text(told, f"  {to or name}" + ("" if why is None else f": {why}")))
    if any(said.values()):
        raise typer.Exit(Exit.FAILED)


def _row(state: "State") -> list[str]:
    from holdfast.cli.shown import moment

    tally = state.tally
    return [
        state.name,
        state.kind,
        ", ".join(state.events),
        ", ".join(state.roles) or "any",
        str(tally.sent),
        str(tally.waiting),
        str(tally.failed),
        "never" if tally.last_sent_at is None else moment(tally.last_sent_at),
        tally.said or "nothing",
    ]
