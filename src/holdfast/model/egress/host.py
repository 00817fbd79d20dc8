"""Is the host of a URL a number or a name, and is there only one way to read it?

The C library reads `127.1`, `0x7f.1`, `0177.0.0.1` and `2130706433` as numbers, others read them as names or
as other numbers. Whoever judges one reading and connects to the other is fooled, so what has two is not read.
"""

import re
from ipaddress import IPv4Address, IPv6Address

Number = IPv4Address | IPv6Address

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
LONGEST = 253


class Unclear(ValueError):
    """Not one number and not one name. The text does not repeat it: others may see the text."""


def read(host: str) -> Number | str:
    """The number, or the name in lower case without a last dot; raises Unclear."""
    host = host.lower()
    if ":" in host:
        return _version_6(host)
    name = host.removesuffix(".")
    if len(name) > LONGEST or not _NAME.fullmatch(name):
        raise Unclear("the host is no name; write it in letters, digits, '-' and '.'")
    if not _NUMERIC.fullmatch(name.rpartition(".")[2]):
        return name
    try:
        return IPv4Address(host)
    except ValueError:
        raise Unclear("the host is a number that can be read in two ways; write it as 192.0.2.1") from None


def _version_6(host: str) -> IPv6Address:
    try:
        if "%" in host:
            raise ValueError(host)
        return IPv6Address(host)
    except ValueError:
        raise Unclear("the host is no IPv6 address; write it as [2001:db8::1], without a zone") from None
