"""What may be handed on, to whom, and in whose name?"""

from math import inf
from typing import Any

import pytest

from holdfast.identity.delegation import Undelegable, Wider, Wish, delegate, depth, in_person
from holdfast.model import defaults
from holdfast.model.bounds import Bounds
from holdfast.model.call import Principal
from tests.requirements import requirement

NOW = 1000.0


def person(**more: Any) -> Principal:
    said = {"user": "alice", "agent": "person", "scopes": frozenset({"orders:*"}), "trust": 60}
    return Principal(**{**said, "roles": frozenset({"operator"}), **more})


def handed(parent: Principal, jti: str = "1", **wish: Any) -> Principal:
    return delegate(parent, Wish(**wish), jti=jti, now=NOW)


@requirement("AUT-2")
def test_an_agent_gets_what_was_asked_for_and_no_role() -> None:
    wish: dict[str, Any] = {
        "scopes": frozenset({"orders:read"}),
        "tools": frozenset({"shop.*"}),
        "life_s": 60.0,
    }
    given = handed(person(rests_on=("key:k1",)), agent="bot", **wish)
    assert (given.id, given.act, given.roles) == ("alice/bot", ("bot",), frozenset())
    assert given.scopes == {"orders:read"}
    assert given.bounds == Bounds(frozenset({"shop.*"}), None, NOW + 60)
    assert given.rests_on == ("key:k1", "token:hf-1")


@requirement("AUT-2")
def test_who_acts_is_kept_from_the_caller_to_the_person() -> None:
    first = handed(person(), agent="planner")
    second = handed(first, "2", agent="worker")
    third = handed(second, "3", agent="helper")
    assert third.act == ("helper", "worker", "planner")
    assert third.rests_on == ("token:hf-1", "token:hf-2", "token:hf-3")
    assert depth(third) == 3


@requirement("AUT-5")
def test_the_agent_a_person_named_answers_for_whoever_it_hands_on_to() -> None:
    """Else a rule about it, a budget or a halt would end at a new name."""
    first = handed(person(), agent="planner")
    assert handed(first, "2", agent="payments-bot").id == "alice/planner"
    by_key = Principal(user="alice", agent="planner", scopes=frozenset({"orders:*"}))
    assert handed(by_key, agent="payments-bot").id == "alice/planner"
    assert handed(by_key, agent="payments-bot").act == ("payments-bot", "planner")


@requirement("AUT-2")
def test_a_call_credential_is_one_tool_and_one_resource_for_a_moment_of_the_same_agent() -> None:
    bot = handed(person(), agent="bot")
    call = handed(
        bot, "2", tools=frozenset({"shop.refund"}), resources=frozenset({"orders/o-1"}), life_s=30.0
    )
    assert (call.id, call.act) == (bot.id, ("bot",))
    assert call.bounds.reaches("shop.refund", ["orders/o-1"])
    assert not call.bounds.reaches("shop.refund", ["orders/o-2"])
    assert not call.bounds.reaches("shop.cancel", ["orders/o-1"])


@pytest.mark.parametrize(
    ("wish", "more"),
    [
        ({"scopes": frozenset({"orders:read", "mail:send"})}, "scope 'mail:send'"),
        ({"scopes": frozenset({"**"})}, "scope '\\*\\*'"),
        ({"tools": frozenset({"desk.send"})}, "tool 'desk.send'"),
        ({"resources": frozenset({"orders/**"})}, "resource 'orders/\\*\\*'"),
        ({"life_s": 101.0}, "a life of 101 s"),
    ],
)
def test_more_than_is_held_is_refused_with_what_would_be_given(wish: dict[str, Any], more: str) -> None:
    bounds = Bounds(frozenset({"shop.*"}), frozenset({"orders/*"}), NOW + 100)
    parent = person(bounds=bounds)
    with pytest.raises(Wider, match=f"you cannot hand on {more}") as refused:
        handed(parent, agent="bot", **wish)
    would = refused.value.given
    assert would == handed(parent, agent="bot", narrow=True, **wish)
    assert would.bounds.meet(bounds) == would.bounds


