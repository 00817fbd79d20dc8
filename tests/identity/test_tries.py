"""Can an approver secret be found out by trying?"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.identity import Identity, Person, Unauthenticated
from holdfast.identity.identity import SECRET, USER
from holdfast.identity.keys import hash_random
from holdfast.identity.tries import FORGOTTEN_S, FREE, TooMany, Tries
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.spoiled import spoiled

RIGHT = "correct horse"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def identity(clock: ManualClock) -> Identity:
    people = [
        Person(name=name, roles=frozenset({"operator"}), secret=hash_random(RIGHT))
        for name in ("petra", "rolf")
    ]
    return Identity.local(people, now=clock.now)


def tried(identity: Identity, secret: str, name: str = "petra") -> str:
    try:
        return "in" if identity.authenticate({USER: name, SECRET: secret}).roles else "nobody"
    except TooMany as error:
        return f"wait {error.wait_s:g}"
    except Unauthenticated:
        return "wrong"


@requirement("APR-2")
async def test_who_is_wrong_five_times_waits_and_longer_each_time(
    identity: Identity, clock: ManualClock
) -> None:
    assert [tried(identity, f"guess {n}") for n in range(FREE)] == ["wrong"] * FREE
    assert tried(identity, "guess") == "wait 2"
    for wait in (2, 4, 8, 16, 32, 64, 128, 256, 300):
        assert tried(identity, RIGHT) == f"wait {wait}", "nothing is looked at meanwhile"
        await clock.advance(wait)
        assert tried(identity, "guess") == "wrong"
    assert tried(identity, "guess") == "wait 300"


async def test_the_right_one_after_the_wait_is_let_in_and_starts_anew(
    identity: Identity, clock: ManualClock
) -> None:
    for n in range(FREE):
        tried(identity, f"guess {n}")
    await clock.advance(2)
    assert tried(identity, RIGHT) == "in"
    assert [tried(identity, f"guess {n}") for n in range(FREE)] == ["wrong"] * FREE


async def test_one_that_was_right_before_is_let_in_while_others_guess(identity: Identity) -> None:
    assert tried(identity, RIGHT) == "in"
    for n in range(FREE + 1):
        tried(identity, f"guess {n}")
    assert tried(identity, RIGHT) == "in"


async def test_another_person_does_not_wait(identity: Identity) -> None:
    for n in range(FREE + 1):
        tried(identity, f"guess {n}")
    assert tried(identity, RIGHT, "rolf") == "in"


async def test_it_is_forgotten_after_a_while(identity: Identity, clock: ManualClock) -> None:
    for n in range(FREE):
        tried(identity, f"guess {n}")
    await clock.advance(FORGOTTEN_S)
    assert [tried(identity, f"guess {n}") for n in range(FREE)] == ["wrong"] * FREE


async def test_trying_many_at_once_is_trying_many(identity: Identity) -> None:
    with ThreadPoolExecutor(16) as pool:
        came = list(pool.map(lambda n: tried(identity, f"guess {n}"), range(100)))
    assert came.count("wrong") == FREE
    assert came.count("wait 2") == 100 - FREE


async def test_many_who_are_right_at_once_are_all_let_in(identity: Identity) -> None:
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(lambda _: tried(identity, RIGHT), range(100))) == {"in"}


async def test_what_belongs_on_record_is_told(identity: Identity) -> None:
    for n in range(FREE + 3):
        tried(identity, f"guess {n}")
    [told] = identity.approvers.guessed
    assert (told.tenant, told.person, told.times) == ("default", "petra", FREE)


async def test_names_that_nobody_has_do_not_fill_the_memory(clock: ManualClock) -> None:
    tries = Tries(clock.now)
    for n in range(10_000):
        tries.begin(str(n))
    assert len(tries._tried) <= 4096


async def test_a_proof_is_worth_nothing_for_another_person_or_secret(identity: Identity) -> None:
    proof = identity.proof(identity.authenticate({USER: "petra", SECRET: RIGHT}))
    assert "operator" in identity.authenticate({USER: "petra"}, proof).roles
    for headers, shown in (
        ({USER: "rolf"}, proof),
        ({USER: "petra"}, spoiled(proof)),
        ({USER: "petra"}, "x"),
    ):
        with pytest.raises(Unauthenticated):
            identity.authenticate(headers, shown)
