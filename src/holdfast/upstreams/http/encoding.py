"""What did a server mean that compresses although it was asked not to?"""

import zlib
from collections.abc import Iterator

from holdfast.upstreams.http.errors import Broken

PIECE_BYTES = 256 * 1024
"""A few bytes can unfold into very many: they are taken in pieces, so that a limit is noticed."""
_WINDOW = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Decoder:
    def __init__(self, window: int) -> None:
        self._window = window
        self._unfold = zlib.decompressobj(window)
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises Broken."""
        if not self._begun and self._window == zlib.MAX_WBITS and chunk[:1] and chunk[0] & 0x0F != 8:
            self._unfold = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without the frame it should have
        self._begun = self._begun or bool(chunk)
        try:
            while chunk and not self._unfold.eof:
                yield self._unfold.decompress(chunk, PIECE_BYTES)
                chunk = self._unfold.unconsumed_tail
        except zlib.error:
            raise Broken("the answer is not compressed as it says") from None

    def end(self) -> None:
        if self._begun and not self._unfold.eof:
            raise Broken("the compressed answer ended early")


def decoder(encoding: str) -> Decoder:
    """Raises Broken where nobody here knows the encoding."""
    window = _WINDOW.get(encoding.strip().lower())
    if window is None:
        raise Broken(f"the answer has the encoding {encoding[:100]!r}, which was not asked for")
    return Decoder(window)
