"""Who asks, who answers, and what does a page hold? For the tests of the inbox."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from holdfast import Gateway, Observation
from holdfast.servers.app import build
from tests.approvals.opening import House
from tests.console.visitor import Visitor, text
from tests.servers.asgi import Answer

__all__ = ["Page", "Visitor", "answered", "asked", "field", "kept", "seen", "signed_in", "text"]

SEEN = re.compile(r'name="seen" value="([0-9a-f]{32})"')
PICK = re.compile(r'name="pick" value="(apr_[0-9a-f]+):([0-9a-f]{32})"')


def kept(folder: Path) -> House:
    """A store on disk, which several gateways may open one after the other."""
    return House("sqlite", folder)


async def signed_in(gateway: Gateway, *people: str) -> list[Visitor]:
    """One browser each."""
    app = build(gateway)
    visitors = [Visitor(app) for _ in people]
    for visitor, name in zip(visitors, people, strict=True):
        await visitor.sign_in(name)
    return visitors


def asked(held: Observation) -> str:
    assert held.approval is not None, held
    return held.approval.id


async def seen(visitor: Visitor, approval_id: str) -> str:
    """Open a question and take what its form carries; empty where it has no form."""
    page = await visitor.get(f"/approvals/{approval_id}")
    found = SEEN.search(page.body.decode())
    return found[1] if found else ""


async def answered(visitor: Visitor, approval_id: str, decision: str = "approve", **fields: str) -> Answer:
    """Read a question as a person does, and answer it."""
    said = {"decision": decision, "seen": await seen(visitor, approval_id), "aware": "yes", **fields}
    return await visitor.post(f"/approvals/{approval_id}/decision", said)


def field(page: Answer, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in pattern.finditer(page.body.decode())]


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and nothing that only looks like one."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.feed(answer.body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.elements if name == tag)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def foreign(self) -> list[str]:
        """Everything that leads away from here, runs, or is drawn without being ours."""
        found = [
            f"{tag} {name}={value}"
            for tag, attributes in self.elements
            for name, value in attributes.items()
            if (name in ("href", "src", "action", "formaction") and not value.startswith(("/", "#")))
            or value.startswith("//")
            or name.startswith("on")
            or name == "style"
        ]
        return found + [tag for tag in self.tags if tag not in OURS]


OURS = frozenset(
    "html head meta title link script body a header img nav ul ol li span div button form input label select"
    " option textarea main h1 h2 h3 p section dialog dl dt dd kbd table caption thead tbody tr th td q"
    " time figure figcaption pre code strong br details summary del ins aside output svg rect article".split()
)
"""Elements that our templates use."""
