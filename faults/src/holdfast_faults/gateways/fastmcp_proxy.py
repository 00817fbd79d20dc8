"""A FastMCP proxy in front of one server: `python -P fastmcp_proxy.py URL PORT WAY`, run where FastMCP is.

`fresh` is what `create_proxy(url)` does by itself; `connected` shares one connected client among all calls
and answers in JSON, the fastest of the ways that were tried.
"""

import asyncio
import sys
from typing import Any

from fastmcp import Client
from fastmcp.server import create_proxy


async def main(url: str, port: int, way: str) -> None:
    common: dict[str, Any] = {"transport": "http", "host": "127.0.0.1", "port": port}
    quiet: dict[str, Any] = {"show_banner": False, "log_level": "error"}
    if way == "fresh":
        await create_proxy(url, name="proxy").run_http_async(**common, **quiet)
        return
    async with Client(url) as client:
        await create_proxy(client, name="proxy").run_http_async(**common, **quiet, json_response=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
