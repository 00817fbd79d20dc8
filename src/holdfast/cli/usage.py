"""`holdfast tools usage`: who runs which version of which tool, and who must move; REG-6."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, with_gateway
from holdfast.cli.shown import moment
from holdfast.model import defaults

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.record import Use

DAY_S = 86_400.0


def usage(
    days: Annotated[float, typer.Option(min=0, help="How many days to look back.")] = defaults.USAGE_REPORT_S
    / DAY_S,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Tell who used which version of which tool, and which of them are on their way out."""

    async def found(gateway: "Gateway") -> "tuple[list[Use], dict[str, str]]":
        by = caller(gateway, as_)
        leaving: dict[str, str] = {
            f"{one.tool.contract.tool}@{one.tool.contract.version}": one.status.value
            for one in gateway.tools(by)
            if one.status.value in ("deprecated", "sunset")
        }
        return list(await gateway.usage(by, time.time() - days * DAY_S)), leaving

    uses, leaving = with_gateway(config, found)
    if as_json:
        show_json({"uses": [_plain(use, leaving) for use in uses]})
    elif not uses:
        show(text(f"nothing was called in {days:g} days"))
    else:
        rows = (
            (
                (use.tool, "bold"),
                leaving.get(use.tool, ""),
                f"{use.caller}/{use.agent}",
                str(use.calls),
                moment(use.last_at),
            )
            for use in uses
        )
        show(table(("tool", "", "by", "calls", "last"), rows))


def _plain(use: "Use", leaving: dict[str, str]) -> dict[str, Any]:
    return {**use._asdict(), "status": leaving.get(use.tool)}
