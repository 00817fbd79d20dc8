"""`holdfast why`: why is a call not allowed, and what would allow it?"""

from typing import Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, text
from holdfast.cli.session import caller, with_gateway


def add(app: typer.Typer) -> None:
    app.command()(why)


def why(
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="The tool, as namespace.name.", show_default=False)
    ],
    args: Annotated[
        str | None, typer.Option(help="Arguments: JSON, @FILE, or - for standard input; none when left out.")
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Say why a call is allowed or not, and what would allow it; nothing is done."""
    from holdfast.cli.calls import given_arguments

    arguments = None if args is None else given_arguments(args)
    found = with_gateway(config, lambda gateway: gateway.why(caller(gateway, as_), tool, arguments))
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found.to_dict())
    raise typer.Exit(Exit.DONE if found.allowed else Exit.REFUSED)


def _show(said: dict[str, Any]) -> None:
    word, style = ("allowed", "bold green") if said["allowed"] else ("not allowed", "bold red")
    by = f"  by gate '{said['gate']}'" if "gate" in said else ""
    show(text((word, style), f"  {said['tool']}{by}"))
    if "message" in said:
        show(text(f"  {said['message']}"))
    for policy in said.get("policies", ()):
        show(text(("  decided by  ", "dim"), _named(policy)))
    if "closest" in said:
        show(text(("  closest     ", "dim"), _named(said["closest"])))
        for condition in said["closest"]["failing"]:
            show(text(("    not so    ", "red"), condition))
    for role, count in said.get("need", {}).items():
        show(text(("  approval    ", "dim"), f"{count} x {role}"))
    for change in said.get("changes", ()):
        show(text(("  would help  ", "cyan"), change))
    for change in said.get("unasked", ()):
        show(text(("  unasked     ", "cyan"), change))
    if "ask" in said:
        show(text(("  ask         ", "dim"), said["ask"]))
    ids = [said[name] for name in ("decision_id", "call_id") if name in said]
    show(text(("  recorded as ", "dim"), ", ".join(ids)))


def _named(policy: dict[str, Any]) -> str:
    told = "" if policy["reason"] == policy["id"] else f": {policy['reason']}"
    return f"{policy['effect']} '{policy['id']}' at {policy['place']}{told}"
