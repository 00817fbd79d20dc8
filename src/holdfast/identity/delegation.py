"""What may somebody hand on? Less than they hold, or as much; never more (AUT-2, AUT-5).

`narrowed` is the one place where a delegation is made, and every member of it is a meeting of what the parent
holds with what is asked for: there is nothing in it that could widen. Who asks for more than the parent has
is told what would have been given, unless they said that less will do.

The agent that a person names is the one who answers for what is done: policies, budgets, halts and keys know
it by `user/agent`. Whoever it hands on to acts in its name. So no agent gets away from a rule about it, or
into one about another, by handing on to a new name; the `act` chain says who it was.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.identity.standing import IN_PERSON, LOCAL_AGENT
from holdfast.model import defaults
from holdfast.model.bounds import Bounds, Patterns
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError
from holdfast.model.scopes import check, covers, intersect

TOKEN = "token:"
OWN = "hf-"
"""What the name of a delegation begins with; an issuer gives its tokens names of its own."""
MOST_PATTERNS = 64
"""In one wish, of each kind: a token travels with every request."""
_NAME = re.compile(r"[\x21-\x7e]{1,128}")
_NOBODY = frozenset({IN_PERSON, LOCAL_AGENT})
"""What stands for the agent where a person acts without one."""


class Undelegable(HoldfastError):
    """This cannot be handed on."""


class Wider(Undelegable):
    """More was asked for than is held."""

    def __init__(self, more: list[str], given: Principal) -> None:
        self.more, self.given = tuple(more), given
        super().__init__(f"you cannot hand on {'; '.join(more)}; ask for less, or say that less will do")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody asks to hand on; None of a kind asks for all of it that is held."""

    agent: str | None = None
    """To whom; None: to the agent who holds it already, as for one call."""
    actor: Principal | None = None
    """Instead of a name: who it is, where they have shown it. Then what they hold themselves narrows too."""
    scopes: frozenset[str] | None = None
    tools: Patterns | None = None
    resources: Patterns | None = None
    life_s: float | None = None
    """None: the usual life, or what is left."""
    narrow: bool = False
    """Less than asked for will do."""


def delegate(parent: Principal, wish: Wish, *, jti: str, now: float) -> Principal:
    """Who holds the delegation, with exactly what it gives; raises Undelegable."""
    _check(parent, wish, now)
    given = narrowed(parent, wish, jti=jti, now=now)
    if not wish.narrow and (more := list(_more(parent, wish, now))):
        raise Wider(more, given)
    return given


def narrowed(parent: Principal, wish: Wish, *, jti: str, now: float) -> Principal:
    """What parent, actor and wish all allow. No roles: people approve, agents do not."""
    actor = wish.actor
    scopes, bounds, rests_on = parent.scopes, parent.bounds, parent.rests_on
    if wish.scopes is not None:
        scopes = intersect(scopes, wish.scopes)
    if actor is not None:
        scopes, bounds = intersect(scopes, actor.scopes), bounds.meet(actor.bounds)
        rests_on = tuple(dict.fromkeys((*rests_on, *actor.rests_on)))
    return Principal(
        tenant=parent.tenant,
        user=parent.user,
        agent=_answers(parent, wish) if in_person(parent) else parent.agent,
        scopes=scopes,
        trust=parent.trust if actor is None else min(parent.trust, actor.trust),
        bounds=bounds.meet(Bounds(wish.tools, wish.resources, now + _life(wish))),
        act=_chain(parent, wish),
        rests_on=(*rests_on, f"{TOKEN}{OWN}{jti}"),
    )


def in_person(principal: Principal) -> bool:
    """Whether nobody stands between the person and this."""
    return principal.agent in _NOBODY and not principal.act and not depth(principal)


def depth(principal: Principal) -> int:
    """How many delegations lie between the person and this."""
    return sum(name.startswith(TOKEN + OWN) for name in principal.rests_on)


def _answers(parent: Principal, wish: Wish) -> str:
    """Who answers for it, where a person hands on: not the name of whoever somebody handed on to before."""
    return wish.actor.agent if wish.actor is not None else wish.agent or parent.agent


def _chain(parent: Principal, wish: Wish) -> tuple[str, ...]:
    """Who acts, the caller first; who only narrows what they hold is not named again."""
    above = _acting(parent)
    names = (wish.agent or parent.agent,) if wish.actor is None else _acting(wish.actor)
    return above if above[: len(names)] == names else (*names, *above)


def _acting(principal: Principal) -> tuple[str, ...]:
    return principal.act or (() if in_person(principal) else (principal.agent,))


def _life(wish: Wish) -> float:
    return min(defaults.DELEGATION_S if wish.life_s is None else wish.life_s, defaults.DELEGATION_MOST_S)


def _check(parent: Principal, wish: Wish, now: float) -> None:
    """What no narrowing would mend."""
    if parent.system or now >= parent.bounds.until:
        raise Undelegable("what you hold has ended; ask for a new delegation")
    if max(depth(parent), len(_chain(parent, wish)) - 1) >= defaults.DELEGATION_DEPTH:
        raise Undelegable(f"{defaults.DELEGATION_DEPTH} delegations lie behind this already; none may follow")
    if wish.agent is None and wish.actor is None and in_person(parent):
        raise Undelegable("say to which agent: a person does not hand on to nobody")
    if wish.agent is not None and (not _NAME.fullmatch(wish.agent) or wish.agent in _NOBODY):
        raise Undelegable("an agent's name is 1 to 128 printable ASCII characters without spaces")
    if wish.life_s is not None and not wish.life_s >= 1:
        raise Undelegable("a delegation lasts a second or longer")
    if wish.actor is not None:
        _check_actor(parent, wish.actor, now)
    for patterns in (wish.scopes, wish.tools, wish.resources):
        if patterns is not None and len(patterns) > MOST_PATTERNS:
            raise Undelegable(f"more than {MOST_PATTERNS} patterns of one kind; use wider ones")
        for pattern in patterns or ():
            if (wrong := check(pattern)) is not None:
                raise Undelegable(wrong)


def _check_actor(parent: Principal, actor: Principal, now: float) -> None:
    if actor.tenant != parent.tenant:
        raise Undelegable("actor and subject belong to different tenants")
    if actor.system or in_person(actor):
        raise Undelegable("the actor is a person; only an agent acts for somebody else")
    if now >= actor.bounds.until:
        raise Undelegable("what the actor holds has ended; ask for a new delegation")


def _more(parent: Principal, wish: Wish, now: float) -> Iterator[str]:
    """Everything asked for that is not held."""
    actor = wish.actor
    holders = (parent,) if actor is None else (parent, actor)
    for holder in holders:
        whose = "" if holder is parent else " (the actor does not hold it)"
        for scope in sorted(wish.scopes or ()):
            if not covers(holder.scopes, scope):
                yield f"scope {scope!r}{whose}"
        for kind, asked, held in (
            ("tool", wish.tools, holder.bounds.tools),
            ("resource", wish.resources, holder.bounds.resources),
        ):
            for pattern in sorted(asked or ()):
                if held is not None and not covers(held, pattern):
                    yield f"{kind} {pattern!r}{whose}"
    if wish.life_s is not None and now + wish.life_s > _end(holders, now):
        yield f"a life of {wish.life_s:g} s where {_end(holders, now) - now:.0f} s are left"


def _end(holders: tuple[Principal, ...], now: float) -> float:
    return min(now + defaults.DELEGATION_MOST_S, *(holder.bounds.until for holder in holders))
