"""Is whatever an agent or a tool writes shown as text, in bounds, and marked as theirs?"""

from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Floor, Undo, tool
from tests.approvals.bank import ANA, config
from tests.approvals.opening import House
from tests.console.asking import Page, asked, signed_in, text
from tests.requirements import requirement
from tests.servers.asgi import Answer

MOST_BYTES = 400_000
"""Of a page, whatever is in the packet."""
EVIL = "https://evil.example/approve"
SCRIPT = f"""</pre></dd></q><script>fetch("{EVIL}")</script><img src=x onerror=alert(1)>"""
LINK = f"""<a href="{EVIL}">Approve</a> <form action="{EVIL}"><button>Approve</button></form>"""
ATTRIBUTE = """" onmouseover="alert(1)" style="position:fixed" x=\""""
BIDI = "pay \u202eLIAM\u202c to \u200bmira\ufeff\u2066"


def deep(levels: int) -> Any:
    inner: Any = "bottom"
    for _ in range(levels):
        inner = {"in": inner}
    return inner


ARGUMENTS: dict[str, dict[str, Any]] = {
    "script": {"to": SCRIPT, "data": {SCRIPT: SCRIPT}},
    "fake approve link": {"to": LINK, "data": {"html": LINK, LINK: 1}},
    "attribute": {"to": ATTRIBUTE, "data": {ATTRIBUTE: ATTRIBUTE}},
    "template": {"to": "{{ 7*7 }}{% raw %}", "data": {"{{ config }}": "${7*7}"}},
    "bidi and zero width": {"to": BIDI, "data": {BIDI: BIDI}},
    "100 kB": {"to": "x", "data": {"text": "<b>A</b>" * 12_500}},
    "a key of 20 kB": {"to": "x", "data": {"<i>" * 7000: 1}},
    "nesting": {"to": "x", "data": deep(25)},
    "10,000 keys": {"to": "x", "data": {f"<u>{n}": n for n in range(10_000)}},
    "a long list": {"to": "x", "data": {"list": ["<s>"] * 9_000}},
}

LIMITS = {"body_bytes": 5_000_000, "depth": 60, "string": 500_000, "keys": 50_000}


class Open:
    """A tool that takes anything, and a state that may say anything."""

    def __init__(self, state: Any = None) -> None:
        self.state = {"fine": True} if state is None else state

    @tool(effect=Effect.READ_ONLY)
    async def look(self, to: str) -> dict[str, Any]:
        """Look at it."""
        return dict(self.state)

    @tool(
        effect=Effect.MEDIUM_RISK_WRITE,
        undo=Undo.SEMANTIC,
        floor=Floor.OPERATOR,
        idempotency={},
        manifest=[("things", "CREATE", "one")],
        side_effects="something is sent",
        state={"read": {"tool": "look", "arguments": {"to": "=args.to"}}},
        preview={"read": {"tool": "look", "arguments": {"to": "=args.to"}}},
    )
    async def act(self, to: str, data: dict[str, Any]) -> str:
        """Do it."""
        return to


def harmless(answer: Answer) -> None:
    """Nothing on the page came from what was written, but text; and not too much of it."""
    page = Page(answer)
    assert answer.status == 200, text(answer)
    assert page.foreign() == []
    assert EVIL not in [value for _, attributes in page.elements for value in attributes.values()]
    assert all(one.get("src", "").startswith("/assets/") for one in page.all("script"))
    assert all(one.get("src", "").startswith("/assets/") for one in page.all("img"))
    assert len(answer.body) < MOST_BYTES


@requirement("APR-1", "PPL-2")
@pytest.mark.parametrize("kind", ARGUMENTS)
async def test_what_an_agent_writes_is_text_on_every_page(kind: str) -> None:
    house, said = House("memory", Path()), ARGUMENTS[kind]
    async with house.gateway(Open(), config={**config(), "limits": LIMITS}) as gateway:
        held = await gateway.call("test.act", said, key="k", principal=ANA, task=SCRIPT, step=LINK)
        id = asked(held)
        [ben] = await signed_in(gateway, "ben")
        page, inbox, search = [await ben.get(path) for path in (f"/approvals/{id}", "/", "/?q=%3Cscript%3E")]
        denied = await ben.post(
            "/approvals/several", {"decision": "deny", "pick": f"{id}:{'0' * 32}", "note": SCRIPT}
        )
    for one in (page, inbox, search, denied):
        harmless(one)
    assert "written by the agent" in text(page)


@requirement("APR-1", "PPL-2")
async def test_hidden_and_shortened_parts_are_called_out() -> None:
    house = House("memory", Path())
    said = {"to": BIDI, "data": {"text": "y" * 5000}}
    async with house.gateway(Open(), config={**config(), "limits": LIMITS}) as gateway:
        held = await gateway.call("test.act", said, key="k", principal=ANA)
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get(f"/approvals/{asked(held)}")
        inbox = await ben.get("/")
    shown = text(page)
    assert "Hidden characters were found in /arguments/to" in shown
    assert "Not everything is shown: /arguments/data/text" in shown
    assert "⟦U+202E⟧LIAM⟦U+202C⟧" in shown
    for unseen in "\u202e\u200b\ufeff\u2066":
        assert unseen not in page.body.decode() + inbox.body.decode()


STATES: dict[str, Any] = {
    "script": {"owner": SCRIPT, SCRIPT: LINK},
    "nesting": {"deep": deep(150)},
    "10,000 keys": {f"<u>{n}": "<b>" for n in range(10_000)},
    "100 kB": {"text": "<b>A</b>\n" * 12_500},
    "bidi": {"owner": BIDI},
}


@requirement("APR-1", "PPL-2")
@pytest.mark.parametrize("kind", STATES)
async def test_what_a_tool_reads_for_the_packet_is_text_too(kind: str) -> None:
    house = House("memory", Path())
    async with house.gateway(Open(STATES[kind]), config={**config(), "limits": LIMITS}) as gateway:
        held = await gateway.call("test.act", {"to": "x", "data": {}}, key="k", principal=ANA)
        [ben] = await signed_in(gateway, "ben")
        page, inbox = await ben.get(f"/approvals/{asked(held)}"), await ben.get("/")
    harmless(page)
    harmless(inbox)
    assert "\u202e" not in page.body.decode()
