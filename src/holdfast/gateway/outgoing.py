"""What may the gateway connect to by its configuration, and who hears of connections that were not made?"""

from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.model.egress.rules import Rules

if TYPE_CHECKING:
    from holdfast.ports import Approvals
    from holdfast.upstreams.http.guard import Barring, Guard, Lead
    from holdfast.upstreams.http.outgoing import Outgoing

MOST = 1000
"""Refusals that are remembered, so that each is written once."""
WAITING = 100
"""Refusals that go on record in one round: whoever names places without end does not fill it."""
EVERYWHERE = "*"


class Egress:
    """One for the whole gateway: everything that connects gets its guard here."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._waiting: deque[Barring] = deque(maxlen=WAITING)
        self._told: set[Barring] = set()

    def guard(self, whose: str, *written: str | None, upstream: str | None = None) -> "Guard":
        """`written`: urls of the configuration. Exactly these may be private; where they lead is foreign."""
        from holdfast.upstreams.http.guard import Guard  # heavy, and many gateways connect to nothing

        return Guard(self._rules(written, upstream), whose=whose, barred=self._heard)

    def outgoing(self, whose: str, *written: str | None, upstream: str | None = None) -> "Outgoing":
        from holdfast.upstreams.http.outgoing import Outgoing

        return Outgoing(self.guard(whose, *written, upstream=upstream))

    def of_upstream(self, name: str) -> "Guard":
        """For the upstream itself, and for whatever signs the gateway in there."""
        return self.guard(f"upstreams.{name}", *self._written(name), upstream=name)

    def outgoing_of(self, name: str) -> "Outgoing":
        from holdfast.upstreams.http.outgoing import Outgoing

        return Outgoing(self.of_upstream(name))

    async def leads(self) -> AsyncIterator[tuple[str, str, "Lead | None"]]:
        """Each upstream with a url, its rule, and where it leads; None where that is nowhere now."""
        from holdfast.upstreams.http.address import address

        for name, settings in self._config.upstreams.items():
            if settings.mcp is None or settings.mcp.url is None:
                continue
            there, guard = address(settings.mcp.url), self.of_upstream(name)
            try:
                yield name, guard.rules.mode, await guard.lead(there.host, there.port)
            except OSError:
                yield name, guard.rules.mode, None

    def _written(self, name: str) -> tuple[str | None, ...]:
        server = self._config.upstreams[name].mcp
        if server is None:
            return ()
        auth = server.auth
        return (server.url, *(() if auth is None else (auth.issuer, auth.token_url)))

    def _rules(self, written: tuple[str | None, ...], upstream: str | None) -> Rules:
        own = None if upstream is None else self._config.upstreams[upstream].egress
        said = own or self._config.egress
        return Rules(said.mode, said.allow, tuple(url for url in written if url))

    def _heard(self, told: "Barring") -> None:
        if told in self._told:
            return
        if len(self._told) >= MOST:
            self._told.clear()
        self._told.add(told)
        self._waiting.append(told)

    async def follow(self, record: "Approvals") -> None:
        """Put on record, as security events, what was refused since; the log has every single one."""
        while self._waiting:
            await record.alarm(EVERYWHERE, "holdfast", f"egress refused: {self._waiting[0]}")
            self._waiting.popleft()
