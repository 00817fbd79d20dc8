"""In how many ways can this machine be written?"""

import socket
from itertools import product

FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
BOLD = {ord(digit): 0x1D7CE + int(digit) for digit in "0123456789"}
CIRCLED = {ord("0"): 0x24EA} | {ord(digit): 0x245F + int(digit) for digit in "123456789"}
DOTS = [{ord("."): dot} for dot in (0x3002, 0xFF0E, 0xFF61)]
"""Characters that IDNA takes for plain ones."""

IN_BASES = (("127", "0177", "0x7f"), ("0", "00", "0x0"), ("0", "000", "0x00"), ("1", "01", "0x1"))
SHORT = (
    *("127.1", "127.0.1", "0x7f.1", "0177.1", "0x7f.0x1", "0177.0.01", "0x7f.0.1", "127.0x1", "127.00.1"),
    *("2130706433", "0x7f000001", "017700000001", "0x7F000001", "0X7f000001", "0000000000017700000001"),
    *("127.0.0.1.", "127.1.", "2130706433.", "0x7f000001.", "127.0.0.01", "127.0.0.1%00", "127.0.0.1%2e"),
    *("127%2e0%2e0%2e1", "%31%32%37.0.0.1"),
    *("0.0.0.0", "0", "0x0", "00", "0.0", "000.000.000.000"),
)
NAMES = ("localhost", "LOCALHOST", "LocalHost.", "localhost.", "ip6-localhost", "ip6-loopback")
VERSION_6 = (
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]", "[0::1]"),
    *("[::]", "[0:0:0:0:0:0:0:0]", "[::1%25lo]", "[::1%lo]", "[::1%251]", "[::0.0.0.1]"),
    *("[::ffff:127.0.0.1]", "[::FFFF:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]"),
    *("[::ffff:0.0.0.0]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]"),
    *(
        "[2002:7f00:1::1]",
        "[2001:0:7f00:1::]",
        "[2001::80ff:fffe]",
        "[fe80::1]",
        "[fe80::1%25lo]",
        "[fec0::1]",
    ),
    *("[fe80::5efe:127.0.0.1]", "[2001:db8::5efe:7f00:1]", "[fd00::1]", "[ff02::1]", "[::ffff:0177.0.0.1]"),
)
OTHERS = (
    *("127.0.0.2", "127.255.255.254", "169.254.169.254", "169.254.170.2", "10.0.0.1", "172.16.0.1"),
    *("192.168.0.1", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "0.0.0.1", "0251.0376.0251.0376", "2852039166"),
    *("0xa9fea9fe", "169.254.43518", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"),
)
"""Places that are not this machine, but no more a stranger's to name."""


def spellings() -> list[str]:
    """Every one as the host of a URL; all but the last lead here, if anywhere."""
    dotted = [".".join(parts) for parts in product(*IN_BASES)]
    plain = ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost")
    odd = [host.translate(table) for host in plain for table in (FULL_WIDTH, BOLD, CIRCLED, *DOTS)]
    return list(dict.fromkeys([*dotted, *SHORT, *odd, *NAMES, *VERSION_6, *OTHERS]))


def reachable(hosts: list[str], *, version_6: bool) -> set[str]:
    """Those that the C library takes for 127.0.0.1, or ::1, as they stand: a naive client gets there."""
    return {host for host in hosts if _leads_here(host, version_6)}


def _leads_here(host: str, version_6: bool) -> bool:
    bare = host.strip("[]")
    if not bare.isascii():
        bare = bare.encode("idna").decode()
    try:
        found = socket.getaddrinfo(bare, 80, type=socket.SOCK_STREAM)
    except OSError:
        return False
    here = {"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"} | ({"::1", "::"} if version_6 else set())
    return str(found[0][4][0]) in here
