"""Can any chain of delegations, grants, exchanges and revocations widen what somebody holds?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from holdfast.identity import delegation
from holdfast.identity.delegation import Wish
from holdfast.identity.tokens import Lineage, Tokens
from holdfast.model.bounds import Bounds
from holdfast.model.call import Principal
from tests.identity.lending import CHAINS, Lending, rights_of
from tests.identity.test_scopes import SETS
from tests.requirements import requirement

Narrow = Callable[..., Principal]


def lend(held: frozenset[str], steps: list[tuple[Any, ...]]) -> int:
    """Take the steps; after each, nobody may do anything that one before them in the chain may not."""
    world = Lending(held)
    for step in steps:
        count = len(world.holdings)
        world.take(step)
        if len(world.holdings) > count:
            new = world.holdings[-1]
            assert new.given is not None
            assert new.source is not None
            given, source = (rights_of(who, who.bounds.until) for who in (new.given, new.source))
            assert given.within(source), "beyond what it was made from"
            actor = new.actor
            assert actor is None or world.rights(count).within(world.rights(actor)), "beyond the actor"
        rights = [world.rights(place) for place in range(len(world.holdings))]
        for place, holding in enumerate(world.holdings):
            if holding.parent is not None:
                assert rights[place].within(rights[holding.parent]), "beyond the parent"
            if holding.actor is not None:
                assert not rights[place].alive or rights[holding.actor].alive, "outlives the actor"
    return len(world.holdings)


@requirement("AUT-2", "AUT-5")
@settings(max_examples=300, deadline=None)
@given(SETS, CHAINS)
def test_whatever_a_descendant_may_use_every_ancestor_may_too(
    held: frozenset[str], steps: list[tuple[Any, ...]]
) -> None:
    lend(held, steps)


def union_of_scopes(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    return replace(narrowed(parent, wish, **when), scopes=parent.scopes | (wish.scopes or frozenset()))


def other_tools(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    given = narrowed(parent, wish, **when)
    return replace(given, bounds=Bounds(wish.tools, given.bounds.resources, given.bounds.until))


def other_resources(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    given = narrowed(parent, wish, **when)
    return replace(given, bounds=Bounds(given.bounds.tools, wish.resources, given.bounds.until))


def longer_life(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    given, now = narrowed(parent, wish, **when), when["now"]
    until = now + (wish.life_s or 3600.0)
    return replace(given, bounds=Bounds(given.bounds.tools, given.bounds.resources, until))


def nothing_to_revoke(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    given = narrowed(parent, wish, **when)
    return replace(given, rests_on=given.rests_on[-1:])


def more_trust(narrowed: Narrow, parent: Principal, wish: Wish, **when: Any) -> Principal:
    return replace(narrowed(parent, wish, **when), trust=60)


BROKEN = [union_of_scopes, other_tools, other_resources, longer_life, nothing_to_revoke, more_trust]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: str(broken.__name__))
def test_a_narrowing_that_widens_is_found_out(
    broken: Callable[..., Principal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The property above can fail: each of these makes it."""
    right = delegation.narrowed
    monkeypatch.setattr(delegation, "narrowed", lambda *about, **when: broken(right, *about, **when))

    @settings(
        max_examples=3000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(SETS, CHAINS)
    def chain(held: frozenset[str], steps: list[tuple[Any, ...]]) -> None:
        lend(held, steps)

    with pytest.raises(AssertionError, match=r"beyond|outlives"):
        chain()


def test_the_chains_of_the_property_do_hand_on() -> None:
    """A property over chains that are all refused would show nothing."""
    wish = Wish(agent="sub", narrow=True, life_s=10.0)
    steps: list[tuple[Any, ...]] = [("delegate", 0, wish), ("delegate", 2, wish), ("exchange", 0, 1, wish)]
    assert lend(frozenset({"**"}), steps) == 5


def test_a_token_without_its_lineage_would_be_found_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the person's scopes change, a child is made of what its parent is given now."""
    monkeypatch.setattr(Tokens, "lineage", lambda *about: Lineage())
    steps: list[tuple[Any, ...]] = [
        ("delegate", 0, Wish(agent="sub", scopes=frozenset({"*b"}))),
        ("delegate", 2, Wish(scopes=frozenset({"ab"}))),
        ("configure", frozenset({"a*"})),  # meets `ab`, and of `*b` nothing that is a pattern
    ]
    with pytest.raises(AssertionError, match="beyond the parent"):
        lend(frozenset({"**"}), steps)