def test_the_usual_life_is_cut_to_what_is_left() -> None:
    assert handed(person(), agent="bot").bounds.until == NOW + defaults.DELEGATION_S
    assert handed(person(bounds=Bounds(until=NOW + 5)), agent="bot").bounds.until == NOW + 5
    long = handed(person(), agent="bot", life_s=1e9, narrow=True)
    assert long.bounds.until == NOW + defaults.DELEGATION_MOST_S
    with pytest.raises(Wider, match="a life of"):
        handed(person(), agent="bot", life_s=defaults.DELEGATION_MOST_S + 1)


def test_nothing_is_handed_on_from_what_has_ended() -> None:
    with pytest.raises(Undelegable, match="has ended"):
        handed(person(bounds=Bounds(until=NOW)), agent="bot", narrow=True)


def test_a_chain_has_an_end() -> None:
    held = person()
    for number in range(defaults.DELEGATION_DEPTH):
        held = handed(held, str(number), agent=f"a{number}")
    with pytest.raises(Undelegable, match="none may follow"):
        handed(held, "x", agent="one-more")
    with pytest.raises(Undelegable, match="none may follow"):  # nor by narrowing what the same agent holds
        handed(held, "x")


@pytest.mark.parametrize("agent", ["", "a b", "person", "local", "x" * 129, "b\u043et", "a\n", "b\u202eot"])
def test_an_agent_has_a_plain_name(agent: str) -> None:
    with pytest.raises(Undelegable):
        handed(person(), agent=agent)


@pytest.mark.parametrize(
    "pattern",
    [
        "orders:r\u0435ad",  # a Cyrillic letter
        "orders:\u200bread",
        "orders\uff1aread",  # a wide colon
        "orders:read\n",
        " orders:read",
        "orders:**x",
        "**:a:**:b:**",
        "a" * 300,
        "",
    ],
)
@pytest.mark.parametrize("kind", ["scopes", "tools", "resources"])
def test_a_pattern_is_plain_text(kind: str, pattern: str) -> None:
    wish: dict[str, Any] = {kind: frozenset({pattern})}
    with pytest.raises(Undelegable):
        handed(person(scopes=frozenset({"**"})), agent="bot", narrow=True, **wish)


def test_a_wish_has_an_end_too() -> None:
    many = frozenset(f"orders:r{number}" for number in range(100))
    with pytest.raises(Undelegable, match="use wider ones"):
        handed(person(), agent="bot", scopes=many)


@requirement("AUT-5")
def test_an_actor_who_has_shown_who_they_are_is_narrowed_by_what_they_hold() -> None:
    bot = Principal(
        user="service",
        agent="bot",
        scopes=frozenset({"orders:read"}),
        trust=10,
        bounds=Bounds(frozenset({"shop.read"}), until=NOW + 50),
        rests_on=("key:b",),
    )
    given = handed(person(rests_on=("key:a",)), actor=bot)
    assert (given.id, given.act, given.trust) == ("alice/bot", ("bot",), 10)
    assert given.scopes == {"orders:read"}
    assert given.bounds == Bounds(frozenset({"shop.read"}), None, NOW + 50)
    assert given.rests_on == ("key:a", "key:b", "token:hf-1")
    with pytest.raises(Wider, match="the actor does not hold it"):
        handed(person(), actor=bot, scopes=frozenset({"orders:write"}))


def test_an_actor_does_not_bring_a_name_it_was_given() -> None:
    """What an agent calls those below it is its own choice: it opens no rule about another agent."""
    below = handed(handed(person(), agent="bot"), "2", agent="payments-bot")
    given = handed(person(), "3", actor=below)
    assert (given.id, given.act) == ("alice/bot", ("payments-bot", "bot"))


def test_a_person_is_no_actor_and_tenants_do_not_mix() -> None:
    with pytest.raises(Undelegable, match="only an agent acts"):
        handed(person(), actor=person(user="bob"))
    other = Principal(tenant="south", user="bob", agent="bot", scopes=frozenset({"**"}))
    with pytest.raises(Undelegable, match="different tenants"):
        handed(person(), actor=other)


def test_a_person_says_to_whom() -> None:
    assert in_person(person())
    assert in_person(person(rests_on=("key:k", "token:of-an-issuer")))
    with pytest.raises(Undelegable, match="say to which agent"):
        handed(person())


def test_the_gateway_itself_hands_on_nothing() -> None:
    with pytest.raises(Undelegable):
        handed(Principal(user="holdfast", system=True, scopes=frozenset({"**"})), agent="bot")
    assert person().bounds.until == inf
