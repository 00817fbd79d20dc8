"""Has this very head of a request come before?

A client says the same before every body, but for its length, and lengths are few. What was parsed once and
found plain is not parsed again: the same bytes mean the same.
"""

from typing import NamedTuple

LONGEST = 4096
"""Bytes of a head that is remembered."""
MOST = 256
"""Heads remembered; anybody can make up more of them."""


class Head(NamedTuple):
    url: bytes
    headers: list[tuple[bytes, bytes]]
    fields: dict[bytes, bytes]
    """The same, each by its name."""
    length: int


class Heads:
    """Of the requests to one server, whichever connection they come on."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """A whole request that needs no parsing, and its body."""
        end = data.find(b"\r\n\r\n", 0, LONGEST) + 4
        head = self._known.get(data[:end])
        return None if head is None or len(data) - end != head.length else (head, data[end:])

    def learn(self, data: bytes, url: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """A request that was all of `data` was parsed, and is to be answered like any other with its head."""
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(headers)
        if len(head) > LONGEST - 4 or rest != body or len(fields) != len(headers):
            return
        if fields.get(b"content-length") == b"%d" % len(body):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[head + b"\r\n\r\n"] = Head(url, headers.copy(), fields, len(body))
