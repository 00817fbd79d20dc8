"""`holdfast settle`, `halt`, `resume`, `halts`, `cancel`: the levers of whoever runs the gateway."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import NotFound

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.observation import Observation

CallId = Annotated[str, typer.Argument(metavar="CALL", help="The call's id.", show_default=False)]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="all, an upstream, a tool, or a principal as user/agent.", show_default=False
    ),
]


class Outcome(StrEnum):
    COMMITTED = "committed"
    NO_EFFECT = "no-effect"


def add(app: typer.Typer) -> None:
    for function in (settle, halt, resume, halts, cancel):
        app.command()(function)


def settle(
    call_id: CallId,
    outcome: Annotated[
        Outcome, typer.Argument(metavar="committed|no-effect", help="What you found out.", show_default=False)
    ],
    note: Annotated[
        str, typer.Option("--note", help="How you know; kept in the record.", show_default=False)
    ],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Say what became of a call whose outcome is unknown."""

    async def settled(gateway: "Gateway") -> "Observation":
        said: Literal["committed", "no-effect"] = "committed" if outcome is Outcome.COMMITTED else "no-effect"
        return await gateway.settle(decider(gateway, as_), call_id, said, note)

    observation = with_gateway(config, settled)
    if as_json:
        show_json(observation.to_dict())
        return
    then = (
        "the same key answers 'done' from now on"
        if outcome is Outcome.COMMITTED
        else "the key may be used again"
    )
    show(text(("settled", "bold green"), f"  {call_id}  {outcome.value}; {then}"))


def halt(target: Target, note: Note = "", as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Stop calls at once, in every process."""
    with_gateway(config, lambda gateway: gateway.halt(decider(gateway, as_), target, note))
    again = f"{command()} resume {target}{f' --as {as_}' if as_ else ''}{with_config(config)}"
    show(text(("halted", "bold red"), f"  {target}"), text(("  next: ", "dim"), again))


def resume(target: Target, as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Let calls through again."""
    if not with_gateway(config, lambda gateway: gateway.resume(decider(gateway, as_), target)):
        raise NotFound(f"{target!r} is not halted; 'holdfast halts' lists what is")
    show(text(("resumed", "bold green"), f"  {target}"))


def halts(config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List what is halted."""
    found = with_gateway(config, lambda gateway: gateway.halts())
    if as_json:
        show_json({"halts": dict(found)})
    elif found:
        show(table(("halted", "why"), sorted(found.items())))
    else:
        show(text("nothing is halted"))


def cancel(
    call_id: CallId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Stop a call that has not acted yet, or the job it has submitted."""
    result = with_gateway(config, lambda gateway: gateway.cancel(decider(gateway, as_), call_id))
    if as_json:
        show_json({"call_id": call_id, "result": result})
    else:
        show(text((result, "bold"), f"  {call_id}  {EXPLAINED[result]}"))
    raise typer.Exit(Exit.REFUSED if result == "too late" else Exit.DONE)


EXPLAINED = {
    "cancelled": "it did not act",
    "requested": "the process that runs it stops it if it has not acted; a job is stopped at its upstream",
    "too late": "it has acted or ended; look at it before doing anything else",
}
