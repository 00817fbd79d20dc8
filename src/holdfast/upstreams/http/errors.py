"""What went wrong between us and an HTTP server, and had anything been sent?"""

import ssl

from httptools import HttpParserError, HttpParserUpgrade

NOT_HTTP = (HttpParserError, HttpParserUpgrade)


class Unreachable(Exception):
    """Nothing was written: there is no connection."""


class Broken(Exception):
    """The connection ended, or what came on it made no sense. What was asked may have been done."""


def words(error: BaseException | None) -> str:
    """What happened, without the address: it may carry a secret."""
    match error:
        case None:
            return "the server closed the connection"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case OSError(strerror=str() as said):
            return said.lower()
        case HttpParserError() | HttpParserUpgrade():
            return "what came is not HTTP/1.1"
    return type(error).__name__
