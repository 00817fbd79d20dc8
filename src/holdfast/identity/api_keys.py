"""Whose is an API key?

Those of the configuration, and those that people made while gateways run: the gateway puts the latter beside
the former as soon as it hears of them, and looks once more when somebody shows one that is not known yet.
"""

from collections.abc import Awaitable, Callable, Mapping

from holdfast.identity.credential import Claim, Unauthenticated
from holdfast.identity.keys import matches, split
from holdfast.identity.people import Key

Look = Callable[[], Awaitable[bool]]
"""Learn of keys that were made elsewhere; whether there was something to learn."""


class ApiKeys:
    tells = True

    def __init__(self, keys: Mapping[str, Key], now: Callable[[], float]) -> None:
        self._keys, self._now = keys, now
        self.look: Look | None = None

    def reads(self, presented: str) -> bool:
        return split(presented) is not None

    def prove(self, presented: str) -> Claim:
        parts = split(presented)
        key = self._keys.get(parts[0]) if parts else None
        if parts is None or key is None or not matches(key.hash, parts[1]):
            raise Unauthenticated("this key is not known here; check it, or ask for a new one")
        if self._now() >= key.expires_at:
            raise Unauthenticated(f"key {key.id!r} has expired; ask for a new one")
        return Claim(
            user=key.user,
            agent=key.agent,
            limits=() if key.scopes is None else (key.scopes,),
            until=key.expires_at,
            tenant=key.tenant,
            rests_on=(f"key:{key.id}",),
            in_person=key.in_person,
        )

    async def learn(self, presented: str) -> bool:
        parts = split(presented)
        if self.look is None or parts is None or parts[0] in self._keys:
            return False
        return await self.look() and parts[0] in self._keys
