"""`holdfast tools`: what may this person use?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import changes, usage
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import data, show, show_json, table, text
from holdfast.cli.session import caller, with_gateway
from holdfast.model.errors import NotFound

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.ports import Listing


class Tools(Listed):
    """`holdfast tools` and `holdfast tools TOOL` list; a tool's name has a dot, so it is no command."""

    default = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args[:1] and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [self.default, *args])


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Tools,
        help="List the tools you may use, or show one ('holdfast tools TOOL'); see and accept what changed.",
    )
    group.command(Tools.default)(tools)
    group.command()(changes.changes)
    group.command()(changes.accept)
    group.command()(usage.usage)
    app.add_typer(group, name="tools")


def tools(
    tool: Annotated[
        str | None, typer.Argument(metavar="TOOL", help="Show one tool in full.", show_default=False)
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """List the tools you may use, or show one."""

    async def listed(gateway: "Gateway") -> "tuple[list[Listing], list[str]]":
        found, by = gateway.tools(caller(gateway, as_)), caller(gateway, as_)
        falls = [] if tool is None else gateway.fallbacks.explained(by, tool)
        return [entry for entry in found if tool in (None, entry.tool.contract.tool)], falls

    found, standing = with_gateway(config, listed)
    if tool is not None and not found:
        raise NotFound(f"there is no tool {tool!r} that you may use; 'holdfast tools' lists them")
    if as_json:
        from holdfast.servers.listing import shown

        show_json({"tools": [shown(entry) for entry in found]})
    elif tool is not None:
        for entry in found:
            _show_one(entry, standing)
    else:
        _show_all(found)


def _show_all(found: "list[Listing]") -> None:
    if not found:
        show(text("no tools: nothing is configured under 'upstreams', or you hold no scope for any of it"))
        return
    show(
        table(
            ("tool", "version", "effect", "what it does"),
            (
                (
                    (contract.tool, "bold"),
                    contract.version + ("" if entry.status.value == "active" else f" {entry.status.value}"),
                    contract.effect.value,
                    _first_sentence(contract.affordance.description),
                )
                for entry in found
                for contract in (entry.tool.contract,)
            ),
        )
    )


def _show_one(entry: "Listing", standing: list[str]) -> None:
    contract = entry.tool.contract
    face = contract.affordance
    show(
        text(
            (f"{contract.tool}@{contract.version}", "bold"),
            f"  {contract.effect.value}",
            f"  {entry.status.value}",
        )
    )
    show(text(face.description))
    for label, said in (
        ("use when", face.use_when),
        ("not when", face.do_not_use_when),
        ("needs", face.preconditions),
    ):
        for line in said:
            show(text((f"  {label}: ", "dim"), line))
    for line in standing:
        show(text(("  fallback: ", "dim"), line))
    show(data(face.input_schema))
    for example in face.examples:
        show(text(("  example: ", "dim"), example.description), data(example.arguments))


def _first_sentence(description: str) -> str:
    line = " ".join(description.split())
    return line.partition(". ")[0].rstrip(".")
