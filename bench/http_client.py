"""What does one call to an MCP server over HTTP cost here, beside the same post by aiohttp?

    python -m bench.http_client              CPU of this process, microseconds per call, at concurrency 32

The server runs in another process. Rounds go in turn; of several the least counts.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

import aiohttp
import orjson
import uvloop

from bench.gateways import running_upstream
from holdfast.model.contract import Contract
from holdfast.model.egress.rules import Rules
from holdfast.model.tool import Tool
from holdfast.ports import Attempt
from holdfast.upstreams.http.address import address
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.head import head, request
from holdfast.upstreams.http.pool import Pool
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream

CALLS, CONCURRENCY, ROUNDS = 3000, 32, 7
Call = Callable[[], Awaitable[object]]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "holdfast", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = {"name": "read", "arguments": {"item": "x"}, "_meta": META}
BODY = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS})
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "read",
}


async def cost_us(call: Call) -> float:
    """CPU of one call, while `CONCURRENCY` of them are under way."""

    async def some() -> None:
        for _ in range(CALLS // CONCURRENCY):
            await call()

    gc.collect()
    before = time.process_time()
    await asyncio.gather(*(some() for _ in range(CONCURRENCY)))
    return (time.process_time() - before) / CALLS * 1e6


def attempt() -> Attempt:
    contract = Contract.model_validate(
        {
            "identity": {"namespace": "bench", "name": "read", "version": "1.0.0"},
            "affordance": {"description": "a tool", "input_schema": {"type": "object"}},
            "transactional": {"effect": "READ_ONLY"},
        }
    )
    return Attempt(
        tool=Tool.compile(contract),
        arguments={"item": "x"},
        key="k-1",
        tenant="bench",
        call_id="c-1",
        trace_id="0" * 32,
        deadline_s=10.0,
        number=1,
        principal="agent",
    )


async def measured(url: str) -> dict[str, float]:
    there, one = address(url), attempt()
    begun, pool = head("POST", there, HEADERS), Pool(there, Guard(Rules(written=(url,))))
    upstream = McpUpstream("bench", HttpTarget(url))
    upstream.start()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def by_aiohttp() -> object:
            async with session.post(url, data=BODY, headers=HEADERS) as response:
                return orjson.loads(await response.read())

        async def by_pool() -> object:
            return orjson.loads((await pool.request(request(begun, BODY))).whole or b"")

        ways: dict[str, Call] = {
            "aiohttp, post and orjson": by_aiohttp,
            "pool, post and orjson": by_pool,
            "upstream, invoke": lambda: upstream.invoke(one),
        }
        await upstream.ready(10.0)
        least = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, call in ways.items():
                least[name] = min(least[name], await cost_us(call))
    await pool.close()
    await upstream.close()
    return least


def main() -> None:
    with running_upstream() as (url, _):
        for name, us in uvloop.run(measured(url)).items():
            print(f"{name:28}{us:7.1f} us")


if __name__ == "__main__":
    main()
