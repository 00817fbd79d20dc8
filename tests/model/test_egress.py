"""Which hosts can be read in one way only, what kind of place is an address, and who may connect to it?"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from holdfast.model.egress.host import Number, Unclear, read
from holdfast.model.egress.ranges import INNER, Kind, kind
from holdfast.model.egress.rules import Rules, entry
from tests.requirements import requirement

VERSION_4 = st.integers(0, 2**32 - 1)
VERSION_6 = st.integers(0, 2**128 - 1)
WORDS = st.sampled_from(["127", "0177", "0x7f", "0", "00", "1", "01", "0x1", "256", "a", "0x", "x", "-", ""])
HOSTS = st.one_of(
    st.text("0123456789xXabcdefABCDEF.:-_ \t\0%[]/@", max_size=24),
    st.lists(WORDS, min_size=1, max_size=5).map(".".join),
    VERSION_4.map(lambda number: str(IPv4Address(number))),
    VERSION_6.map(lambda number: str(IPv6Address(number))),
    st.integers(0, 2**33).map(str),
    st.integers(0, 2**33).map(hex),
)


def by_the_c_library(host: str) -> Number | None:
    """The number it would connect to without asking anybody."""
    try:
        found = socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError, UnicodeError):
        return None
    return ip_address(str(found[0][4][0]).partition("%")[0])


@requirement("POL-6")
@given(HOSTS)
@example("127.1")
@example("0x7f.1")
@example("017700000001")
@example("2130706433")
@example("127.0.0.1 ")
@example("::1%lo")
def test_what_the_c_library_takes_for_a_number_is_never_judged_as_a_name(host: str) -> None:
    meant = by_the_c_library(host)
    try:
        judged = read(host)
    except Unclear:
        return
    if meant is not None:
        assert judged == meant
    if isinstance(judged, str):
        assert read(judged) == judged
        assert by_the_c_library(judged) is None


@requirement("POL-6")
@given(st.one_of(VERSION_4.map(IPv4Address), VERSION_6.map(IPv6Address)))
def test_a_number_is_read_as_it_is_and_only_global_ones_are_public(address: Number) -> None:
    assert read(str(address)) == address
    if kind(address) is Kind.PUBLIC:
        assert address.is_global
        inside = address.is_private or address.is_loopback or address.is_link_local
        other = address.is_reserved or address.is_multicast or address.is_unspecified
        assert (inside, other) == (False, False)


EMBEDDINGS = {
    "mapped": lambda four: f"::ffff:{four}",
    "compatible": lambda four: f"::{four}",
    "translated": lambda four: f"::ffff:0:{four}",
    "nat64": lambda four: f"64:ff9b::{four}",
    "local nat64": lambda four: f"64:ff9b:1::{four}",
    "6to4": lambda four: str(IPv6Address((0x2002 << 112) | (int(four) << 80) | 1)),
    "teredo server": lambda four: str(IPv6Address((0x20010000 << 96) | (int(four) << 64))),
    "teredo client": lambda four: str(IPv6Address((0x20010000 << 96) | (int(four) ^ 0xFFFFFFFF))),
    "isatap": lambda four: f"2a00:1450:4001:800:0:5efe:{four}",
    "global isatap": lambda four: f"2a00:1450:4001:800:200:5efe:{four}",
}


@requirement("POL-6")
@pytest.mark.parametrize("form", EMBEDDINGS)
@given(VERSION_4.map(IPv4Address))
@example(IPv4Address("127.0.0.1"))
@example(IPv4Address("169.254.169.254"))
@example(IPv4Address("8.8.8.8"))
def test_an_address_that_stands_for_another_is_never_public(form: str, four: IPv4Address) -> None:
    address = read(EMBEDDINGS[form](four))
    assert isinstance(address, IPv6Address)
    assert kind(address) in (Kind.EMBEDDED, Kind.LOOPBACK, Kind.UNSPECIFIED)
    assert Rules().objection(address, 80, [address])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", Kind.PUBLIC),
        ("2a00:1450:4001:800::200e", Kind.PUBLIC),
        ("10.1.2.3", Kind.PRIVATE),
        ("172.31.255.255", Kind.PRIVATE),
        ("172.32.0.0", Kind.PUBLIC),
        ("192.168.1.1", Kind.PRIVATE),
        ("fd12::1", Kind.PRIVATE),
        ("fc00::1", Kind.PRIVATE),
        ("100.64.0.1", Kind.SHARED),
        ("100.128.0.1", Kind.PUBLIC),
        ("127.0.0.1", Kind.LOOPBACK),
        ("127.255.255.255", Kind.LOOPBACK),
        ("::1", Kind.LOOPBACK),
        ("169.254.169.254", Kind.LINK_LOCAL),
        ("fe80::1", Kind.LINK_LOCAL),
        ("168.63.129.16", Kind.METADATA),
        ("100.100.100.200", Kind.METADATA),
        ("192.0.0.192", Kind.METADATA),
        ("fd00:ec2::254", Kind.METADATA),
        ("0.0.0.0", Kind.UNSPECIFIED),
        ("0.1.2.3", Kind.UNSPECIFIED),
        ("::", Kind.UNSPECIFIED),
        ("224.0.0.1", Kind.MULTICAST),
        ("255.255.255.255", Kind.MULTICAST),
        ("ff02::1", Kind.MULTICAST),
        ("192.0.2.1", Kind.RESERVED),
        ("198.18.0.1", Kind.RESERVED),
        ("203.0.113.9", Kind.RESERVED),
        ("240.0.0.1", Kind.RESERVED),
        ("2001:db8::1", Kind.RESERVED),
        ("3fff::1", Kind.RESERVED),
        ("fec0::1", Kind.RESERVED),
        ("4000::1", Kind.RESERVED),
        ("100::1", Kind.RESERVED),
        ("64:ff9b::8.8.8.8", Kind.EMBEDDED),
        ("2002:808:808::1", Kind.EMBEDDED),
    ],
)
def test_every_address_is_of_one_kind(address: str, expected: Kind) -> None:
    assert kind(ip_address(address)) is expected


@pytest.mark.parametrize(
    "host", ["EXAMPLE.com", "example.com.", "a_b.example.com", "1.example", "xn--bcher-kva.de"]
)
def test_a_name_is_a_name(host: str) -> None:
    assert read(host) == host.lower().removesuffix(".")


TWO_OR_NONE = (
    *("", ".", "a..b", "-a", "a-", "a b", "a%41", "a\0b", "0x7f.1", "127.1", "1", "0177.0.0.1", "127.0.0.1."),
    *("1.2.3.4.5", "1.2.3.256", "example.0x7", "::1%lo", "[::1]", "::ffff:0177.0.0.1", "a" * 64, "a." * 130),
)


@pytest.mark.parametrize("host", TWO_OR_NONE)
def test_what_has_two_readings_or_none_is_not_read(host: str) -> None:
    with pytest.raises(Unclear) as told:
        read(host)
    assert not host or len(host) < 3 or host not in str(told.value)


# --- rules --------------------------------------------------------------------------------

OWN = "http://crm.example:8080/mcp"
PUBLIC, PRIVATE, LOOPBACK, LINK = map(
    ip_address, ("93.184.216.34", "10.1.2.3", "127.0.0.1", "169.254.169.254")
)


@requirement("POL-6")
@pytest.mark.parametrize(
    ("mode", "ours", "strangers"),
    [
        ("none", [], []),
        ("listed", [PUBLIC, PRIVATE, LOOPBACK], []),
        ("private", [PRIVATE, LOOPBACK], [PRIVATE]),
        ("public", [PUBLIC, PRIVATE, LOOPBACK], [PUBLIC]),
        ("approval", [PUBLIC, PRIVATE, LOOPBACK], [PUBLIC]),
    ],
)
def test_each_mode_lets_through_what_it_says(mode: str, ours: list[Number], strangers: list[Number]) -> None:
    rules = Rules(mode, written=(OWN,))  # type: ignore[arg-type]
    every = [PUBLIC, PRIVATE, LOOPBACK, LINK]
    assert [one for one in every if rules.objection("crm.example", 8080, [one]) is None] == ours
    assert [one for one in every if rules.objection("other.example", 8080, [one]) is None] == strangers
    assert [one for one in every if rules.objection("crm.example", 8081, [one]) is None] == strangers
    assert [one for one in every if rules.objection(one, 80, [one]) is None] == strangers


@requirement("POL-6")
@pytest.mark.parametrize("inside", [PRIVATE, LOOPBACK, LINK])
def test_one_address_that_is_not_let_through_is_enough(inside: Number) -> None:
    for host in ("crm.example", "other.example"):
        for answer in ([PUBLIC, inside], [inside, PUBLIC]):
            assert Rules(written=(OWN,)).objection(host, 8080, answer)


def test_a_number_the_operator_wrote_is_the_operators_word() -> None:
    rules = Rules(written=("http://169.254.169.254/latest", "http://[::1]:90/"))
    assert rules.objection(LINK, 80, [LINK]) is None
    assert rules.objection(LINK, 81, [LINK])
    assert rules.objection(IPv6Address("::1"), 90, [IPv6Address("::1")]) is None


@requirement("POL-6")
@pytest.mark.parametrize(
    ("listed", "host", "port", "address", "through"),
    [
        ("auth.example", "auth.example", 443, PUBLIC, True),
        ("auth.example", "auth.example", 443, PRIVATE, True),
        ("auth.example", "auth.example", 443, LINK, False),
        ("auth.example", "evil.auth.example", 443, PUBLIC, False),
        ("auth.example:443", "auth.example", 8443, PUBLIC, False),
        ("AUTH.example.", "auth.example", 443, PUBLIC, True),
        ("*.example", "auth.example", 443, PUBLIC, True),
        ("*.example", "deep.auth.example", 443, PUBLIC, True),
        ("*.example", "auth.example", 443, LOOPBACK, False),
        ("*.example", "example", 443, PUBLIC, False),
        ("*.example", "badexample", 443, PUBLIC, False),
        ("10.0.0.0/8", "any.name", 443, PRIVATE, True),
        ("10.0.0.0/8:443", "any.name", 80, PRIVATE, False),
        ("10.0.0.0/8", "any.name", 443, PUBLIC, False),
        ("127.0.0.1:9000", LOOPBACK, 9000, LOOPBACK, True),
        ("127.0.0.1:9000", LOOPBACK, 9001, LOOPBACK, False),
        ("[fd00::/8]:443", "any.name", 443, IPv6Address("fd00::1"), True),
        ("fd00::/8", "any.name", 80, IPv6Address("fd00::1"), True),
        ("[::1]:80", IPv6Address("::1"), 80, IPv6Address("::1"), True),
    ],
)
def test_what_is_listed_is_let_through(
    listed: str, host: Number | str, port: int, address: Number, through: bool
) -> None:
    rules = Rules("listed", (listed,))
    assert (rules.objection(host, port, [address]) is None) is through
    assert not (through and rules.pointless(host, port))


UNREADABLE = (
    *("", "127.1", "10.0.0.0/33", "10.1.0.0/8", "a b", "*.10.0.0.0", "*.1.2.3.4", "a:0", "a:70000", "[::1"),
    *("a:b", "*", "http://a", "a/b", "[::1]x", "*.*.a"),
)


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_not_listed(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        entry(text)


@requirement("POL-6")
@given(
    st.one_of(VERSION_4.map(IPv4Address), VERSION_6.map(IPv6Address)), st.sampled_from(["public", "approval"])
)
def test_a_stranger_leads_to_public_addresses_only(address: Number, mode: str) -> None:
    rules = Rules(mode, written=(OWN,))  # type: ignore[arg-type]
    let = rules.objection("other.example", 443, [address]) is None
    assert let is (kind(address) is Kind.PUBLIC)
    assume(not let)
    assert rules.objection("other.example", 443, [PUBLIC, address])
    assert (rules.objection("crm.example", 8080, [address]) is None) is (kind(address) in INNER)
