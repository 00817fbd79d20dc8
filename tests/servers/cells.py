"""Which cells does the tenant matrix have: what, through which door, and asked how?

Each cell asks for something by an id, as one person. The test asks it for an id of the other tenant's and for
one that nobody has, in the same words.
"""

from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.servers.tenants import Caller, Said

REST, RPC, MCP = "REST", "JSON-RPC", "MCP"
DOORS = (REST, RPC, MCP)
THINGS = ("tool", "key", "approval", "audit", "handle", "cache", "session", "catalog", "budget")

Ask = Callable[[Caller, str], Awaitable[Said]]


@dataclass(frozen=True)
class Cell:
    thing: str
    door: str
    id: str
    """Which of the north's ids is asked for."""
    what: str
    ask: Ask
    by: str = "sid"
    """Who of the south asks."""
    owner: str | None = "nora"
    """Who of the north gets another answer to the same question; None where nobody does."""

    def __str__(self) -> str:
        return f"{self.thing}, {self.door}: {self.what}"


NOT_THERE: dict[tuple[str, str], str] = {
    ("approval", RPC): "the JSON-RPC door has no methods for approvals; a token given to a call is a cell",
    ("audit", RPC): "the JSON-RPC door has no methods for the log",
    ("audit", MCP): "the MCP door has no methods for the log",
    ("handle", "results"): "results behind handles are not built yet (OBS-4); sealed texts are what there is",
    (
        "session",
        "resources",
    ): "resources and prompts come from MCP upstreams; tests/servers/mcp tells of those",
    ("budget", "listing"): "no door lists budgets; `holdfast budgets` reads its own tenant's at the terminal",
}
"""Cells that do not exist in the product, and why."""

NOTE = {"text": "hello"}


def _path(id: str) -> str:
    return quote(id, safe="")


def _get(path: str) -> Ask:
    return lambda caller, id: caller.rest("GET", path.format(_path(id)))


def _post(path: str, body: Any) -> Ask:
    return lambda caller, id: caller.rest("POST", path.format(_path(id)), body)


