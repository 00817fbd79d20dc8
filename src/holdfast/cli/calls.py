"""`holdfast call`: propose one call and show what became of it."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exits
from holdfast.cli.invoked import with_config
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show_json
from holdfast.cli.session import caller, with_gateway
from holdfast.cli.shown import show_observation
from holdfast.model.call import Principal
from holdfast.model.observation import Observation

if TYPE_CHECKING:
    from holdfast.gateway import Gateway


class Release(StrEnum):
    CALLER = "caller"
    GATEWAY = "gateway"


def add(app: typer.Typer) -> None:
    app.command()(call)


def call(
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="The tool, as namespace.name.", show_default=False)
    ],
    args: Annotated[str, typer.Option(help="Arguments: JSON, @FILE, or - for standard input.")] = "{}",
    key: Annotated[
        str | None, typer.Option(help="Your name for this operation; the same key never acts twice.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would happen, and do nothing.")
    ] = False,
    version: Annotated[str | None, typer.Option(help="A version or range, such as ^2.0.0.")] = None,
    task: Annotated[str | None, typer.Option(help="The task this call belongs to.")] = None,
    step: Annotated[str | None, typer.Option(help="The step of the task.")] = None,
    deadline_ms: Annotated[int | None, typer.Option(min=1, help="Give up after this long.")] = None,
    if_match: Annotated[
        str | None, typer.Option(help="The version of the target this call was planned on.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="The plan token of a preview: run only if that still holds.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="The approval token an approver was given; optional.")
    ] = None,
    release: Annotated[
        Release | None, typer.Option(help="Who proposes the call again once it is approved.")
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Call a tool through every gate."""
    arguments = given_arguments(args)

    async def proposed(gateway: "Gateway") -> tuple[Observation, list[str]]:
        by = caller(gateway, as_)
        details = {
            "key": key,
            "preview": preview,
            "version": version,
            "task": task,
            "step": step,
            "deadline_ms": deadline_ms,
            "if_match": if_match,
            "plan_token": plan,
            "approval_token": token,
            "release": None if release is None else release.value,
        }
        seen = await gateway.call(tool, arguments, principal=by, **details)
        return seen, await approvers(gateway, by, seen)

    observation, people = with_gateway(config, proposed)
    if as_json:
        show_json(observation.to_dict())
    else:
        show_observation(observation, people, with_config(config))
    raise typer.Exit(exits.of(observation))


async def approvers(gateway: "Gateway", by: Principal, seen: Observation) -> list[str]:
    """How those who could approve a held call name themselves at the command line."""
    if seen.approval is None:
        return []
    asked = next((a for a in await gateway.approvals(by) if a.id == seen.approval.id), None)
    options: list[str] = []
    for role, count in (asked.missing if asked else {}).items():
        if role == "user":  # their own consent
            options.append(f" --as {by.user}" if by.user != gateway.identity.os_user else "")
            continue
        others = sorted(gateway.identity.holders(by.tenant, role) - {by.user})
        options += [f" --as {name}" for name in [*others, *["NAME"] * count][:count]]
    return list(dict.fromkeys(options))


def given_arguments(given: str) -> str:
    """The JSON text; the gateway reads it strictly, here only what is plainly no object is turned away."""
    try:
        if given == "-":
            given = sys.stdin.read()
        elif given.startswith("@"):
            given = Path(given[1:]).read_text(encoding="utf-8")
        if isinstance(json.loads(given), dict):
            return given
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise typer.BadParameter(f"cannot read {given[1:]!r}: {reason}", param_hint="--args") from None
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else "it is nested too deeply"
        raise typer.BadParameter(
            f"this is not JSON: {why}; quote it, as in --args '{{\"id\": 1}}'", param_hint="--args"
        ) from None
    raise typer.BadParameter("arguments are a JSON object, as in '{\"id\": 1}'", param_hint="--args")
