"""Who opens a connection, and to exactly which address?

The one place where the gateway connects to anything over the network. It asks once where a name leads, judges
every address of the answer, and connects to those very addresses: there is no second look that could see
something else. A name of the configuration that led to public addresses does not lead inside later.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from typing import NamedTuple

import aiohappyeyeballs
from aiohappyeyeballs import AddrInfoType

from holdfast.model.egress.host import Number, Unclear, read
from holdfast.model.egress.ranges import Kind, kind
from holdfast.model.egress.rules import Rules
from holdfast.upstreams.http.errors import Barred

log = logging.getLogger(__name__)

SECOND_FAMILY_S = 0.25
"""How long the first of several addresses has before the next is tried as well (RFC 8305)."""
REMEMBERED = 1000
"""Names whose first answer is kept; they stand in a configuration, so there are few."""
LONGEST_SHOWN = 200
"""Characters of a host that a stranger wrote."""

Resolve = Callable[[str, int], Awaitable[Sequence[Number]]]
"""Where a name leads; raises OSError."""


@dataclass(frozen=True, slots=True)
class Barring:
    """A connection that was not made: for the log and the record, not for callers."""

    whose: str
    purpose: str
    host: str
    port: int
    mode: str
    why: str
    addresses: tuple[str, ...] = ()

    def __str__(self) -> str:
        led = f" (leads to {', '.join(self.addresses)})" if self.addresses else ""
        about = f" for {self.purpose}" if self.purpose else ""
        where = f"{self.host[:LONGEST_SHOWN]!r} port {self.port}{led}"
        return f"{self.whose or 'a request'}: no connection to {where}{about}: {self.why}"


class Lead(NamedTuple):
    kinds: frozenset[Kind]
    objection: str | None


class Guard:
    """What one part of the gateway may connect to."""

    def __init__(
        self,
        rules: Rules,
        *,
        whose: str = "",
        resolve: Resolve | None = None,
        barred: Callable[[Barring], None] | None = None,
    ) -> None:
        self.rules, self._whose, self._barred = rules, whose, barred
        self._resolve = resolve or resolved
        self._public: dict[tuple[str, int], None] = {}

    async def dial(self, host: str, port: int, purpose: str = "") -> socket.socket:
        """Connected, to an address that was judged; raises Barred, or OSError."""
        places = await self.found(host, port, purpose)
        loop = asyncio.get_running_loop()
        return await aiohappyeyeballs.start_connection(
            places, happy_eyeballs_delay=SECOND_FAMILY_S, interleave=1, loop=loop
        )

    async def found(self, host: str, port: int, purpose: str = "") -> list[AddrInfoType]:
        """Where a host may be connected to, as numbers; raises Barred, or OSError where it leads nowhere."""
        try:
            meant = read(host)
        except Unclear as error:
            raise self._refusal(purpose, host, port, str(error)) from None
        if self.rules.pointless(meant, port):
            raise self._refusal(
                purpose, host, port, self.rules.objection(meant, port, ()) or "it is not listed"
            )
        # With its last dot, if it has one: then the resolver looks for no other name.
        addresses = [*await self._resolve(host, port)] if isinstance(meant, str) else [meant]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "the name leads nowhere")
        why = self.rules.objection(meant, port, addresses) or self._turned(meant, port, addresses)
        if why is not None:
            raise self._refusal(purpose, host, port, why, addresses)
        return [_numeric(address, port) for address in addresses]

    async def lead(self, host: str, port: int) -> "Lead":
        """Where a host leads now and whether that is let through; nothing is connected or noted."""
        meant = read(host)
        addresses = [*await self._resolve(host, port)] if isinstance(meant, str) else [meant]
        return Lead(frozenset(map(kind, addresses)), self.rules.objection(meant, port, addresses))

    def _turned(self, host: Number | str, port: int, addresses: Sequence[Number]) -> str | None:
        """A name that was public has turned inside."""
        if not isinstance(host, str) or not self.rules.believed(host, port):
            return None
        public = any(kind(address) is Kind.PUBLIC for address in addresses)
        if public and len(self._public) < REMEMBERED:
            self._public[host, port] = None
        if public or (host, port) not in self._public:
            return None
        return "the name led to public addresses before; list the new ones if that is meant, or start again"

    def _refusal(
        self, purpose: str, host: str, port: int, why: str, addresses: Sequence[Number] = ()
    ) -> Barred:
        mode = self.rules.mode
        told = Barring(self._whose, purpose, host, port, mode, why, tuple(map(str, addresses)))
        log.warning("egress refused: %s", told)
        if self._barred is not None:
            self._barred(told)
        return Barred(mode)


async def resolved(host: str, port: int) -> list[Number]:
    """As this machine has it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


def _numeric(address: Number, port: int) -> AddrInfoType:
    if isinstance(address, IPv4Address):
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port)
    return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port, 0, 0)
