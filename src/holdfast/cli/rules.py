"""`holdfast rules propose|add|list|show|accept|revoke`: say yes once for many calls of a kind."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import data, show, show_json, table, text
from holdfast.cli.session import decider, with_gateway
from holdfast.cli.shown import moment
from holdfast.model.approval import Answer
from holdfast.model.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.approvals.history import Fatigue, Proposed
    from holdfast.gateway import Gateway
    from holdfast.model.standing import Rule

SPAN = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")
UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

Id = Annotated[
    str, typer.Argument(metavar="ID", help="The rule, as 'rules list' shows it.", show_default=False)
]


def add(app: typer.Typer) -> None:
    group = typer.Typer(cls=Listed, help="Say yes once for many calls of a kind.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("show")(show_)
    group.command()(propose)
    group.command("add")(add_)
    group.command()(accept)
    group.command()(revoke)
    app.add_typer(group, name="rules")


def list_(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List the rules there are and were."""
    found = with_gateway(config, lambda gateway: gateway.rules.list(decider(gateway, as_)))
    if as_json:
        show_json({"rules": [_plain(rule) for rule in found]})
    elif not found:
        hint = f"{command()} rules propose{with_config(config)}"
        show(text("no rule was ever proposed; past answers may suggest some: ", (hint, "bold")))
    else:
        show(table(("rule", "", "tool", "for", "used", "until"), [_row(rule) for rule in found]))


def show_(id: Id, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Show one rule: what it covers, who accepted it, how often it was used."""
    _show_one(with_gateway(config, lambda gateway: gateway.rules.get(decider(gateway, as_), id)), as_json)


def propose(
    since: Annotated[str, typer.Option(help="How far to look back: 30m, 12h, 7d, 4w.")] = "30d",
    tool: Annotated[str | None, typer.Option(help="Only for this tool.")] = None,
    ask: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ask people about the N-th proposal.")
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Propose rules from past answers, with the proof of what they would have admitted."""
    back = time.time() - span(since)

    async def found(gateway: "Gateway") -> "tuple[list[Proposed], Fatigue, Rule | None]":
        by = decider(gateway, as_)
        suggested, tired = await gateway.rules.proposals(by, back, tool)
        if ask is None:
            return list(suggested), tired, None
        if ask > len(suggested):
            raise ConfigError(
                f"there are {len(suggested)} proposals, and no {ask}.; leave --ask out to see them"
            )
        return list(suggested), tired, await gateway.rules.propose(by, _wish(suggested[ask - 1]))

    suggested, tired, asked = with_gateway(config, found)
    if asked is not None:
        _show_one(asked, as_json, config)
    elif as_json:
        from holdfast.servers.standing import shown_proposals

        show_json(shown_proposals(suggested, tired))
    else:
        _show_proposals(suggested, tired, config)


def add_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rule, YAML or JSON.", show_default=False)],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Ask people whether a rule you wrote may stand."""
    said = document(file)

    async def asked(gateway: "Gateway") -> "Rule":
        from holdfast.gateway.rules import Wish
        from holdfast.servers.members import faults
        from holdfast.servers.standing import RULE

        if wrong := faults(said, RULE):
            raise ConfigError(f"'{file}': {'; '.join(fault.message for fault in wrong)}")
        return await gateway.rules.propose(decider(gateway, as_), Wish(**said))

    _show_one(with_gateway(config, asked), as_json, config)


def accept(
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Say yes to a rule; it stands once as many have as it stands for."""
    found, _ = with_gateway(config, lambda gateway: gateway.rules.accept(decider(gateway, as_), id, note))
    _show_one(found, as_json)


def revoke(
    id: Id, as_: As = None, note: Note = "", config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """End a rule at once, in every process."""
    _show_one(
        with_gateway(config, lambda gateway: gateway.rules.revoke(decider(gateway, as_), id, note)), as_json
    )


def span(said: str) -> float:
    found = SPAN.fullmatch(said)
    if found is None:
        raise ConfigError(f"{said!r} is no time to look back; write it as '30m', '12h', '7d' or '4w'")
    return min(float(found[1]) * UNITS[found[2]], time.time())  # nothing is older than the epoch


def document(file: Path) -> dict[str, Any]:
    """What a YAML or JSON file says, where it is an object."""
    import yaml

    try:
        said = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"'{file}' cannot be read: {(error.strerror or 'it failed').lower()}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"'{file}' is no YAML or JSON: {error}") from None
    if not isinstance(said, dict):
        raise ConfigError(f"'{file}' holds no object; see docs/how-to/approve-less-often.md")
    return said


def _wish(one: "Proposed") -> Any:
    from holdfast.gateway.rules import Wish

    return Wish(
        tool=one.tool,
        principals=one.principals,
        arguments=one.arguments,
        need=one.need,
        most=one.most,
        note=f"as {len(one.proof.approved)} calls were approved",
    )


def _plain(rule: "Rule") -> dict[str, Any]:
    from holdfast.servers.standing import shown_rule

    return shown_rule(rule, time.time())


def _row(rule: "Rule") -> tuple[str | tuple[str, str], ...]:
    used = f"{rule.used}" if rule.most is None else f"{rule.used} of {rule.most}"
    state = rule.state(time.time())
    return (rule.id, "bold"), state, rule.tool, rule.principals, used, moment(rule.expires_at)


def _show_one(rule: "Rule", as_json: bool, config: Path | None = None) -> None:
    said = _plain(rule)
    if as_json:
        show_json(said)
        return
    show(text((said["state"], "bold"), f"  {rule.id}  {rule.tool}  for {rule.principals}"), data(said))
    if config is not None and rule.answer is Answer.PENDING:
        show(
            text(
                ("accept with: ", "dim"), f"{command()} rules accept {rule.id} --as NAME{with_config(config)}"
            )
        )


def _show_proposals(found: "list[Proposed]", tired: "Fatigue", config: Path) -> None:
    from holdfast.model.constraint import told

    for number, one in enumerate(found, 1):
        show(text((f"{number}. {one.tool}", "bold"), f"  for {one.principals}, at most {one.most} times"))
        for name, constraint in one.arguments.items():
            show(text(f"   {name}: {told(constraint)}"))
        proof = one.proof
        show(
            text(
                f"   would have answered {len(proof.approved)} that were approved, {len(proof.denied)} that"
                f" were denied, {len(proof.unanswered)} unanswered: {', '.join(proof.approved[:5])}"
            )
        )
    if found:
        show(text(("ask people with: ", "dim"), f"{command()} rules propose --ask N{with_config(config)}"))
    else:
        show(text("past answers suggest no rule"))
    _show_fatigue(tired)


def _show_fatigue(tired: "Fatigue") -> None:
    show(
        text(
            f"asked {tired.asked}, answered {tired.answered}, approved {tired.approved};"
            f" {tired.asks_per_person_and_day:g} per person and day"
        )
    )
    if tired.median_answer_s is not None:
        show(
            text(
                f"half of the answers came within {tired.median_answer_s:g} s;"
                f" {_percent(tired.approved_without_note)} of yes without a note,"
                f" {_percent(tired.answered_quickly)} of answers faster than anybody reads"
            )
        )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
