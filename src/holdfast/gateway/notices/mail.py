"""How does a mail get to its server? Over a connection that the egress guard made, within one deadline.

The protocol is the standard library's, in a thread. A server that hangs is cut off, so the thread ends too.
"""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.config.channels import Mail as Settings
from holdfast.gateway.notices.letter import letter
from holdfast.gateway.notices.outcome import Again, Never, Outcome, Sent
from holdfast.gateway.notices.pointed import Pointed
from holdfast.model import defaults
from holdfast.model.errors import NoEffect
from holdfast.model.people import Notice
from holdfast.model.quoted import visible
from holdfast.model.timeout import timeout

if TYPE_CHECKING:
    from holdfast.upstreams.http.guard import Guard

THREADS = 4
"""Mails on their way at once, of one channel."""
LONGEST = 200
"""Characters of what a server says."""


class Mail:
    def __init__(self, settings: Settings, password: Pointed | None, guard: "Guard", folder: Path) -> None:
        self._settings, self._password, self._guard, self._folder = settings, password, guard, folder
        self._threads: ThreadPoolExecutor | None = None

    async def send(
        self, notice: Notice, others: Sequence[Notice] = (), closed_until: float | None = None
    ) -> Outcome:
        from holdfast.upstreams.http.errors import Unreachable, words

        mail = letter(notice, self._settings.sender, others, closed_until)
        try:
            async with timeout(defaults.MAIL_SEND_S):
                password = None if self._password is None else await self._password.read()
                line = await self._guard.dial(self._settings.host, self._settings.where, "a mail")
                await self._spoken(line, mail, password)
        except TimeoutError:
            return Again(f"the mail server did not take it within {defaults.MAIL_SEND_S:g} s")
        except smtplib.SMTPException as error:
            return _refusal(error)
        except (NoEffect, Unreachable) as error:
            return Again(str(error))
        except (OSError, ValueError) as error:
            return Again(f"cannot reach the mail server: {words(error)}")
        return Sent()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _spoken(self, line: socket.socket, mail: EmailMessage, password: str | None) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "holdfast-mail")
        with line.dup() as handle:  # what is wrapped in TLS is another object; the line is the same
            try:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._threads, self._speak, line, mail, password)
            finally:
                with suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)

    def _speak(self, line: socket.socket, mail: EmailMessage, password: str | None) -> None:
        settings = self._settings
        line.settimeout(defaults.MAIL_SEND_S)
        trust = None if settings.tls == "none" else self._trust()
        with _Conversation(line, settings.host, settings.sender.rpartition("@")[2]) as server:
            if settings.tls == "tls" and trust is not None:
                server.sock = trust.wrap_socket(line, server_hostname=settings.host)
            server.greeted()
            if settings.tls == "starttls":
                server.starttls(context=trust)
            if settings.user is not None and password is not None:
                server.login(settings.user, password)
            server.send_message(mail, settings.sender, [str(mail["To"])])

    def _trust(self) -> ssl.SSLContext:
        ca = self._settings.ca
        return ssl.create_default_context(cafile=None if ca is None else str(self._folder / ca))


class _Conversation(smtplib.SMTP):
    """On a line that is there already: nothing here looks a name up or connects."""

    def __init__(self, line: socket.socket, host: str, own_name: str) -> None:
        super().__init__(local_hostname=own_name, timeout=defaults.MAIL_SEND_S)
        self.sock = line
        self._host = host  # whose certificate STARTTLS must show

    def greeted(self) -> None:
        code, said = self.getreply()
        if code != 220:
            raise smtplib.SMTPConnectError(code, said)


def _refusal(error: smtplib.SMTPException) -> Outcome:
    match error:
        case smtplib.SMTPRecipientsRefused():
            code, said = next(iter(error.recipients.values()))
            return _judged("refused the recipient", code, said)
        case smtplib.SMTPAuthenticationError():  # somebody may put the password right
            return Again(f"the mail server did not let us in: {_words(error.smtp_error)}")
        case smtplib.SMTPResponseException():
            return _judged("refused it", error.smtp_code, error.smtp_error)
        case smtplib.SMTPNotSupportedError():
            return Again("the mail server does not offer what 'tls' or 'user' ask for")
    return Again(f"the mail server broke off: {type(error).__name__}")


def _judged(what: str, code: int, said: bytes | str) -> Outcome:
    text = f"the mail server {what}: {code} {_words(said)}"
    return Never(text) if 500 <= code < 600 else Again(text)


def _words(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return visible(" ".join(text.split())[:LONGEST])
