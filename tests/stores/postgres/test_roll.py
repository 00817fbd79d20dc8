"""Who is called dead, and who leads, by what a process has heard?"""

from holdfast.stores.postgres.roll import FRESH, GRACE, HEARTBEAT_S, KEPT_S, Roll, Seen, lock_of
from tests.requirements import requirement

GRACE_S = GRACE * HEARTBEAT_S
FRESH_S = FRESH * HEARTBEAT_S
OTHER = Seen(1_700_000_000.0, locked=False)
"""A beat of somebody who does not beat again."""


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def listening(time: Time, seconds: float = GRACE_S, **seen: Seen) -> Roll:
    """One that has been listening for some time, in which nobody but itself beat again."""
    roll = Roll("w_me", time)
    roll.look(seen, time.now)
    time.now += seconds
    roll.look(seen, time.now)
    return roll


@requirement("IDM-8")
def test_one_that_has_its_lock_is_alive_however_silent() -> None:
    roll = listening(Time(), w_stopped=OTHER._replace(locked=True))
    assert roll.alive("w_stopped")
    assert roll.alive("w_stopped.3"), "a lane lives as long as its worker"


@requirement("IDM-8")
def test_one_without_its_lock_is_dead_once_it_was_silent_for_longer_than_the_grace() -> None:
    time = Time()
    roll = listening(time, GRACE_S - 0.1, w_dead=OTHER)
    assert roll.alive("w_dead")
    time.now += 0.1
    assert not roll.alive("w_dead")
    assert not roll.alive("w_dead.0")


@requirement("IDM-8")
def test_one_that_beats_is_alive_whatever_time_the_server_tells() -> None:
    time = Time()
    roll = listening(time, w_other=OTHER)
    assert not roll.alive("w_other")
    set_back = Seen(OTHER.beat - 86_400, locked=False)
    roll.look({"w_other": set_back}, time.now)
    assert roll.alive("w_other")


@requirement("IDM-8")
def test_only_the_rows_of_those_that_are_long_dead_are_forgotten() -> None:
    time = Time()
    seen = {"w_dead": OTHER, "w_stopped": OTHER._replace(locked=True)}
    roll = listening(time, GRACE_S, **seen)
    assert roll.look(seen, time.now) == []
    assert roll.look(seen, time.now + KEPT_S + 1) == ["w_dead"]


@requirement("IDM-8")
def test_nobody_is_called_dead_by_one_who_has_not_listened_for_as_long_as_the_grace() -> None:
    """A server that was restarted has no locks, and its last words of everybody are old."""
    time, seen = Time(), {"w_other": OTHER}
    roll = Roll("w_me", time)
    assert roll.alive("w_other"), "it has not looked at all"
    roll.look(seen, time.now)
    time.now += GRACE_S - 0.1
    assert roll.alive("w_other")
    time.now += 0.1
    assert not roll.alive("w_other")
    roll.lost()
    assert roll.alive("w_other")
    roll.look(seen, time.now)
    assert roll.alive("w_other"), "after a loss it listens anew"


@requirement("IDM-8")
def test_one_that_nobody_has_heard_of_is_dead_only_by_a_later_look() -> None:
    """It may have come after the last look."""
    time = Time()
    roll = listening(time)
    time.now += 0.5
    assert roll.alive("w_new")
    roll.look({}, time.now - 0.1)
    assert roll.alive("w_new"), "this look was under way before it was asked after"
    roll.look({}, time.now + 0.1)
    assert not roll.alive("w_new")
    roll.look({"w_new": OTHER._replace(locked=True)}, time.now + 1)
    assert roll.alive("w_new")


@requirement("IDM-8")
def test_one_is_alive_to_itself() -> None:
    assert listening(Time(), w_me=OTHER).alive("w_me")
    assert Roll("w_me", Time()).alive("w_me.7")


@requirement("PPL-4")
def test_the_first_of_those_that_were_heard_of_leads() -> None:
    beat = OTHER._replace(locked=True)
    assert listening(Time(), FRESH_S - 0.1, w_me=beat, w_zoe=beat).leads()
    assert not listening(Time(), FRESH_S - 0.1, w_me=beat, w_ann=beat).leads()
    assert listening(Time(), FRESH_S, w_me=beat, w_ann=beat).leads(), "a stopped one hands over"


@requirement("PPL-4")
def test_nobody_leads_who_hears_nothing() -> None:
    roll = Roll("w_me", Time())
    assert not roll.leads()
    roll.look({}, 1.0)
    assert roll.leads()
    roll.lost()
    assert not roll.leads()


def test_a_lock_is_a_positive_number_that_the_server_takes() -> None:
    assert all(0 <= lock_of(f"w_{number}") < 2**31 for number in range(1000))
