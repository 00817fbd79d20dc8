"""How is something shown to a person, and how to a program?

Whatever an agent or a tool wrote is shown with its control characters visible: text must
not be able to move the cursor of the person who decides about it.
"""

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Kinds of characters that are not seen but do something: control, direction, line ends."""

PIPED_WIDTH = 240
"""Wide enough that one thing stays on one line for grep."""


def visible(text: str) -> str:
    return "".join(_shown(character) for character in text)


def console(error: bool = False) -> "Console":
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(stderr=error, highlight=False, soft_wrap=True, width=width)


def show(*parts: "RenderableType") -> None:
    console().print(*parts, sep="\n")


def show_json(value: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def fail(message: str) -> None:
    """To stderr, in plain words."""
    first, *rest = message.splitlines() or [""]
    screen = console(error=True)
    screen.print(text(("error: ", "bold red"), first))
    for line in rest:
        screen.print(text(line))


def text(*parts: str | tuple[str, str]) -> "Text":
    """Plain and styled pieces, none of them read as markup."""
    from rich.text import Text

    built = Text()
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        built.append(visible(words), style)
    return built


def data(value: Any) -> "RenderableType":
    """JSON, coloured on a terminal; its own escapes keep control characters visible."""
    import orjson
    from rich.json import JSON

    return JSON(orjson.dumps(value).decode(), indent=2, ensure_ascii=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[str | tuple[str, str]]]) -> "RenderableType":
    from rich.table import Table

    built = Table(
        box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), show_header=any(headings)
    )
    for number, heading in enumerate(headings):  # by the first one a row is named, and that gets pasted
        built.add_column(heading, overflow="fold", no_wrap=number == 0)
    for row in rows:
        built.add_row(*(text(cell) for cell in row))
    return built


def _shown(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape").decode()
