"""How does a test talk to an MCP server, with nothing of the answers lost?"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from pydantic import BaseModel

ANSWERING_S = 60
Json = dict[str, Any]


class Raw(BaseModel, extra="allow"):
    """A result with every member it came with."""


class Talk:
    """One client's connection, and what its user answers when asked."""

    def __init__(self, client: Client, user: "User") -> None:
        self._client = client
        self._user = user

    @property
    def version(self) -> str:
        return self._client.protocol_version

    async def tools(self) -> list[Json]:
        found: list[Json] = []
        cursor = None
        while True:
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await self._send(request)
            found += page["tools"]
            if (cursor := page.get("nextCursor")) is None:
                return found

    async def call(self, tool: str, arguments: Json, meta: Mapping[str, Any] | None = None) -> Json:
        """The result as it came; what the tool asks in between is answered."""
        answers: Json = {}
        while True:
            params = types.CallToolRequestParams.model_validate(
                {"name": tool, "arguments": arguments, "_meta": dict(meta or {}), **answers}
            )
            result = await self._send(types.CallToolRequest(params=params))
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests", {}).items()
            answers = {"inputResponses": {key: self._user.answer(question) for key, question in asked}}
            if "requestState" in result:
                answers["requestState"] = result["requestState"]

    async def _send(self, request: types.ClientRequest) -> Json:
        session = self._client.session
        result = await session.send_request(request, Raw, request_read_timeout_seconds=ANSWERING_S)
        return result.model_extra or {}


class User:
    """Answers every question the same way, however it is put."""

    def __init__(self, root: Path) -> None:
        self.root = root.as_uri()

    def answer(self, question: Mapping[str, Any]) -> Json:
        params = question.get("params") or {}
        match question["method"]:
            case "elicitation/create":
                is_form = params.get("mode", "form") == "form"
                return {"action": "accept", **({"content": {"name": "Ana"}} if is_form else {})}
            case "sampling/createMessage":
                words = {"type": "text", "text": "four"}
                return {"role": "assistant", "content": words, "model": "none", "stopReason": "endTurn"}
            case _:
                return {"roots": [{"uri": self.root, "name": "files"}]}

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        asked = {"method": "elicitation/create", "params": {"mode": params.mode}}
        return types.ElicitResult.model_validate(self.answer(asked))

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        return types.CreateMessageResult.model_validate(self.answer({"method": "sampling/createMessage"}))

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return types.ListRootsResult.model_validate(self.answer({"method": "roots/list"}))


@asynccontextmanager
async def talking(target: str | StdioServerParameters, folder: Path) -> AsyncIterator[Talk]:
    user = User(folder / "files")
    async with Client(
        target,
        mode="auto",
        cache=None,
        elicitation_callback=user.elicit,
        sampling_callback=user.sample,
        list_roots_callback=user.roots,
    ) as client:
        yield Talk(client, user)
