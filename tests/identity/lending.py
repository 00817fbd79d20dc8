"""A small world in which people and agents hand on what they hold, while others give and take back."""

from collections.abc import Awaitable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from holdfast.gateway.delegation import Delegation
from holdfast.identity import Agent, Grant, Identity, Key, Person, Unauthenticated, mint
from holdfast.identity.delegation import Undelegable, Wish
from holdfast.identity.tokens import Tokens
from holdfast.model.call import Principal
from holdfast.model.scopes import check, covers
from holdfast.stores.keyring import Keyring
from holdfast.testing import CountingIds, ManualClock
from tests.identity.test_scopes import SETS

T = TypeVar("T")

SCOPES = ("a", "b", "ab", "abc", "a:b", "ab:b", "a:ab:b", "abc:b:a", "a/b")
TOOLS = ("shop.read", "shop.refund", "desk.send")
RESOURCES = ("orders/1", "orders/2", "mail/x/y")
TOOL_SETS = st.none() | st.frozensets(
    st.sampled_from(["shop.*", "shop.read", "*.refund", "*", "**", "desk.send", "s*d"]), max_size=2
)
RESOURCE_SETS = st.none() | st.frozensets(
    st.sampled_from(["orders/*", "orders/**", "**", "orders/1", "mail/*/y", "mail/x/*", "*/1"]), max_size=2
)
WISHES = st.builds(
    Wish,
    agent=st.sampled_from([None, "bot", "sub", "other"]),
    scopes=st.none() | SETS,
    tools=TOOL_SETS,
    resources=RESOURCE_SETS,
    life_s=st.none() | st.sampled_from([1.0, 10.0, 3600.0, 1e6]),
    narrow=st.booleans(),
)
PLACES = st.integers(0, 50)
STEPS = st.one_of(
    st.tuples(st.just("delegate"), PLACES, WISHES),
    st.tuples(st.just("delegate"), PLACES, WISHES),
    st.tuples(st.just("exchange"), PLACES, PLACES, WISHES),
    st.tuples(st.just("grant"), SETS, st.sampled_from([None, "bot", "person"]), st.sampled_from([5.0, 1e6])),
    st.tuples(st.just("end grants")),
    st.tuples(st.just("revoke"), PLACES),
    st.tuples(st.just("configure"), SETS),
    st.tuples(st.just("limit"), st.none() | SETS),
    st.tuples(st.just("limit key"), st.none() | SETS),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 4.0, 20.0, 4000.0])),
)
CHAINS = st.lists(STEPS, min_size=1, max_size=12)


@dataclass(frozen=True)
class Rights:
    """What somebody may use of everything there is in this world."""

    alive: bool = False
    scopes: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    trust: int = 0
    until: float = 0.0

    def within(self, other: "Rights") -> bool:
        return not self.alive or (
            other.alive
            and self.scopes <= other.scopes
            and self.tools <= other.tools
            and self.resources <= other.resources
            and self.trust <= other.trust
            and self.until <= other.until
        )


@dataclass(frozen=True)
class Holding:
    presented: str
    parent: int | None = None
    actor: int | None = None
    given: Principal | None = None
    """What was handed on, as it was made."""
    source: Principal | None = None
    """What it was made from."""


class Lending:
    """Alice with a key of her own, her agent `bot` with one, and whatever they hand on."""

    def __init__(self, held: frozenset[str]) -> None:
        self.clock = ManualClock()
        keys, self.holdings = list[Key](), list[Holding]()
        for agent in (None, "bot"):
            plain, entry = mint("alice", agent)
            until = self.clock.now() + 1e5
            keys.append(Key(id=entry["id"], hash=entry["hash"], user="alice", agent=agent, expires_at=until))
            self.holdings.append(Holding(plain))
        alice = Person(name="alice", grants=tuple(map(Grant, held)), trust=60)
        bot = Agent(name="bot", user="alice", trust=40)
        self.identity = Identity.api_key([alice], [bot], keys, now=self.clock.now)
        tokens = Tokens(Keyring(), "", self.clock.now, keys=self.identity.keys)
        self.identity.readers.append(tokens)
        parts: Any = (self.identity, tokens, None, Unwritten(), self.clock, CountingIds(), None)
        self.delegation = Delegation(*parts)
        self._grants = 0

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("delegate", place, wish):
                self._hand_on(place, None, wish)
            case ("exchange", place, actor, wish):
                self._hand_on(place, actor, replace(wish, agent=None))
            case ("grant", scopes, agent, life_s):
                until, kept = self.clock.now() + life_s, self.identity.given.get(("default", "alice"), ())
                self._grants += 1
                new = tuple(Grant(s, "olga", until, f"g{self._grants}", agent) for s in scopes)
                self.identity.given = {("default", "alice"): (*kept, *new)}
            case ("end grants",):
                self._take_back(f"grant:g{number}" for number in range(1, self._grants + 1))
                self.identity.given = {}
            case ("revoke", place):
                self._revoke(place % len(self.holdings))
            case ("configure", scopes):
                alice = self.identity.people["alice"]
                self.identity.people["alice"] = replace(alice, grants=tuple(map(Grant, scopes)))
            case ("limit", scopes):
                self.identity.agents["bot"] = replace(self.identity.agents["bot"], scopes=scopes)
            case ("limit key", scopes):
                first = next(iter(self.identity.keys.values()))
                self.identity.keys[first.id] = replace(first, scopes=scopes)
            case ("wait", seconds):
                self.clock.jump(seconds)
        self.identity.forget()

    def rights(self, place: int) -> Rights:
        principal = self.principal(place)
        if principal is None or self.clock.now() >= principal.bounds.until:
            return Rights()
        return rights_of(principal, self.identity.holder(self.holdings[place].presented).claim.until)

    def principal(self, place: int) -> Principal | None:
        try:
            return self.identity.holder(self.holdings[place].presented).principal
        except Unauthenticated:
            return None

    def _hand_on(self, place: int, actor: int | None, wish: Wish) -> None:
        place %= len(self.holdings)
        acting = None if actor is None else actor % len(self.holdings)
        if wish.scopes is not None and any(check(scope) for scope in wish.scopes):
            return
        try:
            subject = done(self.delegation.subject(self.holdings[place].presented))
            by = None if acting is None else done(self.delegation.subject(self.holdings[acting].presented))
            issued = done(self.delegation.issue(subject.principal, subject, wish, by))
        except (Undelegable, Unauthenticated):
            return
        self.holdings.append(Holding(issued.token, place, acting, issued.given, subject.principal))

    def _revoke(self, place: int) -> None:
        principal = self.principal(place)
        if principal is not None:
            names = [name for name in principal.rests_on if not name.startswith("grant:")]
            self._take_back(names[-1:])

    def _take_back(self, names: Iterable[str]) -> None:
        self.identity.taken_back = self.identity.taken_back | {f"default/{name}" for name in names}


def rights_of(principal: Principal, until: float) -> Rights:
    bounds = principal.bounds
    return Rights(
        True,
        frozenset(scope for scope in SCOPES if covers(principal.scopes, scope)),
        frozenset(tool for tool in TOOLS if bounds.reaches(tool, ())),
        frozenset(one for one in RESOURCES if bounds.resources is None or covers(bounds.resources, one)),
        principal.trust,
        until,
    )


class Unwritten:
    """A log that nobody reads."""

    async def note(self, *_: Any, **__: Any) -> None: ...


def done(work: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
    """The result of something that waits for nobody."""
    try:
        work.send(None)  # type: ignore[union-attr]
    except StopIteration as end:
        found: T = end.value
        return found
    raise AssertionError("it waits for something")
