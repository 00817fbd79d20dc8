"""Who is signed in to the console, and are they still?

A session keeps the credential that somebody showed, sealed, and asks for it anew at every request: what a
key, a token, a person or a role is worth today counts, not what it was worth then. The browser holds 256
random bits, the store their hash. It ends when they leave, after a time without a request, and after a time
anyway.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from holdfast.config.console import Console
from holdfast.identity import Identity, Unauthenticated
from holdfast.identity.credential import WrongSecret
from holdfast.identity.delegation import in_person
from holdfast.identity.identity import SECRET, USER
from holdfast.identity.tries import TooMany, Tries
from holdfast.model.call import Principal
from holdfast.model.people import SignedIn
from holdfast.ports import Clock, Secrets, Sessions

PROOF = "proof"
"""Beside the headers: that the approver secret was shown. The secret itself is kept nowhere."""
PENDING = "pending"
"""Beside the headers: that it is yet to be shown."""
PENDING_S = 600.0
SHOWN = ("authorization", USER, SECRET)
"""What a person signs in with; an agent's name is not among it."""
EVERYWHERE = "*"
SEEN_S = 60.0
"""How exactly it is known when somebody was here last: not every look is worth a write."""
FREE = 20
"""Wrong tries of one address before it waits: many people may come from one. A person has another bound."""
_LENGTH = 43
"""Characters of 256 bits."""


class NotAPerson(Unauthenticated):
    """An agent's credential: the console is for people."""


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody at the console, for as long as it lasts."""

    token: str
    """What the forms of this session carry, and nobody else's."""
    person: str
    expires_at: float


class ConsoleSessions:
    """Hung on the gateway as `sessions`."""

    def __init__(
        self, kept: Sessions, identity: Identity, secrets: Secrets, clock: Clock, settings: Console
    ) -> None:
        self._kept = kept
        self._identity = identity
        self._secrets = secrets
        self._clock = clock
        self._life_s = settings.session_hours * 3600
        self._idle_s = settings.idle_minutes * 60
        self._tries = Tries(clock.now, free=FREE, first_s=1.0, most_s=30.0)

    async def begin(
        self, headers: Mapping[str, str], address: str = "", *, secret_later: bool = False
    ) -> str:
        """Sign somebody in by what they show; what the browser is to keep. Raises Unauthenticated.

        With `secret_later` somebody who has an approver secret may show it next, in `complete`; nothing is
        theirs before.
        """
        try:
            self._tries.begin(address)
        except TooMany:
            if not self._holds(headers):
                raise
        id = await self._begun(headers, secret_later)
        self._tries.right(address)
        return id

    def _holds(self, headers: Mapping[str, str]) -> bool:
        """Who holds a key or a token guesses nothing: nobody else at their address keeps them out.

        A secret is another matter, and bounded for each person.
        """
        held = headers.get("authorization")
        try:
            return bool(held) and bool(self._identity.authenticate({"authorization": held or ""}))
        except Unauthenticated:
            return False

    async def pending(self, id: str) -> str | None:
        """Who has yet to show their secret to be signed in."""
        found = await self._found(id)
        return None if found is None or PENDING not in found.credential else found.person

    async def complete(self, id: str, secret: str, address: str = "") -> str:
        """With the secret: what the browser is to keep from now on. Raises Unauthenticated."""
        found = await self._found(id)
        if found is None or PENDING not in found.credential:
            raise Unauthenticated("nobody is about to sign in here")
        shown = {name: said for name, said in found.credential.items() if name != PENDING}
        fresh = await self.begin({**shown, SECRET: secret}, address)
        await self._kept.end(found.hash)
        return fresh

    async def _begun(self, headers: Mapping[str, str], secret_later: bool) -> str:
        shown = {name: headers[name] for name in SHOWN if headers.get(name)}
        principal = await self._known(shown)
        _need_person(principal)
        proof, given = self._identity.proof(principal), shown.pop(SECRET, None)
        life_s = min(self._life_s, self._idle_s)
        if proof and given:
            shown[PROOF] = proof
        elif proof and secret_later:
            shown[PENDING], life_s = "secret", PENDING_S
        elif proof:
            raise WrongSecret(f"{principal.user!r} signs in with their approver secret")
        id, now = secrets.token_urlsafe(32), self._clock.now()
        await self._kept.add(
            SignedIn(
                hash=_hash(id),
                person=principal.user,
                credential=shown,
                at=now,
                seen_at=now,
                expires_at=now + life_s,
            )
        )
        return id

    async def find(self, id: str, *, active: bool = True) -> tuple[Principal, Session] | None:
        """Who holds this, as they stand now; None where nobody does any more.

        Without `active` a page asks that is open, and not the person: that keeps no session.
        """
        found = await self._found(id)
        if found is None or PENDING in found.credential:
            return None
        try:
            principal = await self._again(found)
            _need_person(principal)
        except Unauthenticated:
            await self._kept.end(found.hash)
            return None
        expires_at = await self._seen(found) if active else found.expires_at
        token = self._secrets.sign(EVERYWHERE, "console", id.encode())
        return principal, Session(token, found.person, expires_at)

    async def end(self, id: str) -> None:
        """In every process, at once."""
        await self._kept.end(_hash(id))

    async def forget(self) -> int:
        return await self._kept.forget()

    async def _found(self, id: str) -> SignedIn | None:
        return await self._kept.find(_hash(id)) if len(id) == _LENGTH else None

    async def _again(self, found: SignedIn) -> Principal:
        """By the credential itself; whoever it names now must be who signed in."""
        headers = dict(found.credential)
        proof = headers.pop(PROOF, "")
        principal = await self._asked(headers, proof)
        if principal.user != found.person or (self._identity.proof(principal) and not proof):
            raise Unauthenticated("somebody else than who signed in")
        return principal

    async def _known(self, headers: Mapping[str, str]) -> Principal:
        """The first time: with the secret where there is one, which takes a slow hash."""
        if SECRET not in headers:
            return await self._asked(headers)
        with suppress(Unauthenticated):  # whatever is not known of the credential is learnt by this
            await self._asked({name: said for name, said in headers.items() if name != SECRET})
        return await asyncio.to_thread(self._identity.authenticate, headers)

    async def _asked(self, headers: Mapping[str, str], proof: str = "") -> Principal:
        try:
            return self._identity.authenticate(headers, proof)
        except Unauthenticated:
            if not await self._identity.learn(headers):
                raise
        return self._identity.authenticate(headers, proof)

    async def _seen(self, found: SignedIn) -> float:
        now = self._clock.now()
        expires_at = min(found.at + self._life_s, now + self._idle_s)
        if not found.seen_at <= now < found.seen_at + min(SEEN_S, self._idle_s / 4):
            await self._kept.seen(found.hash, now, expires_at)
        return expires_at


def _need_person(principal: Principal) -> None:
    if principal.act or principal.system or not in_person(principal):
        raise NotAPerson("this is an agent's credential; people sign in with their own")


def _hash(id: str) -> str:
    return sha256(id.encode()).hexdigest()
