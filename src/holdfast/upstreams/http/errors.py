"""What went wrong between us and an HTTP server, and had anything been sent?"""

import os
import socket
import ssl

from httptools import HttpParserError, HttpParserUpgrade

NOT_HTTP = (HttpParserError, HttpParserUpgrade)


class Unreachable(Exception):
    """Nothing was written: there is no connection."""


class Barred(Unreachable):
    """Nothing was written: the egress rules do not let the gateway connect there. Says no address."""

    def __init__(self, mode: str) -> None:
        super().__init__(f"the egress rule {mode!r} does not let the gateway connect there; the log says why")


class Broken(Exception):
    """The connection ended, or what came on it made no sense. What was asked may have been done."""


def words(error: BaseException | None) -> str:
    """What happened, without the address: callers may see this, and where things are is not theirs; LIF-5."""
    match error:
        case None:
            return "the server closed the connection"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError(strerror=str() as said) | socket.gaierror(strerror=str() as said):
            return said.lower()
        case OSError(errno=int() as number):  # its own text names the address
            return os.strerror(number).lower()
        case HttpParserError() | HttpParserUpgrade():
            return "what came is not HTTP/1.1"
    return type(error).__name__
