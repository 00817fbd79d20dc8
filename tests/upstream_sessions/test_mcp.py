"""An MCP client before the gateway, the bank behind it: does neither hear the other's name of a session?"""

from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast import Gateway
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.serving import serving
from tests.stored import url_of
from tests.upstream_sessions.bank import bank


@requirement("EXE-8", "PRO-1")
async def test_an_mcp_client_works_in_a_transaction_of_an_mcp_server(tmp_path: Path) -> None:
    async with (
        bank(tmp_path) as server,
        Gateway.open(server.configured(url_of("sqlite", tmp_path))) as gateway,
    ):
        app = build(gateway)
        headers = {"x-holdfast-user": "ada", "x-holdfast-agent": "bot"}
        async with app.state.mcp.running(), serving(app) as served, create_mcp_http_client(headers) as http:
            transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
            async with Client(transport, cache=None) as client:

                async def call(tool: str, **arguments: Any) -> Any:
                    return await client.call_tool(f"bank__{tool}", arguments)

                begun = await call("begin")
                tx = begun.structured_content["transaction"]
                assert tx.startswith("ses_")
                assert "tx-" not in begun.model_dump_json()
                entered = await call("enter", transaction=tx, account="ana", cents=500)
                assert entered.structured_content == {"account": "ana", "cents": 500, "balance": 500}
                seen = await call("balance", transaction=tx, account="ana")
                assert seen.structured_content == {"account": "ana", "balance": 500}
                assert server.accounts() == {}
                refused = await call("enter", transaction=tx, account="bob", cents=-1)
                assert refused.is_error
                assert "does not hold that much" in refused.model_dump_json()
                done = await call("commit", transaction=tx)
                assert not done.is_error
                assert server.accounts() == {"ana": 500}
                late = await call("enter", transaction=tx, account="bob", cents=1)
                assert late.is_error
                assert "was committed" in late.model_dump_json()
