"""`holdfast plan` and `holdfast plans list|show|revoke`: have calls approved as a whole."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.rules import document
from holdfast.cli.screen import data, show, show_json, table, text
from holdfast.cli.session import caller, with_gateway
from holdfast.cli.shown import moment
from holdfast.model.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.plans import Planned
    from holdfast.model.standing import Plan

Id = Annotated[
    str, typer.Argument(metavar="ID", help="The plan, as 'plans list' shows it.", show_default=False)
]
EXITS = {"asked": Exit.HELD, "unneeded": Exit.DONE, "refused": Exit.REFUSED}


def add(app: typer.Typer) -> None:
    app.command()(plan)
    group = typer.Typer(cls=Listed, help="Look at plans, and end them.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("show")(show_)
    group.command()(revoke)
    app.add_typer(group, name="plans")


def plan(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The steps, YAML or JSON: {steps: [{tool, arguments}]}.", show_default=False
        ),
    ],
    task: Annotated[str | None, typer.Option(help="The task it belongs to.")] = None,
    cost: Annotated[float | None, typer.Option(help="What all steps may cost at most.")] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Ask people once about all the calls of a plan; each is then called once, as it was shown."""
    said = {"task": task, "cost": cost} | document(file)

    async def proposed(gateway: "Gateway") -> "Planned":
        from holdfast.servers.members import faults, given
        from holdfast.servers.standing import PLAN, proposed, step_faults

        wrong = faults(said, PLAN) or step_faults(said["steps"])
        if wrong:
            raise ConfigError(f"'{file}': {'; '.join(fault.message for fault in wrong)}")
        return await proposed(gateway, caller(gateway, as_), given(said))

    found = with_gateway(config, proposed)
    if as_json:
        from holdfast.servers.standing import shown_planned

        show_json(shown_planned(found))
    else:
        show_planned(found, config)
    raise typer.Exit(EXITS[found.status])


def list_(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List plans: yours, or everybody's for an operator."""
    found = with_gateway(config, lambda gateway: gateway.plans.list(caller(gateway, as_)))
    if as_json:
        show_json({"plans": [_plain(one) for one in found]})
    elif not found:
        show(text("no plan was ever proposed"))
    else:
        show(table(("plan", "", "by", "steps", "until"), [_row(one) for one in found]))


def show_(id: Id, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Show one plan, and which of its steps were used."""
    _show_one(with_gateway(config, lambda gateway: gateway.plans.get(caller(gateway, as_), id)), as_json)


def revoke(
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """End a plan at once; what its steps have done is done."""
    found = with_gateway(config, lambda gateway: gateway.plans.revoke(caller(gateway, as_), id, note))
    _show_one(found, as_json)


def _plain(one: "Plan") -> dict[str, Any]:
    from holdfast.servers.standing import shown_plan

    return shown_plan(one, time.time())


def _row(one: "Plan") -> tuple[str | tuple[str, str], ...]:
    used = sum(step.used_nonce is not None for step in one.steps)
    state = one.state(time.time())
    return (one.id, "bold"), state, one.principal, f"{used} of {len(one.steps)}", moment(one.expires_at)


def _show_one(one: "Plan", as_json: bool) -> None:
    said = _plain(one)
    if as_json:
        show_json(said)
        return
    show(text((said["state"], "bold"), f"  {one.id}  by {one.principal}"), data(said))


def show_planned(found: "Planned", config: Path) -> None:
    style = {"asked": "bold yellow", "unneeded": "bold green", "refused": "bold red"}[found.status]
    show(text((found.status, style), f"  {found.message}"))
    for step in found.steps:
        need = ", ".join(f"{count} x {role}" for role, count in step.need.items()) or "nobody"
        by_rule = f", for rule {step.rule} stands" if step.rule else ""
        said = f"needs {need}{by_rule}" if step.code is None else f"{step.code}: {step.message}"
        show(text(f"  {step.number}. {step.tool}  {said}"))
    if found.approval is not None:
        show(
            text(
                ("answer with: ", "dim"),
                f"{command()} approve {found.approval.id} --as NAME{with_config(config)}",
            )
        )
