"""Drive MCP gateways through faults and count how often each effect really happened.

holdfast-faults list
holdfast-faults run --gateway holdfast --gateway fastmcp --json out.json
holdfast-faults run --command 'mygateway --port {port} --upstream {upstream}' --url 'http://127.0.0.1:{port}/mcp'
holdfast-faults run --url http://127.0.0.1:9000/mcp --upstream-port 9100
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from holdfast_faults import report
from holdfast_faults.adapter import Adapter
from holdfast_faults.figures import Row
from holdfast_faults.gateways import ADAPTERS
from holdfast_faults.gateways.own import commanded, served
from holdfast_faults.operation import Patience
from holdfast_faults.run import Plan, run
from holdfast_faults.scenarios import SCENARIOS


def main(arguments: Sequence[str] | None = None, more: Sequence[Adapter] = ()) -> None:
    """`more` are gateways that somebody else has prepared; they are driven unless others are named."""
    asked = _parser([*ADAPTERS, *(one.name for one in more)]).parse_args(arguments)
    if asked.verb == "list":
        print(listing())
        return
    chosen = [scenario for scenario in SCENARIOS if scenario.name in (asked.scenario or _names())]
    plan = Plan(
        scenarios=chosen,
        keys=asked.keys,
        patience=Patience(whole_s=asked.patience, unknowns=asked.unknowns),
        stop_s=asked.stop_seconds,
        upstream_port=asked.upstream_port,
    )
    adapters, homes = _adapters(asked, more), dict(_home(text) for text in asked.home)
    with tempfile.TemporaryDirectory(prefix="holdfast-faults-") as folder:
        place = asked.keep or Path(folder)
        rows = asyncio.run(_all(adapters, plan, place, homes, asked.together))
    print(f"\n{report.terminal(rows)}\n\n{report.summary(rows)}")
    if asked.markdown:
        asked.markdown.write_text(f"{report.summary(rows)}\n\n{report.markdown(rows)}\n")
    if asked.json:
        report.keep(asked.json, rows, {"keys": plan.keys, "stop_s": plan.stop_s})
    sys.exit(1 if asked.strict and _bad(rows) else 0)


def listing() -> str:
    lines = ["scenarios"]
    lines += [f"  {scenario.name:<22}{scenario.about}" for scenario in SCENARIOS]
    lines.append("gateways")
    lines += [f"  {one.name:<22}{one.about}; keys: {one.keys}" for one in ADAPTERS.values()]
    return "\n".join(lines)


async def _all(
    adapters: Sequence[Adapter], plan: Plan, place: Path, homes: dict[str, Path], together: int
) -> list[Row]:
    me = asyncio.current_task()
    assert me is not None
    # Told to end, it ends what it started: a stopped gateway would stay for ever.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    room = asyncio.Semaphore(together)

    async def one(adapter: Adapter) -> list[Row]:
        async with room:
            home = homes.get(adapter.name)
            return await run(adapter, plan, place / adapter.name, home=home, tell=_tell)

    return [row for rows in await asyncio.gather(*map(one, adapters)) for row in rows]


def _tell(row: Row) -> None:
    print(report.line(row), file=sys.stderr, flush=True)


def _bad(rows: Sequence[Row]) -> bool:
    return any(row.applies and (row.figures is None or row.figures.wrong) for row in rows)


def _adapters(asked: argparse.Namespace, more: Sequence[Adapter]) -> list[Adapter]:
    known = {**ADAPTERS, **{one.name: one for one in more}}
    headers = dict(_header(text) for text in asked.header)
    own = []
    if asked.command:
        own.append(commanded(asked.name, asked.command, asked.url, headers))
    elif asked.url:
        own.append(served(asked.name, asked.url, headers))
    names = asked.gateway or ([] if own else list(known))
    return [*own, *(known[name] for name in names)]


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()


def _home(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    return name, Path(folder).absolute()


def _names() -> list[str]:
    return [scenario.name for scenario in SCENARIOS]


def _parser(gateways: Sequence[str]) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="holdfast-faults", description=__doc__, formatter_class=formatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="what is done, and to which gateways")
    told = verbs.add_parser("run", help="do it, and count")
    told.add_argument("--gateway", action="append", choices=gateways, help="all when left out")
    told.add_argument("--scenario", action="append", choices=_names(), help="all when left out")
    told.add_argument("--keys", type=int, default=24, help="operations per scenario")
    told.add_argument("--json", type=Path, metavar="FILE", help="keeps every figure")
    told.add_argument("--markdown", type=Path, metavar="FILE", help="the same as tables")
    told.add_argument(
        "--strict", action="store_true", help="exit status 1 on any wrong effect or broken scenario"
    )
    told.add_argument(
        "--home", action="append", default=[], metavar="NAME=DIR", help="where one is installed"
    )
    told.add_argument("--together", type=int, default=1, help="gateways that are driven side by side")
    told.add_argument("--patience", type=float, default=60.0, help="seconds for one operation")
    told.add_argument("--unknowns", type=int, default=6, help="answers `unknown` after which it is believed")
    told.add_argument("--stop-seconds", type=float, default=17.0, help="how long a process is stopped")
    told.add_argument("--keep", type=Path, metavar="DIR", help="keeps configurations, logs and effects here")
    own = told.add_argument_group("a gateway of your own")
    own.add_argument("--name", default="own", help="what it is called in the report")
    own.add_argument("--url", help="its streamable HTTP endpoint")
    own.add_argument(
        "--command", help="starts it; {port} {upstream} {upstream_command} {folder} are filled in"
    )
    own.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="sent with requests")
    own.add_argument("--upstream-port", type=int, default=0, help="where the kit's upstream listens")
    return parser
