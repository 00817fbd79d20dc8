"""Which pages are there, and what in them can be run?

Every fenced block says by its language what becomes of it:

    ```python            executed, each block a program of its own
    ```python tools.py   written to that file, as is any language followed by a file name
    ```console           `$ ` starts a command, what follows is its output (see `shell`)
    ```json              must be JSON
    ```text              shown only: pictures and shapes, never something to type

`<!-- starts with: examples/demo -->` gives the page a copy of that folder to work in.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
GENERATED = {"docs/reference/codes.md", "docs/reference/figures.md", "docs/reference/telemetry.md"}
SHOWN = "text"
RUN = {"python", "console", "json"}

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_START = re.compile(r"<!-- starts with: (\S+) -->")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    file: str | None
    body: str
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def blocks(self) -> list[Block]:
        text = self.text
        return [_block(found, text) for found in _FENCE.finditer(text)]

    @property
    def start(self) -> Path | None:
        found = _START.search(self.text)
        return None if found is None else ROOT / found[1]

    @property
    def links(self) -> list[str]:
        return [found["target"] for found in _LINK.finditer(_FENCE.sub("", self.text))]


def pages() -> list[Page]:
    """What people read: the pages in the root and everything under docs/."""
    return [Page(path) for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]]


def executed() -> list[Page]:
    """The pages of this part of the docs that have something to run."""
    own = ("README.md", "ARCHITECTURE.md", "docs/index.md")
    folders = ("docs/tutorial/", "docs/how-to/", "docs/explanation/", "docs/decisions/")
    return [
        page
        for page in pages()
        if (page.name in own or page.name.startswith(folders))
        and any(block.language in RUN or block.file for block in page.blocks)
    ]


def _block(found: re.Match[str], text: str) -> Block:
    language, _, file = found["info"].strip().partition(" ")
    return Block(language, file.strip() or None, found["body"], text.count("\n", 0, found.start()) + 1)
