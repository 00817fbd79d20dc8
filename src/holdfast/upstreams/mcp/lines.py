"""Which lines does a stream of bytes carry, when nobody promises that it has any?"""

from collections.abc import Iterator


class Lines:
    """Cuts bytes into lines. Of a line longer than `most` nothing is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self._skipping = False
        self.overlong = 0
        """How many such lines there were."""
        self.dropped = 0
        """Bytes that made no line."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._rest += data
        if b"\n" in data:
            *lines, rest = self._rest.split(b"\n")
            self._rest = rest
            for line in lines:
                if self._skipping or len(line) > self._most:
                    self.overlong += 1
                    self._skipping = False
                elif line.strip():
                    yield bytes(line)
                    continue
                self.dropped += len(line) + 1
        if len(self._rest) > self._most or self._skipping:
            self.dropped += len(self._rest)
            self._rest.clear()
            self._skipping = True
