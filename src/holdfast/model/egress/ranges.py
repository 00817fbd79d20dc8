"""What kind of place is an address?

By a table of our own and not by `ipaddress`, whose opinion differs between versions of Python. Whatever is
not known to be public is not: of IPv6 all that is outside 2000::/3 (IANA's special-purpose registries).
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network

from holdfast.model.egress.host import Number
from holdfast.model.vocabulary import Word


class Kind(Word):
    PUBLIC = "public"
    PRIVATE = "private"
    SHARED = "shared"
    """Behind a provider's NAT, 100.64.0.0/10; private networks use it as their own."""
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    METADATA = "metadata"
    """Where a cloud tells a machine its credentials."""
    UNSPECIFIED = "unspecified"
    MULTICAST = "multicast"
    RESERVED = "reserved"
    EMBEDDED = "embedded"
    """An IPv6 address that stands for one of IPv4; where that leads, another machine decides."""


INNER = frozenset({Kind.PRIVATE, Kind.SHARED, Kind.LOOPBACK})
"""Where an operator's own servers are."""

_RANGES_4: tuple[tuple[str, Kind], ...] = (  # the first that holds counts
    ("168.63.129.16/32", Kind.METADATA),
    ("100.100.100.200/32", Kind.METADATA),
    ("192.0.0.192/32", Kind.METADATA),
    ("255.255.255.255/32", Kind.MULTICAST),
    ("0.0.0.0/8", Kind.UNSPECIFIED),
    ("10.0.0.0/8", Kind.PRIVATE),
    ("172.16.0.0/12", Kind.PRIVATE),
    ("192.168.0.0/16", Kind.PRIVATE),
    ("100.64.0.0/10", Kind.SHARED),
    ("127.0.0.0/8", Kind.LOOPBACK),
    ("169.254.0.0/16", Kind.LINK_LOCAL),
    ("192.0.0.0/24", Kind.RESERVED),
    ("192.0.2.0/24", Kind.RESERVED),
    ("192.88.99.0/24", Kind.RESERVED),
    ("198.18.0.0/15", Kind.RESERVED),
    ("198.51.100.0/24", Kind.RESERVED),
    ("203.0.113.0/24", Kind.RESERVED),
    ("224.0.0.0/4", Kind.MULTICAST),
    ("240.0.0.0/4", Kind.RESERVED),
)
_RANGES_6: tuple[tuple[str, Kind], ...] = (
    ("::/128", Kind.UNSPECIFIED),
    ("::1/128", Kind.LOOPBACK),
    ("::/96", Kind.EMBEDDED),  # IPv4-compatible
    ("::ffff:0:0/96", Kind.EMBEDDED),  # IPv4-mapped
    ("::ffff:0:0:0/96", Kind.EMBEDDED),  # IPv4-translated
    ("64:ff9b::/96", Kind.EMBEDDED),  # NAT64
    ("64:ff9b:1::/48", Kind.EMBEDDED),
    ("2001::/32", Kind.EMBEDDED),  # Teredo
    ("2002::/16", Kind.EMBEDDED),  # 6to4
    ("2001::/23", Kind.RESERVED),
    ("2001:db8::/32", Kind.RESERVED),
    ("3fff::/20", Kind.RESERVED),
    ("fd00:ec2::/32", Kind.METADATA),
    ("fd20:ce::/32", Kind.METADATA),
    ("fc00::/7", Kind.PRIVATE),
    ("fe80::/10", Kind.LINK_LOCAL),
    ("ff00::/8", Kind.MULTICAST),
)
_TABLE: tuple[tuple[IPv4Network | IPv6Network, Kind], ...] = tuple(
    (ip_network(text), kind) for text, kind in (*_RANGES_4, *_RANGES_6)
)
_GLOBAL = IPv6Network("2000::/3")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


def kind(address: Number) -> Kind:
    found = next((kind for network, kind in _TABLE if address in network), None)
    if isinstance(address, IPv4Address):
        return found or Kind.PUBLIC
    if found in (None, Kind.PRIVATE) and (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return Kind.EMBEDDED
    if found is not None:
        return found
    return Kind.PUBLIC if address in _GLOBAL else Kind.RESERVED  # fec0::/10, site-local, among them
