"""How long does the server take for a page of the console when a lot has happened? `python -m bench.console`

    python -m bench.console 20000           with another number of recorded calls
    python -m bench.console --postgres      on PostgreSQL instead of SQLite
    python -m bench.console --store sqlite:///big.db      in a store that is kept; filled when it is empty

Every page is asked for as a browser does, by somebody who is signed in, without the network in between: the
lists with each filter, with two, and far back; the plots; one call; one approval. Beside the recorded calls
there are questions that wait and outcomes that nobody knows. The aim is for the slowest answer of each page,
its first one among them, when nothing is warm. Where others keep the machine busy it is judged by CPU time,
and that is said: how long a page waited for them says nothing about the page.
"""

import asyncio
import logging
import os
import statistics
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvloop

from bench.console_data import fill
from bench.kept import keep
from bench.processes import others, snapshot
from bench.ring import DISTURBED
from bench.tools import TOOLS as PLAIN
from holdfast import Effect, Floor, Gateway, Principal, Undo, tool
from holdfast.model.observation import Status
from holdfast.model.view import Wanted
from holdfast.servers.app import build
from holdfast.servers.console.words import NAVIGATION

AIM_MS, CALLS = 200.0, 100_000
TIMES = 20
DEEP = (0.5, 0.99)
"""How far back in the list, as shares of all calls."""
HOST = "127.0.0.1:8080"
OPEN = 200
"""Questions that wait, and outcomes nobody knows."""
WRITES: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.SEMANTIC,
    "manifest": [("items", "UPDATE", "one item")],
    "idempotency": "none",
}


@tool(**WRITES, floor=Floor.OPERATOR)
async def ask(item: str) -> dict[str, str]:
    """Change an item, once somebody agreed.

    Args:
        item: its number
    """
    return {"item": item}


@tool(**WRITES)
async def lose(item: str) -> dict[str, str]:
    """Change an item, and hear of every other one only.

    Args:
        item: its number
    """
    if int(item) % 2:
        return {"item": item}
    raise ConnectionError("hung up")


