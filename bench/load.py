"""How fast does an endpoint answer? Calls it for a while and prints what was seen, as one line of JSON.

A process of its own, so that nothing else shares its loop: a client written on bare sockets, one connection
per worker, the next call as soon as the last is answered. Every answer is looked at: it must be a result, no
error, and about the very item that was asked for.

It reads its orders as JSON from stdin, prints `begin` when it is warm and `end` when it stops counting.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.line import Line
from bench.speech import INFO, LEGACY, SPEECHES, filled

PATIENCE_S = 30.0


@dataclass(frozen=True)
class Orders:
    url: str
    speech: str
    """One of `SPEECHES`."""
    tool: str
    concurrency: int
    seconds: float
    warm_up: float
    prefix: str
    """Goes before every item's name, so that no two rounds ask for the same."""
    headers: dict[str, str] = field(default_factory=dict)
    keyed: bool = False
    """Whether every call names its operation."""
    shared: bool = False
    """Whether all workers share one session of the older era."""
    same: bool = False
    """Whether every call asks for the same item, as a cache wants it."""


class Worker:
    def __init__(self, orders: Orders, numbers: Any) -> None:
        self._orders, self._numbers = orders, numbers
        self._speech = SPEECHES[orders.speech]
        where = urlsplit(orders.url)
        self._host, self._port = where.hostname or "", where.port or 80
        self._path = self._speech.path or where.path
        self._line: Line | None = None
        self._head = self._heading(self._speech.headers(orders.tool))
        self._template = self._speech.template(orders.tool, keyed=orders.keyed)
        self._prefix = orders.prefix.encode()

    def _heading(self, more: dict[str, str], method: str = "POST") -> bytes:
        lines = {
            "Host": f"{self._host}:{self._port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **self._orders.headers,
            **more,
        }
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {self._path} HTTP/1.1\r\n{text}Content-Length: ".encode()

    async def open(self, session: str = "") -> str:
        """Ready to call; the session, where there is one."""
        if not self._speech.session:
            return ""
        if not session:
            session = await self._opened_session()
        version = {"MCP-Protocol-Version": LEGACY}
        self._head = self._heading({**version, "Mcp-Session-Id": session} if session else version)
        await self._ask({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return session

    async def _opened_session(self) -> str:
        number = f"open-{next(self._numbers)}"
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}
        said = await self._ask({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params})
        line = self._line
        if line is None or line.status != 200:
            raise RuntimeError(f"initialize was refused: {said[:300]!r}")
        return line.session

    async def _ask(self, message: dict[str, Any]) -> bytes:
        line = await self._connected()
        return await asyncio.wait_for(line.ask(self._head, json.dumps(message).encode()), PATIENCE_S)

    async def _connected(self) -> Line:
        if self._line is None or self._line.closed:
            loop = asyncio.get_running_loop()
            _, self._line = await loop.create_connection(Line, self._host, self._port)
        return self._line

    async def call(self) -> str | None:
        """What was wrong with the answer."""
        number = next(self._numbers)
        # as long as any other: none is part of another
        item = b"%b-%08d" % (self._prefix, 0 if self._orders.same else number)
        try:
            line = self._line
            if line is None or line.closed:
                line = await self._connected()
            said = await line.ask(self._head, filled(self._template, item, number))
        except OSError as error:
            return str(error)
        right = line.status == 200 and item in said and self._speech.right in said.replace(b": ", b":")
        if right and not _is_error(said):
            return None
        return f"status {line.status}: {said[:300].decode(errors='replace')}"

    async def close(self, session: str) -> None:
        """Ends the session too, where there is one: nobody keeps what no one will use again."""
        if session:
            self._head = self._heading({"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}, "DELETE")
            line = await self._connected()
            await asyncio.wait({line.ask(self._head, b"")}, timeout=PATIENCE_S)
        if self._line is not None:
            self._line.close()


def _is_error(said: bytes) -> bool:
    return b'"isError":true' in said or b'"isError": true' in said or b'"error":{' in said


class Load:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        numbers = count(1)
        self._workers = [Worker(orders, numbers) for _ in range(orders.concurrency)]
        self._took: list[float] = []
        self._faults: list[str] = []
        self._answered = 0
        self._cold = orders.concurrency
        self._all_warm = asyncio.Event()
        """Every worker has been answered once: the first call of a session may open much behind it."""
        self._counting = self._over = False

    async def run(self) -> dict[str, Any]:
        first, *others = self._workers
        session = await first.open()
        shared = session if self._orders.shared else ""
        sessions = [session, *await asyncio.gather(*(worker.open(shared) for worker in others))]
        running = [asyncio.create_task(self._work(worker)) for worker in self._workers]
        await asyncio.sleep(self._orders.warm_up)
        await asyncio.wait({asyncio.ensure_future(self._all_warm.wait())}, timeout=PATIENCE_S)
        self._counting, began = True, time.perf_counter()
        print("begin", flush=True)
        await asyncio.sleep(self._orders.seconds)
        self._counting, seconds = False, time.perf_counter() - began
        print("end", flush=True)
        self._over = True
        await asyncio.wait(running, timeout=PATIENCE_S)
        for worker, session in zip(self._workers, sessions, strict=True):
            await worker.close("" if self._orders.shared and worker is not first else session)
        return self._seen(seconds)

    async def _work(self, worker: Worker) -> None:
        await worker.call()
        self._cold -= 1
        if not self._cold:
            self._all_warm.set()
        while not self._over:
            start = time.perf_counter()
            fault = await worker.call()
            self._answered += fault is None
            if not self._counting:
                continue
            if fault is None:
                self._took.append(time.perf_counter() - start)
            else:
                self._faults.append(fault)

    def _seen(self, seconds: float) -> dict[str, Any]:
        took = sorted(self._took)
        found: dict[str, Any] = {"calls": len(took), "faults": len(self._faults), "seconds": seconds}
        found["answered"] = self._answered  # before, while and after it was counted
        if self._faults:
            found["fault"] = self._faults[0]
        for share in (50, 95, 99):
            at = min(len(took) - 1, len(took) * share // 100)
            found[f"p{share}_ms"] = took[at] * 1000 if took else None
        return found


if __name__ == "__main__":
    print(json.dumps(uvloop.run(Load(Orders(**json.load(sys.stdin))).run())), flush=True)
