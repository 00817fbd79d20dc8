"""A real mail server on this machine, with or without TLS and sign-in, that keeps what it is given."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "gate", "s3cret-word"


@dataclass
class Letter:
    to: list[str]
    mail: EmailMessage
    raw: bytes
    tls: bool
    user: str | None

    @property
    def text(self) -> str:
        said: str = self.mail.get_content()
        return said


class Post:
    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.refused: dict[str, str] = {}
        """What is answered to mail for an address."""
        self.port = 0

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        raw = envelope.content
        assert isinstance(raw, bytes)
        mail = message_from_bytes(raw, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        who: Any = session.auth_data
        user = who.login.decode() if session.authenticated else None
        self.letters.append(Letter(envelope.rcpt_tos, mail, raw, session.ssl is not None, user))
        return "250 OK"

    def _let_in(self, server: SMTP, session: Session, envelope: Envelope, how: str, who: Any) -> AuthResult:
        good = isinstance(who, LoginPassword) and (who.login, who.password) == (
            USER.encode(),
            PASSWORD.encode(),
        )
        return AuthResult(success=good, handled=good, auth_data=who)

    @contextmanager
    def open(
        self, trust: ssl.SSLContext | None = None, *, at_once: bool = False, sign_in: bool = False
    ) -> Iterator["Post"]:
        """With `trust`: STARTTLS, or TLS from the first byte where that is `at_once`."""
        options: dict[str, Any] = {"ssl_context": trust} if at_once else {}
        if trust is not None and not at_once:
            options |= {"tls_context": trust, "require_starttls": True}
        if sign_in:
            options |= {
                "authenticator": self._let_in,
                "auth_required": True,
                "auth_require_tls": trust is not None and not at_once,
            }
        controller = Controller(self, hostname="127.0.0.1", port=_free_port(), **options)
        controller.start()
        self.port = controller.port
        try:
            yield self
        finally:
            controller.stop()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