TOOLS = [*PLAIN, ask, lose]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Browser:
    """Asks the application directly, with a cookie."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._cookies: dict[str, str] = {}

    async def get(self, path: str) -> Answer:
        return await self._ask("GET", path, b"")

    async def post(self, path: str, **fields: str) -> Answer:
        return await self._ask("POST", path, urlencode(fields).encode())

    async def _ask(self, method: str, address: str, body: bytes) -> Answer:
        parts = urlsplit(address)
        headers = {
            "host": HOST,
            "origin": f"http://{HOST}",
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(body)),
            "cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items()),
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8080),
            "extensions": {},
        }
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        await self._app(scope, receive, send)
        lines = [(name.decode().lower(), value.decode()) for name, value in said[0]["headers"]]
        for name, value in lines:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self._cookies[key] = rest.partition(";")[0]
        text = b"".join(message.get("body", b"") for message in said[1:])
        return Answer(said[0]["status"], lines, text)


@contextmanager
def _store(folder: Path, postgres: bool) -> Iterator[str]:
    if not postgres:
        yield f"sqlite:///{folder}/holdfast.db"
        return
    from tests.postgres import Postgres

    with Postgres() as server, chdir(folder):  # what belongs to a store elsewhere is kept where one is
        yield server.url


@asynccontextmanager
async def _opened(store: str) -> AsyncIterator[Gateway]:
    config = {
        "store": store,
        "upstreams": {"b": {"functions": "bench.console:TOOLS"}},
        "limits": {"ingress": {"rate": 1e9, "burst": 1e9}},
        "telemetry": {"level": "error"},
        "auth": {"mode": "local", "people": {"ana": {"roles": ["operator"], "scopes": ["**"]}}},
    }
    async with Gateway.open(config) as gateway:
        yield gateway


async def _open_ends(gateway: Gateway) -> None:
    for number in range(OPEN):
        who = Principal(user=f"u{number}", agent="bench", scopes=frozenset({"**"}), trust=60)
        for name, item, ends in (
            ("ask", number, Status.HELD),
            ("lose", 2 * number, Status.UNKNOWN),
            ("lose", 2 * number + 1, Status.DONE),  # or the breaker would open
        ):
            said = {"item": str(item)}
            seen = await gateway.call(f"b.{name}", said, principal=who, key=f"k-{name}-{item}")
            if seen.status is not ends:
                raise SystemExit(f"b.{name} ended {seen.status.value}: {seen.message}")


async def pages(gateway: Gateway, calls: int) -> dict[str, str]:
    """Every address that is timed, by what it is called in the table."""
    ana = gateway.identity.at_terminal("ana")
    rows = (await gateway.views.calls(ana, Wanted(limit=1))).rows
    newest = rows[0]
    named = {place.name: place.path for place in NAVIGATION}
    filters: dict[str, dict[str, str]] = {
        "tool": {"tool": newest.tool},
        "upstream": {"upstream": newest.upstream},
        "caller": {"caller": newest.caller},
        "agent": {"agent": newest.agent},
        "status, common": {"status": "done"},
        "status, rare": {"status": "unknown"},
        "status, none": {"status": "preview"},
        "code": {"code": "OUTCOME_UNKNOWN"},
        "effect": {"effect": newest.effect},
        "task": {"task": newest.task or "none"},
        "alarmed": {"alarmed": "1"},
        "until": {"until": "2001-01-01T00:00"},
        "tool and status": {"tool": newest.tool, "status": "failed"},
        "caller and code": {"caller": newest.caller, "code": "OUTCOME_UNKNOWN"},
    }
    named |= {f"Live, by {what}": f"/live?{urlencode(said)}" for what, said in filters.items()}
    for share in DEEP:
        before = await _deep(gateway, int(calls * share))
        named[f"Live, {share:.0%} back"] = f"/live?before={before}"
        named[f"Live, {share:.0%} back, by status"] = f"/live?before={before}&status=failed"
        named[f"Call, {share:.0%} back"] = f"/calls/{before}"
    named |= {f"Plot of {span}": f"/live/traffic.json?span={span}" for span in ("1h", "24h", "7d")}
    named["Call, newest"] = f"/calls/{newest.call_id}"
    named["Tool"] = "/catalog/b.look"
    named |= {
        f"Approval {number}": f"/approvals/{asked.id}"
        for number, asked in enumerate((await gateway.approvals(ana))[:1])
    }
    return named


async def _deep(gateway: Gateway, back: int) -> str:
    """The call so many before the newest, found as a person would who never stops clicking."""
    ana, before = gateway.identity.at_terminal("ana"), None
    while back > 0:
        page = await gateway.views.calls(ana, Wanted(limit=min(back, 200), before=before))
        if not page.rows:
            break
        back -= len(page.rows)
        before = page.rows[-1].call_id
    assert before is not None
    return before


async def timed(browser: Browser, path: str) -> dict[str, float]:
    took: list[float] = []
    worked: list[float] = []
    for _ in range(TIMES):
        started, before = time.perf_counter(), time.process_time()
        answer = await browser.get(path)
        took.append((time.perf_counter() - started) * 1000)
        worked.append((time.process_time() - before) * 1000)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.body[:200]!r}")
        await asyncio.sleep(0)
    return {
        "first_ms": took[0],
        "p50_ms": statistics.median(took),
        "p95_ms": statistics.quantiles(took, n=20)[-1],
        "max_ms": max(took),
        "cpu_p50_ms": statistics.median(worked),
        "cpu_max_ms": max(worked),
        "kb": len(answer.body) / 1000,
    }


async def console(calls: int, store: str) -> tuple[dict[str, Mapping[str, float]], float]:
    """What was found of every page, and the share of a core that others took meanwhile."""
    async with _opened(store) as gateway:
        if not (await gateway.views.calls(gateway.identity.at_terminal("ana"), Wanted(limit=1))).rows:
            started = time.perf_counter()
            await fill(gateway, calls)
            await _open_ends(gateway)
            print(f"{calls:,} calls recorded in {time.perf_counter() - started:.0f} s", flush=True)
        browser = Browser(build(gateway))
        signed = await browser.post("/sign-in", person="ana", next="/")
        if signed.status != 303:
            raise SystemExit(f"could not sign in: {signed.status} {signed.body[:300]!r}")
        named = await pages(gateway, calls)
        before = snapshot()
        found, broken = await _measured(browser, named)
        if broken:
            raise SystemExit("\n".join(["these pages did not open:", *broken]))
        return found, others(before, snapshot(), {os.getpid()})


async def _measured(
    browser: Browser, named: Mapping[str, str]
) -> tuple[dict[str, Mapping[str, float]], list[str]]:
    heads = ("first", "p50", "p95", "max ms", "cpu p50", "cpu max", "kB")
    columns = ("first_ms", "p50_ms", "p95_ms", "max_ms", "cpu_p50_ms", "cpu_max_ms", "kb")
    print(f"{'':30}" + "".join(f"{head:>9}" for head in heads))
    found: dict[str, Mapping[str, float]] = {}
    broken: list[str] = []
    for name, path in named.items():
        try:
            found[name] = one = await timed(browser, path)
        except RuntimeError as error:
            broken.append(str(error))
            continue
        print(f"{name:30}" + "".join(f"{one[column]:9.1f}" for column in columns), flush=True)
    return found, broken


def main() -> None:
    logging.disable(logging.ERROR)  # of tools that hang up, as they are meant to
    asked = ArgumentParser(description="Time every page of the console.")
    asked.add_argument("calls", nargs="?", type=int, default=CALLS)
    asked.add_argument("--postgres", action="store_true")
    asked.add_argument("--store")
    said = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder, _store(Path(folder), said.postgres) as own:
        found, busy = uvloop.run(console(said.calls, said.store or own))
    engine = "postgres" if "postgres" in (said.store or own) else "sqlite"
    if said.calls >= CALLS:
        keep(
            "console" if engine == "sqlite" else f"console-{engine}",
            calls=said.calls,
            others=busy,
            pages=found,
        )
    by = "max_ms" if busy <= DISTURBED else "cpu_max_ms"
    if busy > DISTURBED:
        print(f"others took {busy:.0%} of a core meanwhile: judged by CPU time")
    slowest = max(found, key=lambda name: found[name][by])
    told = f"slowest of {len(found)} on {engine}: {slowest}, {found[slowest][by]:.0f} ms"
    if late := sorted(name for name, one in found.items() if one[by] >= AIM_MS):
        raise SystemExit(f"{told}; {AIM_MS:g} ms or more: {', '.join(late)}")
    print(f"{told}: every page answers in less than {AIM_MS:g} ms")


if __name__ == "__main__":
    main()
