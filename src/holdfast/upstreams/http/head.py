"""How does a request look in bytes, up to its body?"""

import re
from collections.abc import Mapping

from holdfast.upstreams.http.address import Address

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENDS_A_LINE = re.compile(r"[\r\n\0]")
_OURS = frozenset({"content-length", "transfer-encoding", "upgrade"})
"""What says where a message ends is said by whoever writes the message."""


def head(verb: str, there: Address, headers: Mapping[str, str]) -> bytes:
    """Without the length of the body and the empty line. Names are in lower case; raises ValueError."""
    return f"{verb} {there.path} HTTP/1.1\r\n".encode() + lines({**said(there), **headers})


def said(there: Address) -> dict[str, str]:
    """What a request to an address says unless its headers say otherwise."""
    fields = {"host": there.host_field, "user-agent": "holdfast", "accept": "*/*"}
    if there.credentials is not None:
        fields["authorization"] = there.credentials
    return fields


def lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they go below a head that has none of them yet."""
    return "".join([_line(name, value) for name, value in headers.items()]).encode()


def _line(name: str, value: str) -> str:
    if name.lower() in _OURS or not _NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} cannot be sent as a header")
    if _ENDS_A_LINE.search(value):
        raise ValueError(f"the value of the header {name!r} has a line end in it")
    return f"{name}: {value}\r\n"


def request(begun: bytes, body: bytes | None) -> bytes:
    """All of it."""
    if body is None:
        return begun + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (begun, len(body), body)