def _cursor(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


Arguments = Callable[[Caller], Any]


def _note(caller: Caller) -> Any:
    return NOTE


def _mail(caller: Caller) -> Any:
    return {"to": "x@example.com"}


def _topic(caller: Caller) -> Any:
    return {"topic": caller.fresh()}


def _more(caller: Caller, more: tuple[str, ...], key: str | None) -> dict[str, str]:
    return {name: caller.fresh() for name in more} | ({} if key is None else {"key": key})


def _rest(tool: str, arguments: Arguments, member: str, *more: str, key: str | None = None) -> Ask:
    """A call in which the id is one member; those named in `more` get a fresh value."""
    return lambda caller, id: caller.call(tool, arguments(caller), **{member: id}, **_more(caller, more, key))


def _rpc(tool: str, arguments: Arguments, member: str, *more: str, key: str | None = None) -> Ask:
    return lambda caller, id: caller.rpc(
        "tools.call",
        {"tool": tool, "arguments": arguments(caller), member: id, **_more(caller, more, key)},
    )


def _mcp(tool: str, arguments: Arguments, member: str, *more: str, key: str | None = None) -> Ask:
    async def ask(caller: Caller, id: str) -> Said:
        said = {member: id, **_more(caller, more, key)}
        meta = {f"holdfast/{name}": value for name, value in said.items()}
        return await caller.mcp("tools/call", {"name": tool, "arguments": arguments(caller), "_meta": meta})

    return ask


def _headed(tool: str, arguments: Arguments, header: str, *more: str) -> Ask:
    return lambda caller, id: caller.rest(
        "POST",
        "/v1/calls",
        {"tool": tool, "arguments": arguments(caller), **_more(caller, more, None)},
        {header: id},
    )


def _key_argument(caller: Caller, id: str) -> Awaitable[Said]:
    meta = {"holdfast/task": caller.fresh()}
    arguments = {**NOTE, "idempotency_key": id}
    return caller.mcp("tools/call", {"name": "house__note", "arguments": arguments, "_meta": meta})


def _named(arguments: Any, **more: Any) -> Ask:
    """An MCP call whose tool is what is asked for."""
    return lambda caller, id: caller.mcp("tools/call", {"name": id, "arguments": arguments, **more})


TOOL = (
    Cell("tool", REST, "tool", "call it", lambda c, id: c.call(id, NOTE, key="k")),
    Cell("tool", REST, "tool", "call it with wrong arguments", lambda c, id: c.call(id, {"x": 1}, key="k")),
    Cell("tool", REST, "tool", "call it without a key", lambda c, id: c.call(id, NOTE)),
    Cell("tool", REST, "tool", "call it in a step", lambda c, id: c.call(id, NOTE, task="t", step="s")),
    Cell("tool", REST, "tool", "preview it", lambda c, id: c.call(id, NOTE, key="k", preview=True)),
    Cell("tool", REST, "tool", "call a version", lambda c, id: c.call(id, NOTE, key="k", version="9.x")),
    Cell("tool", REST, "tool", "ask why not", _get("/v1/why?tool={}")),
    Cell(
        "tool",
        REST,
        "tool",
        "ask why not, with arguments",
        lambda c, id: c.rest("POST", "/v1/why", {"tool": id, "arguments": NOTE}),
    ),
    Cell(
        "tool",
        RPC,
        "tool",
        "call it",
        lambda c, id: c.rpc("tools.call", {"tool": id, "arguments": NOTE, "key": "k"}),
    ),
    Cell("tool", MCP, "mcp tool", "call it", _named(NOTE)),
    Cell(
        "tool",
        MCP,
        "mcp tool",
        "call it in the older era",
        lambda c, id: c.old_mcp("tools/call", {"name": id, "arguments": NOTE}),
    ),
    Cell("tool", MCP, "mcp tool", "call it with wrong arguments", _named({"x": 1})),
    Cell("tool", MCP, "mcp tool", "call it with a key that is none", _named(NOTE, _meta={"holdfast/key": 5})),
    Cell(
        "tool",
        MCP,
        "mcp tool",
        "call it with an argument that is no key",
        _named({**NOTE, "idempotency_key": 5}),
    ),
    Cell("tool", MCP, "mcp tool", "call it with a state that is none", _named(NOTE, requestState="x")),
    Cell(
        "tool",
        MCP,
        "mcp tool",
        "call it with a header for an argument",
        lambda c, id: c.mcp("tools/call", {"name": id, "arguments": NOTE}, {"mcp-param-text": "other"}),
    ),
)

KEY = (
    Cell("key", REST, "key", "call with it", _rest("house.note", _note, "key", "task")),
    Cell(
        "key",
        REST,
        "key header",
        "call with it as a header",
        _headed("house.note", _note, "Idempotency-Key", "task"),
    ),
    Cell("key", RPC, "key rpc", "call with it", _rpc("house.note", _note, "key", "task")),
    Cell("key", MCP, "key mcp", "call with it", _mcp("house__note", _note, "key", "task")),
    Cell("key", MCP, "key argument", "call with it as an argument", _key_argument),
    Cell("key", REST, "call", "look the call up", _get("/v1/calls/{}")),
    Cell("key", REST, "call", "look the call up as an operator", _get("/v1/calls/{}"), by="sonja"),
    Cell("key", REST, "running call", "look up what runs", _get("/v1/calls/{}"), by="sonja"),
    Cell("key", REST, "running call", "cancel what runs", _post("/v1/calls/{}/cancel", {}), by="sonja"),
    Cell("key", REST, "held call", "cancel what is held", _post("/v1/calls/{}/cancel", {}), by="sonja"),
    Cell(
        "key",
        REST,
        "unknown call",
        "settle it",
        _post("/v1/calls/{}/settle", {"outcome": "no-effect", "note": "n"}),
        by="sonja",
        owner="norman",
    ),
    Cell("key", RPC, "call", "look the call up", lambda c, id: c.rpc("calls.get", {"call_id": id})),
    Cell("key", MCP, "held call", "look the task up", lambda c, id: c.mcp("tasks/get", {"taskId": id})),
    Cell(
        "key",
        MCP,
        "held call",
        "answer the task",
        lambda c, id: c.mcp("tasks/update", {"taskId": id, "inputResponses": {}}),
    ),
    Cell(
        "key",
        MCP,
        "running call",
        "cancel the task",
        lambda c, id: c.mcp("tasks/cancel", {"taskId": id}),
        by="sonja",
    ),
)

APPROVAL = (
    Cell("approval", REST, "approval", "look it up", _get("/v1/approvals/{}")),
    Cell("approval", REST, "approval", "look it up as an operator", _get("/v1/approvals/{}"), by="sonja"),
    Cell(
        "approval",
        REST,
        "approval",
        "answer it",
        _post("/v1/approvals/{}/decision", {"decision": "deny"}),
        by="sonja",
        owner="norman",
    ),
    Cell(
        "approval",
        REST,
        "token",
        "call with its token",
        _rest("house.send", _mail, "approval_token", key="k-granted-0"),
        owner="nora",
    ),
    Cell(
        "approval",
        RPC,
        "token rpc",
        "call with its token",
        _rpc("house.send", _mail, "approval_token", key="k-granted-1"),
        owner="nora",
    ),
    Cell(
        "approval",
        MCP,
        "token mcp",
        "call with its token",
        _mcp("house__send", _mail, "approval_token", key="k-granted-2"),
        owner="nora",
    ),
)

AUDIT = (
    Cell("audit", REST, "call", "the records of a call", _get("/v1/audit?call={}"), "sonja", "norman"),
    Cell("audit", REST, "record", "the proof of a record", _get("/v1/audit/proof/{}"), "sonja", "norman"),
    Cell(
        "audit",
        REST,
        "leaf",
        "a page after it",
        lambda c, id: c.rest("GET", f"/v1/audit?limit=5&cursor={_cursor(f'0.0 {id}')}"),
        "sonja",
        None,
    ),
)

HANDLE = (
    Cell(
        "handle",
        REST,
        "plan token",
        "call by its plan",
        _rest("house.send", _mail, "plan_token", key="k-plan"),
    ),
    Cell(
        "handle", RPC, "plan token", "call by its plan", _rpc("house.send", _mail, "plan_token", key="k-plan")
    ),
    Cell(
        "handle",
        MCP,
        "plan token",
        "call by its plan",
        _mcp("house__send", _mail, "plan_token", key="k-plan"),
    ),
    Cell(
        "handle",
        MCP,
        "request state",
        "come back with it",
        lambda c, id: c.mcp("tools/call", {"name": "house__note", "arguments": NOTE, "requestState": id}),
    ),
)

CACHE = (
    Cell(
        "cache",
        REST,
        "topic",
        "read it",
        lambda c, id: c.call("house.look", {"topic": id}, session=c.fresh()),
    ),
    Cell(
        "cache",
        RPC,
        "topic rpc",
        "read it",
        lambda c, id: c.rpc(
            "tools.call", {"tool": "house.look", "arguments": {"topic": id}, "session": c.fresh()}
        ),
    ),
    Cell(
        "cache",
        MCP,
        "topic mcp",
        "read it",
        lambda c, id: c.old_mcp("tools/call", {"name": "house__look", "arguments": {"topic": id}}),
    ),
)

SESSION = (
    Cell("session", REST, "session", "call in it", _rest("house.look", _topic, "session")),
    Cell(
        "session",
        REST,
        "session",
        "call in it by a header",
        _headed("house.look", _topic, "X-Holdfast-Session"),
    ),
    Cell("session", RPC, "session", "call in it", _rpc("house.look", _topic, "session")),
    Cell("session", MCP, "mcp session", "list tools in it", lambda c, id: c.old_mcp("tools/list", {}, id)),
    Cell(
        "session",
        MCP,
        "mcp session",
        "call in it",
        lambda c, id: c.old_mcp("tools/call", {"name": "house__note", "arguments": NOTE}, id),
    ),
    Cell(
        "session",
        MCP,
        "mcp session",
        "listen to it",
        lambda c, id: c.rest("GET", "/mcp", None, {"accept": "text/event-stream", "mcp-session-id": id}),
        owner=None,
    ),
    Cell(
        "session",
        MCP,
        "mcp session",
        "end it",
        lambda c, id: c.rest("DELETE", "/mcp", None, {"mcp-session-id": id}),
    ),
)

CATALOG = (
    Cell("catalog", REST, "tool", "search for it", _get("/v1/tools?q={}")),
    Cell(
        "catalog",
        REST,
        "tool",
        "a page after it",
        lambda c, id: c.rest("GET", f"/v1/tools?cursor={_cursor(f'{id}@1.0.0')}"),
        owner=None,
    ),
    Cell("catalog", RPC, "tool", "search for it", lambda c, id: c.rpc("tools.list", {"q": id})),
    Cell(
        "catalog",
        MCP,
        "mcp tool",
        "a page after it",
        lambda c, id: c.mcp("tools/list", {"cursor": _cursor(id)}),
    ),
)

BUDGET = (
    Cell("budget", REST, "task", "call in its task", _rest("house.note", _note, "task", "key")),
    Cell("budget", RPC, "task", "call in its task", _rpc("house.note", _note, "task", "key")),
    Cell("budget", MCP, "task", "call in its task", _mcp("house__note", _note, "task", "key")),
)

CELLS = (*TOOL, *KEY, *APPROVAL, *AUDIT, *HANDLE, *CACHE, *SESSION, *CATALOG, *BUDGET)
