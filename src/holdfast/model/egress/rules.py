"""May the gateway connect there?

What stands in the configuration is the operator's word: it may be private, or this machine. Whatever that
leads to (a redirect, an address in a document) is a stranger's: public only, unless the operator lists it. A
listed number or range is let through as it is; `*.example.com` lets names through, to public addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from holdfast.model.egress.host import Number, Unclear, read
from holdfast.model.egress.ranges import INNER, Kind, kind

Mode = Literal["none", "listed", "private", "public", "approval"]
Host = Number | str
_PORTS = {"http": 80, "https": 443}


class Entry(NamedTuple):
    """One line of a list; without a port, any."""

    network: IPv4Network | IPv6Network | None
    name: str
    """Without the `*.` of those that stand for every name below."""
    below: bool
    port: int | None


def entry(text: str) -> Entry:
    """Reads `host`, `*.host`, `10.0.0.0/8` or `[fd00::/8]`, each with or without `:port`; ValueError."""
    rest, port = _ported(text.strip().lower())
    if "/" in rest or ":" in rest:
        return Entry(ip_network(rest), "", False, port)
    below = rest.startswith("*.")
    meant = read(rest.removeprefix("*.") if below else rest)
    if isinstance(meant, str):
        return Entry(None, meant, below, port)
    if below:
        raise ValueError("there is nothing below a number")
    return Entry(ip_network(meant), "", False, port)


def _ported(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        inside, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError("write an IPv6 address with a port as '[fd00::1]:443'")
        return inside, _port(rest[1:]) if rest else None
    if text.count(":") == 1:
        rest, _, digits = text.partition(":")
        return rest, _port(digits)
    return text, None


def _port(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) < 65536):
        raise ValueError("a port is a number from 1 to 65535")
    return int(digits)


@dataclass(frozen=True)
class Rules:
    mode: Mode = "public"
    allow: tuple[str, ...] = ()
    """What else is let through, as `entry` reads it; with `listed`, all that is."""
    written: tuple[str, ...] = ()
    """URLs of the configuration; what stands for none is passed over."""

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return tuple(entry(text) for text in self.allow)

    @cached_property
    def _origins(self) -> frozenset[tuple[Host, int]]:
        return frozenset(origin for url in self.written if (origin := _origin(url)) is not None)

    def believed(self, host: Host, port: int) -> bool:
        """Whether the operator named exactly this."""
        if (host, port) in self._origins:
            return True
        return any(
            one.name == host and not one.below and one.port in (None, port)
            for one in self._entries
            if one.network is None
        )

    def pointless(self, host: Host, port: int) -> bool:
        """Whether no address at all would do: then nobody is asked where the name leads."""
        if self.mode == "none":
            return True
        if self.mode != "listed" or self.believed(host, port) or self._below(host, port):
            return False
        return not any(one.network is not None and one.port in (None, port) for one in self._entries)

    def objection(self, host: Host, port: int, addresses: Sequence[Number]) -> str | None:
        """Why not, of all the places a name leads to; None where each of them may be connected to."""
        if self.mode == "none":
            return "nothing is let through"
        left = [one for one in addresses if not self._listed(one, port)]
        kinds = {kind(one) for one in left}
        if not kinds:
            return None
        if self.believed(host, port):
            return self._of_ours(host, kinds)
        return self._of_strangers(host, port, kinds)

    def _of_ours(self, host: Host, kinds: set[Kind]) -> str | None:
        if self.mode == "private":
            return _unless(kinds <= INNER, "only private addresses are connected to", kinds)
        if not isinstance(host, str):
            return None  # a number that the operator wrote
        if kinds <= {Kind.PUBLIC} or kinds <= INNER:
            return None
        return _unless(False, "a name leads to public addresses or to private ones", kinds)

    def _of_strangers(self, host: Host, port: int, kinds: set[Kind]) -> str | None:
        if self.mode == "private":
            return _unless(kinds <= {Kind.PRIVATE}, "only private addresses are connected to", kinds)
        if self.mode == "listed" and not self._below(host, port):
            return "only what is listed is connected to"
        said = "what the configuration does not name is connected to at public addresses only"
        return _unless(kinds <= {Kind.PUBLIC}, said, kinds)

    def _listed(self, address: Number, port: int) -> bool:
        return any(
            one.network is not None and address in one.network and one.port in (None, port)
            for one in self._entries
        )

    def _below(self, host: Host, port: int) -> bool:
        return isinstance(host, str) and any(
            one.below and host.endswith(f".{one.name}") and one.port in (None, port) for one in self._entries
        )


def _unless(fine: bool, said: str, kinds: set[Kind]) -> str | None:
    return None if fine else f"{said}, and this is {' and '.join(sorted(kinds))}"


def _origin(url: str) -> tuple[Host, int] | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        named = host if host.isascii() else host.encode("idna").decode()
        return read(named), parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError, Unclear):
        return None
