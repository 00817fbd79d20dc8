"""Where does a URL lead, and how is that written into a request?"""

from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_AS_IT_IS = "%/:@!$&'()*+,;=~-._?"


@dataclass(frozen=True, slots=True)
class Address:
    """Raises ValueError for a URL that leads nowhere; see `address`."""

    tls: bool
    host: str
    port: int
    host_field: str
    """As the `host` header has it."""
    path: str
    """With the query, in the characters HTTP allows."""
    credentials: str | None
    """What the URL itself says for the `authorization` header."""


def address(url: str) -> Address:
    try:
        parts = urlsplit(url)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:  # its text may repeat the url, and that a password
        raise ValueError("the url cannot be read") from None
    if parts.scheme not in _PORTS or not host:
        raise ValueError("the url is not one of http or https")
    default = _PORTS[parts.scheme]
    port = default if port is None else port
    shown = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe=_AS_IT_IS)
    query = f"?{quote(parts.query, safe=_AS_IT_IS)}" if parts.query else ""
    return Address(
        tls=parts.scheme == "https",
        host=host,
        port=port,
        host_field=shown if port == default else f"{shown}:{port}",
        path=path + query,
        credentials=_basic(parts.username, parts.password),
    )


def _ascii(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode()


def _basic(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None
    both = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {b64encode(both.encode()).decode()}"
