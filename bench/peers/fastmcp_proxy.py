"""A FastMCP proxy in front of one server: `python fastmcp_proxy.py URL PORT WAY`, in FastMCP's environment.

`fresh` is what `create_proxy(url)` does by itself; `connected` shares one connected client among all calls.
"""

import asyncio
import sys

from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy


async def serve(proxy: FastMCP, port: int) -> None:
    await proxy.run_http_async(
        transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error"
    )


async def main(url: str, port: int, way: str) -> None:
    if way == "fresh":
        await serve(create_proxy(url, name="bench"), port)
        return
    async with Client(url) as client:
        await serve(create_proxy(client, name="bench"), port)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
