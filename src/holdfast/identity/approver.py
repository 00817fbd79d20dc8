"""Is this the secret that proves that a person is here?

Hashed slowly, so that it cannot be guessed from the configuration; and it cannot be guessed by asking either:
who is wrong too often waits. What was right is remembered in this process by a keyed hash, and by whoever
keeps a `mark`: that says against which stored secret it was proven, and nothing of the secret itself.
"""

import logging
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed
from threading import Lock

from holdfast.identity.keys import matches
from holdfast.identity.people import Person
from holdfast.identity.tries import FREE, TooMany, Tries

log = logging.getLogger(__name__)

WAITING = 100
"""Events that go on record in one round."""


@dataclass(frozen=True, slots=True)
class Guessed:
    """Somebody tried secrets of a person until they had to wait."""

    tenant: str
    person: str
    times: int


class Approvers:
    def __init__(self, now: Callable[[], float]) -> None:
        self.guessed: deque[Guessed] = deque(maxlen=WAITING)
        """What belongs on record; whoever writes it there takes it from here."""
        self._tries = Tries(now)
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._turns: dict[str, Lock] = {}

    def check(self, person: Person, presented: str) -> bool:
        """Raises TooMany. Takes as long as a slow hash, the first time."""
        if person.secret is None:
            return False
        mark, name = self._mark_of(person.secret, presented), f"{person.tenant}/{person.name}"
        with self._turns.setdefault(name, Lock()):  # one after the other: the rest know what the first found
            if compare_digest(self._right.get(name, b""), mark):
                return True
            times = self._begun(person, name)
            if matches(person.secret, presented):
                self._tries.right(name)
                self._right[name] = mark
                return True
        if times >= FREE:
            self._tell(person, times)
        return False

    def proven(self, person: Person, mark: str) -> bool:
        """Whether `mark` was given for the secret that this person has now."""
        return person.secret is not None and compare_digest(self.mark(person), mark)

    def mark(self, person: Person) -> str:
        return sha256(f"{person.tenant}\0{person.name}\0{person.secret}".encode()).hexdigest()

    def _begun(self, person: Person, name: str) -> int:
        try:
            return self._tries.begin(name)
        except TooMany:
            log.info("a secret of %r is not looked at: too many were wrong", person.name)
            raise

    def _tell(self, person: Person, times: int) -> None:
        log.warning("%d wrong approver secrets of %r in a row", times, person.name)
        self.guessed.append(Guessed(person.tenant, person.name, times))

    def _mark_of(self, stored: str, presented: str) -> bytes:
        return keyed(self._key, f"{stored}\0{presented}".encode(), "sha256")
