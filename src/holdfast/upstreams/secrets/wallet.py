"""Which secret does a call get, and may it have it?

A secret is read when it is first used, kept in memory for its time, and read again: so it is replaced
without a restart. One that has ended is never handed out. When its provider cannot be asked for a moment,
what was read last goes on being used, but for no longer than its time once more.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.model import defaults
from holdfast.model.errors import Code, NoEffect, SecretError
from holdfast.model.secret import Secret
from holdfast.ports import SecretProvider
from holdfast.upstreams.single import Single

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the configuration says of one secret."""

    provider: SecretProvider
    ttl_s: float = 0.0
    """How long what was read is used; 0: its provider knows for nothing whether it changed."""
    tenant: str | None = None
    expires_at: float | None = None
    """When an operator says that it ends."""


@dataclass(slots=True)
class _Held:
    secret: Secret
    read_at: float


class Wallet:
    """Implements `ports.Credentials`."""

    def __init__(
        self, entries: Mapping[str, Entry], *, now: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self._entries, self._now, self._monotonic = dict(entries), now, monotonic
        self._held: dict[str, _Held] = {}
        self._reading: Single[Secret] = Single()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def tenant(self, name: str) -> str | None:
        entry = self._entries.get(name)
        return None if entry is None else entry.tenant

    async def take(self, name: str, tenant: str) -> Secret:
        entry = self._entries.get(name)
        if entry is None:
            raise _refusal(name, "is not configured; an operator can add it under 'secrets'")
        if entry.tenant is not None and entry.tenant != tenant:
            raise _refusal(name, "belongs to another tenant")
        return await self._usable(name, entry)

    async def shared(self, name: str) -> Secret:
        """For what serves every tenant alike."""
        return await self.take(name, "")

    async def renew(self, name: str, refused: Secret) -> Secret | None:
        held = self._held.get(name)
        if held is not None and held.secret.text != refused.text:  # somebody else was faster
            found = held.secret
        else:
            try:
                found = await self._read(name)
            except SecretError as error:
                log.warning("secret %s was refused and cannot be read anew: %s", name, error)
                return None
        return None if found.text == refused.text or found.ended(self._now()) else found

    async def objection(self, name: str) -> str | None:
        """What keeps it from being used now, for whoever operates the gateway; None when nothing does."""
        try:
            found = await self._read(name)
        except SecretError as error:
            return str(error)
        return "it has expired" if found.ended(self._now()) else None

    async def close(self) -> None:
        await self._reading.close()
        self._held.clear()
        for entry in self._entries.values():
            await entry.provider.close()

    # --- reading --------------------------------------------------------------------------

    async def _usable(self, name: str, entry: Entry) -> Secret:
        held = self._held.get(name)
        if held is not None and self._fresh(held, entry):
            return held.secret
        try:
            found = await self._read(name)
        except SecretError as error:
            log.warning("secret %s: %s", name, error)
            if held is None or not error.passing or not self._still(held, entry):
                raise _unread(name, error) from None
            found = held.secret
        if found.ended(self._now()):
            raise _refusal(name, "has expired; ask an operator to issue it anew")
        return found

    def _fresh(self, held: _Held, entry: Entry) -> bool:
        age = self._monotonic() - held.read_at
        early_s = min(defaults.GRANT_REFRESH_S, entry.ttl_s)
        return age < entry.ttl_s and not held.secret.ended(self._now(), early_s)

    def _still(self, held: _Held, entry: Entry) -> bool:
        """Whether what was read last may stand in for what cannot be read now."""
        age = self._monotonic() - held.read_at
        return age < 2 * entry.ttl_s and not held.secret.ended(self._now())

    async def _read(self, name: str) -> Secret:
        return await self._reading.ask(name, lambda: self._asked(name))

    async def _asked(self, name: str) -> Secret:
        entry = self._entries[name]
        try:
            found = await entry.provider.read()
        except SecretError:
            raise
        except Exception as error:  # its text may quote the secret
            raise SecretError(f"its provider broke: {type(error).__name__}", passing=True) from None
        if (end := entry.expires_at) is not None:
            sooner = end if found.expires_at is None else min(end, found.expires_at)
            found = Secret(found.text, sooner, found.version)
        self._held[name] = _Held(found, self._monotonic())
        return found


def _refusal(name: str, why: str) -> NoEffect:
    return NoEffect(f"the credential {name!r} {why}; nothing was sent", Code.PERMISSION_DENIED)


def _unread(name: str, error: SecretError) -> NoEffect:
    if error.passing:
        text = f"the credential {name!r} cannot be had now; nothing was sent, try again later"
        return NoEffect(text, Code.DEPENDENCY_UNAVAILABLE)
    return _refusal(name, "cannot be had, and the operator's log says why; ask for it to be issued anew")
