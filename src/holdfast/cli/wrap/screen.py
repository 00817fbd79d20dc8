"""How is it told to a person?"""

import os
from pathlib import Path

from holdfast.cli.invoked import command, with_config
from holdfast.cli.screen import data, show, table, text
from holdfast.cli.wrap.files import Fate
from holdfast.cli.wrap.paste import ADDRESS
from holdfast.cli.wrap.result import Result
from holdfast.cli.wrap.upstreams import Wrapped

STYLES = {Fate.WRITTEN: "bold green", Fate.UNCHANGED: "dim", Fate.KEPT: "yellow", Fate.OTHERS: "yellow"}
RISKY = ("HIGH_RISK_EXTERNAL", "CRITICAL_MUTATION")


def tell(result: Result) -> None:
    _servers(result)
    _tools(result)
    _files(result)
    _variables(result)
    _entry(result)
    _next(result)


def near(path: Path) -> str:
    """A path as it is easiest to read from here."""
    short = os.path.relpath(path)
    return str(path) if short.startswith("..") else short


def _servers(result: Result) -> None:
    plan = result.plan
    show(text((plan.setup.client.name, "bold"), f"  {near(result.file)}", (f"  {plan.setup.place}", "dim")))
    show(
        table(
            ("server", "namespace", "reached by"),
            [((one.server.name, "bold"), one.namespace, _way(one)) for one in plan.wrapped],
        )
    )
    for name, why in plan.left.items():
        show(text(("left as it is  ", "yellow"), f"{name}: {why}"))
    for note in plan.notes:
        show(text(("note  ", "yellow"), note))
    show(text())


def _way(one: Wrapped) -> str:
    """As the configuration says it, so without what is secret."""
    settings = one.settings
    words = [settings["url"]] if "url" in settings else [settings["command"], *settings.get("args", ())]
    return " ".join(words)


def _tools(result: Result) -> None:
    rows = [
        ((f"{namespace}.{guess.tool}", "bold"), (guess.effect, _style(guess.effect)), guess.reason)
        for namespace, listed in result.listed.items()
        for guess in listed.guesses
    ]
    if rows:
        show(table(("tool", "effect", "why"), rows))
    for namespace, listed in result.listed.items():
        for fault in listed.faults:
            label = "note" if listed.reached else "not reached"
            show(text((f"{label}  ", "yellow"), f"{namespace}: {fault}"))
    for note in result.notes:
        show(text(("note  ", "yellow"), note))
    if not result.listed:
        show(text("no server was started, so nothing is known of their tools yet"))
    show(text())


def _style(effect: str) -> str:
    return "green" if effect == "READ_ONLY" else "yellow" if effect in RISKY else ""


def _files(result: Result) -> None:
    show(table(("", ""), [((fate.value, STYLES[fate]), near(path)) for path, fate in result.fates.items()]))
    if result.to_add:
        show(text(("add this under 'upstreams' of ", "yellow"), near(result.config)))
        show(text(result.to_add.rstrip()))
    show(text())


def _variables(result: Result) -> None:
    given = result.plan.references.given
    if not given:
        return
    moved = "env" in result.entry or "envFile" in result.entry
    if result.applied and moved:
        say = "values that moved within your client's file, into the entry below"
    elif moved:
        say = "values to move into the entry below"
    else:
        say = "variables to set before 'holdfast serve'"
    rows = [(f"  {name}", _where(result, one.where, one.secret)) for name, one in given.items()]
    show(text((say, "dim")), table(("", ""), rows), text())


def _where(result: Result, where: str, secret: bool) -> str:
    if not secret:
        return where
    return f"{'was' if result.applied else 'now'} in {where}"


def _entry(result: Result) -> None:
    done = "holds now" if result.applied else "gets, in place of the servers above"
    show(text((f"{result.file.name} {done}", "dim")), data(result.pasted), text())


def _next(result: Result) -> None:
    for line in _steps(result):
        show(text(("next: ", "dim"), line))


def _steps(result: Result) -> list[str]:
    option = with_config(Path(near(result.config)))
    steps = []
    if any(listed.guesses for listed in result.listed.values()):
        steps.append(f"read and correct {near(result.config.parent / 'overlays')}: a guess is not the truth")
    if result.to_add:
        return [*steps, f"complete {near(result.config)}, then run this again"]
    if not result.applied:
        project = f" --project {result.plan.setup.project}" if result.plan.setup.project else ""
        steps.append(f"paste the entry, or let '{command()} wrap {near(result.file)}{project} --apply' do it")
    if ADDRESS in result.entry.values():
        steps.append(f"{command()} serve{option}")
    steps.append(f"restart {result.plan.setup.client.name}, so that it reads its file again")
    if result.applied:
        steps.append(f"to go back: {command()} wrap {near(result.file)} --undo")
    return steps
