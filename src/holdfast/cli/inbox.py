"""What is on the screen of somebody who answers questions, and what does a key do?

Nothing here reads or writes: keys and questions go in, a wish comes out. A yes is only ever taken for the
question whose packet is on the screen; one that was answered elsewhere leaves the screen first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.model.approval import Approval

LINES_A_PAGE = 10


@dataclass(frozen=True, slots=True)
class Wish:
    """What the person wants done."""

    what: Literal["approve", "deny", "leave"]
    id: str = ""


LEAVE = Wish("leave")


class Inbox:
    def __init__(self) -> None:
        self.waiting: tuple[Approval, ...] = ()
        self.chosen = 0
        self.opened: Approval | None = None
        """The question whose packet is shown."""
        self.sure: Literal["approve", "deny"] | None = None
        """What they are asked to confirm."""
        self.top = 0
        """The first line of the packet that is shown."""
        self.said = ""

    def take(self, waiting: Sequence[Approval]) -> None:
        """What waits now; whatever was chosen stays chosen while it is there."""
        before = self.here
        self.waiting = tuple(waiting)
        places = {asked.id: place for place, asked in enumerate(self.waiting)}
        if before is not None and before.id in places:
            self.chosen = places[before.id]
        self.chosen = max(0, min(self.chosen, len(self.waiting) - 1))
        if self.opened is not None:
            if self.opened.id in places:
                self.opened = self.waiting[places[self.opened.id]]
            else:
                self.said = f"{self.opened.id} waits no more: it was answered elsewhere, or its time is over"
                self._close()

    @property
    def here(self) -> Approval | None:
        return self.waiting[self.chosen] if self.waiting else None

    def press(self, key: str) -> Wish | None:
        self.said = ""
        if key == "end":
            return LEAVE
        if self.sure is not None:
            return self._confirm(key)
        if self.opened is not None:
            return self._in_packet(key)
        return self._in_list(key)

    def done(self, said: str) -> None:
        """The wish was seen to."""
        self._close()
        self.said = said

    def _in_list(self, key: str) -> Wish | None:
        match key:
            case "j" | "k":
                step = 1 if key == "j" else -1
                self.chosen = max(0, min(self.chosen + step, len(self.waiting) - 1))
            case "enter":
                self._open()
            case "a" | "d":
                self._open()
                self._ask(key)
            case "q":
                return LEAVE
        return None

    def _in_packet(self, key: str) -> Wish | None:
        match key:
            case "j" | "k":
                self.top = max(0, self.top + (1 if key == "j" else -1))
            case "page down" | "page up":
                self.top = max(0, self.top + (LINES_A_PAGE if key == "page down" else -LINES_A_PAGE))
            case "a" | "d":
                self._ask(key)
            case "q" | "escape":
                self._close()
        return None

    def _confirm(self, key: str) -> Wish | None:
        if key in ("j", "k", "page down", "page up"):  # reading on is no answer
            return self._in_packet(key)
        sure, self.sure = self.sure, None
        if key == "y" and self.opened is not None and sure is not None:
            return Wish(sure, self.opened.id)
        self.said = "nothing was decided; it still waits"
        return None

    def _open(self) -> None:
        self.opened, self.top = self.here, 0

    def _ask(self, key: str) -> None:
        if self.opened is not None:
            self.sure = "approve" if key == "a" else "deny"

    def _close(self) -> None:
        self.opened = self.sure = None
        self.top = 0
