"""What may a server that runs us offer beyond ASGI?

All are in a request's scope, `FIELDS` itself and the others among its extensions. Where they are missing
everything works, for more CPU.
"""

from collections.abc import Callable

LEAVING = "holdfast.leaving"
"""Takes what is to be called when the connection ends; None: nothing."""
WHOLE = "holdfast.whole"
"""Writes a whole answer at once; there is one only for a request that has no answer yet."""
FIELDS = "holdfast.fields"
"""The headers by their names, of a request that has each of them once and is as long as it says."""

Leaving = Callable[[Callable[[], None] | None], None]
Whole = Callable[[int, bytes, bytes], bool]
"""From a status, lines of headers that need no look, and a body. False: nothing was written, use `send`."""

PATHS = ("/mcp", "/v1/calls", "/rpc")
"""Where plain calls are posted to; elsewhere nobody makes use of `WHOLE`."""
