"""How does a person at a terminal answer what waits, one question after the other?

The list follows the store: what is asked or answered elsewhere comes and goes by itself.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.cli.inbox import Inbox, Wish
from holdfast.cli.packets import framed
from holdfast.cli.screen import console, text
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

    from holdfast.gateway import Gateway

LOOK_S = 1.0
KEYS = {
    "list": "j k move   enter open   a approve   d deny   q leave",
    "packet": "j k scroll   a approve   d deny   q back",
}


def is_possible() -> bool:
    """At a terminal on both sides, of a kind that gives keys."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return True


async def answer(gateway: "Gateway", by: Principal) -> None:
    """Until they leave."""
    from rich.live import Live

    from holdfast.cli.keyboard import keyboard

    inbox, screen = Inbox(), console()
    async with keyboard() as hears:
        with Live(console=screen, screen=True, auto_refresh=False) as live:
            while True:
                inbox.take(await gateway.approvals(by))
                live.update(_Lines(screen, inbox, by.user, gateway.identity.now()), refresh=True)
                key = await hears.key(LOOK_S)
                wish = None if key is None else inbox.press(key)
                if wish is None:
                    continue
                if wish.what == "leave":
                    return
                inbox.done(await _decided(gateway, by, wish))


async def _decided(gateway: "Gateway", by: Principal, wish: Wish) -> str:
    try:
        answered = await gateway.decide(by, wish.id, wish.what == "approve")
    except HoldfastError as error:
        return f"error: {error}"
    match answered.answer:
        case Answer.PENDING:
            return f"noted  {answered.id}  still waits for {_counted(answered)}"
        case Answer.APPROVED:
            return f"approved  {answered.id}  {answered.ref.tool}"
        case _:
            return f"denied  {answered.id}  {answered.ref.tool}; its key stays denied"


class _Lines:
    """The screen, exactly as high as it is."""

    def __init__(self, screen: "Console", inbox: Inbox, user: str, now: float) -> None:
        self._screen, self._inbox, self._user, self._now = screen, inbox, user, now

    def __rich__(self) -> "Text":
        from rich.text import Text

        height = self._screen.height
        head, foot = [self._head()], [self._foot()]
        body = self._body(height - len(head) - len(foot))
        body += [Text()] * (height - len(head) - len(foot) - len(body))
        lines = [*head, *body, *foot]
        for line in lines:
            line.truncate(self._screen.width, overflow="ellipsis")
        return Text("\n", no_wrap=True, end="").join(lines)

    def _head(self) -> "Text":
        count = len(self._inbox.waiting)
        waits = "nothing waits" if not count else f"{count} {'waits' if count == 1 else 'wait'}"
        return text((f"{waits} for {self._user}", "bold"))

    def _foot(self) -> "Text":
        inbox = self._inbox
        if inbox.sure is not None:
            return text((f"{inbox.sure} as {self._user}? y/N ", "bold yellow"))
        if inbox.said:
            return text((inbox.said, "bold"))
        return text((KEYS["list" if inbox.opened is None else "packet"], "dim"))

    def _body(self, height: int) -> "list[Text]":
        inbox = self._inbox
        if inbox.opened is None:
            return list(_listed(inbox, height, self._now))
        lines = _packet_lines(self._screen, inbox.opened)
        inbox.top = max(0, min(inbox.top, len(lines) - height))
        shown = lines[inbox.top : inbox.top + height]
        if inbox.top + height < len(lines):
            shown[-1] = text((f"  more below: {len(lines) - inbox.top - height + 1} lines (j)", "bold red"))
        return shown


def _listed(inbox: Inbox, height: int, now: float) -> "Iterator[Text]":
    first = max(0, min(inbox.chosen - height // 2, len(inbox.waiting) - height))
    for place, asked in list(enumerate(inbox.waiting))[first : first + height]:
        here = place == inbox.chosen
        packet = asked.packet
        yield text(
            (" > " if here else "   ", "bold"),
            (str(packet.get("action", asked.ref.tool)), "bold" if here else ""),
            ("  by ", "dim"),
            asked.ref.principal,
            ("  needs ", "dim"),
            _counted(asked),
            ("  for another ", "dim"),
            left(asked.expires_at - now),
            (f"  {asked.id}", "dim"),
        )


def _packet_lines(screen: "Console", asked: Approval) -> "list[Text]":
    options = screen.options.update(height=None, no_wrap=False)
    return [_line(line) for line in screen.render_lines(framed(asked, screen.width), options, pad=False)]


def _line(segments: "list[Segment]") -> "Text":
    from rich.text import Text

    line = Text(no_wrap=True, end="")
    for segment in segments:
        line.append(segment.text, segment.style)
    return line


def _counted(asked: Approval) -> str:
    return ", ".join(f"{count} x {role}" for role, count in asked.missing.items()) or "nobody"


def left(seconds: float) -> str:
    """In the unit that people count in."""
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
