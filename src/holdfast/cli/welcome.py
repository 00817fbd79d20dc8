"""What does a server say when it starts?"""

import shlex
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import orjson

from holdfast.cli.doctor import EVERYTHING
from holdfast.cli.invoked import command, with_config
from holdfast.cli.screen import show, table, text
from holdfast.model.vocabulary import Floor

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.contract import Contract

POLICIES = {
    "starter": (
        "the starter policy: reads pass, writes ask as their contract says; for development only",
        "bold yellow",
    ),
    "none": ("none: every call is refused", "bold red"),
}


AUTH = {
    "local": "local: this machine only",
    "api_key": "API keys",
    "jwt": "tokens of the issuer, or API keys",
}


async def welcome(gateway: "Gateway", address: str) -> None:
    config = gateway.config
    contracts = [entry.tool.contract for entry in gateway.tools(EVERYTHING)]
    state = await gateway.ready()
    version = str(state.get("policy", "none"))
    show(text(("holdfast", "bold"), " is listening on ", (address, "bold green")))
    show(
        table(
            ("", ""),
            [
                ("  store", config.store_shown if config.on_postgres else str(_near(config.store_path))),
                ("  environment", config.environment.value),
                ("  auth", AUTH[config.auth.mode]),
                ("  policy", POLICIES.get(version.partition("/")[0], (version, ""))),
                (
                    "  tools",
                    f"{len(contracts)} from {', '.join(config.upstreams) or 'no upstream'}",
                ),
            ],
        )
    )
    for note in gateway.policies.notes()[version.startswith(tuple(POLICIES)) :]:  # those are said above
        show(text(("  attention   ", "bold yellow"), note))
    if config.console.enabled:
        show(text(("  console     ", ""), f" open {config.base_url or address} in a browser"))
    show(
        text(
            ("  mcp         ", ""),
            f" {address}/mcp, or '{command()} stdio{with_config(Path(config.source))}'",
        )
    )
    show(text("try, in another terminal"))
    for why, line in _tries(contracts, Path(config.source)):
        show(text((f"  # {why}", "dim")), text((f"  {line}", "cyan")))


def _tries(contracts: "list[Contract]", config: Path) -> list[tuple[str, str]]:
    """Three commands that work here, from the examples the contracts give."""
    shown = [c for c in contracts if c.affordance.examples]
    kinds = [
        ("read something", [c for c in shown if not c.effect.writes]),
        (
            "write something; run it twice, and it happens once",
            [c for c in shown if c.effect.writes and not _asks(c)],
        ),
        ("ask for what a person must approve", [c for c in shown if _asks(c)]),
    ]
    calls = [(why, _call(found[0], config)) for why, found in kinds if found]
    look = [
        ("see what there is", f"{command()} tools{with_config(config)}"),
        ("see whether all is well", f"{command()} doctor{with_config(config)}"),
        ("see what waits for a person", f"{command()} approvals{with_config(config)}"),
    ]
    return [*look[: 3 - len(calls)], *calls]


def _asks(contract: "Contract") -> bool:
    return contract.security.approval_floor is not Floor.NONE


def _call(contract: "Contract", config: Path) -> str:
    arguments = orjson.dumps(contract.affordance.examples[0].arguments).decode()
    key = f" --key try-{token_hex(2)}" if contract.effect.needs_key else ""
    return f"{command()} call {contract.tool} --args {shlex.quote(arguments)}{key}{with_config(config)}"


def _near(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
