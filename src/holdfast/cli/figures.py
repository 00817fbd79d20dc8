"""`holdfast health|alerts|costs`: how well tools are, what is wrong, what it cost; TEL-3, TEL-4, TEL-5."""

import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, decider, with_gateway
from holdfast.cli.shown import moment

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.costs import Sum
    from holdfast.model.people import Alert
    from holdfast.telemetry.health import Health

DAY_S = 86_400.0
By = Literal["task", "tool", "caller", "day", "part", "tenant"]


def add(app: typer.Typer) -> None:
    app.command()(health)
    app.command()(alerts)
    app.command()(costs)


def health(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Tell how well tools are, from 0 to 1, by their calls of the last 15 minutes."""

    async def found(gateway: "Gateway") -> "tuple[list[Health], list[Health]]":
        by = caller(gateway, as_)
        return await gateway.health.tools(by), await gateway.health.upstreams(by)

    tools, upstreams = with_gateway(config, found)
    called = [one for one in tools if one.calls]
    if as_json:
        show_json({"tools": [one.shown() for one in tools], "upstreams": [one.shown() for one in upstreams]})
    elif not called:
        show(text("nothing was called in 15 minutes, so nothing is known against any tool"))
    else:
        headings = ("tool", "health", "calls", "errors", "timeouts", "p99", "usual p99")
        show(table(headings, [_row(one) for one in called]))


def alerts(
    days: Annotated[float, typer.Option(min=0, help="Also what was wrong in so many days.")] = 0.0,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Tell what is wrong now, and what to do about it."""

    async def found(gateway: "Gateway") -> "list[Alert]":
        by = decider(gateway, as_)
        if days:
            return list(await gateway.alerts.list(by, time.time() - days * DAY_S))
        return list(await gateway.alerts.open(by))

    from holdfast.gateway.alerts import shown

    known = with_gateway(config, found)
    if as_json:
        show_json({"alerts": [shown(alert) for alert in known]})
    elif not known:
        show(text("nothing is wrong" if not days else f"nothing was wrong in {days:g} days"))
    for alert in () if as_json else known:
        since = f"{moment(alert.at)}, " + (
            "open" if alert.ended_at is None else f"over {moment(alert.ended_at)}"
        )
        style = "bold red" if alert.ended_at is None else "dim"
        show(text((alert.kind, style), f"  {since}"), text(f"  {alert.text}"))


def costs(
    by: Annotated[By, typer.Option(help="What to add up by.")] = "tool",
    days: Annotated[float, typer.Option(min=0, help="How many days to look back.")] = 30.0,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Tell what calls cost, by what for: your own, or everybody's for an operator."""

    async def found(gateway: "Gateway") -> "list[Sum]":
        since = time.time() - days * DAY_S
        return list(await gateway.costs.sums(caller(gateway, as_), by, since))

    sums = with_gateway(config, found)
    if as_json:
        show_json({"by": by, "costs": [one.shown() for one in sums]})
    elif not sums:
        show(text(f"nothing cost anything in {days:g} days; contracts say what calls cost: 'runtime.cost'"))
    else:
        show(table((by, "amount", "", "calls", "of which"), [_cost(one) for one in sums]))


def _row(one: "Health") -> list[str | tuple[str, str]]:
    style = "green" if one.score > 0.9 else "yellow" if one.score > 0.7 else "bold red"
    figures = (str(one.calls), str(one.errors), str(one.timeouts), _ms(one.p99_ms), _ms(one.baseline_ms))
    return [(one.subject, "bold"), (f"{one.score:.2f}", style), *figures]


def _cost(one: "Sum") -> list[str | tuple[str, str]]:
    parts = ", ".join(f"{part} {cost / 1e6:g}" for part, cost in sorted(one.parts.items()))
    return [(one.name or "-", "bold"), f"{one.cost / 1e6:g}", one.currency, str(one.calls), parts]


def _ms(latency: float | None) -> str:
    return "" if latency is None else f"{latency:.3g} ms"
