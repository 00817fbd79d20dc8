"""`holdfast budgets`: what may still be done, and by whom."""

from collections.abc import Mapping
from typing import Any

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, with_gateway

HEADINGS = ("per", "who", "kind", "limit", "used", "reserved", "left")


def add(app: typer.Typer) -> None:
    app.command()(budgets)


def budgets(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List budgets: what they allow, what is used, and what calls under way have reserved."""
    found = [
        standing.shown()
        for standing in with_gateway(config, lambda gateway: gateway.budgets(caller(gateway, as_)))
    ]
    if as_json:
        show_json({"budgets": found})
    elif found:
        show(table(HEADINGS, [row(standing) for standing in found]))
    else:
        show(text("no budget is set; write them under 'limits.budgets' in the configuration"))


def row(standing: Mapping[str, Any]) -> list[str]:
    names = [name for name, limit in standing["limit"].items() if limit is not None]
    window = f" in {standing['window_s']:g} s" if standing["window_s"] else ""
    amounts = [_told(standing[what], names) for what in ("limit", "used", "reserved", "left")]
    return [standing["per"] + window, standing["subject"], standing["kind"], *amounts]


def _told(amount: Mapping[str, float], names: list[str]) -> str:
    return ", ".join(f"{amount[name]:g} {name}" for name in names)
