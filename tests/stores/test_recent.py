"""Is what a process knows of its own records never more than what it committed?"""

from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.recent import MOST, Recent
from tests.requirements import requirement

START = (0, GENESIS)


def written(chain: Chain, count: int) -> list[Record]:
    return [chain.append("default", f"call-{n}", "intent", 1.0, "{}") for n in range(count)]


def mark(record: Record) -> tuple[int, bytes]:
    return record.seq, record.hash


@requirement("AUD-1")
def test_what_follows_a_record_is_told_in_order_and_at_most_as_much_as_is_wanted() -> None:
    recent, records = Recent("w"), written(Chain("w"), 6)
    recent.add(records[:2])
    recent.add([])
    recent.add(records[2:])
    assert recent.after(START, 4) == records[:4]
    assert recent.after(START, 99) == records
    assert recent.after(mark(records[3]), 99) == records[4:]
    assert recent.after(mark(records[5]), 99) == []


@requirement("AUD-1")
def test_nothing_is_told_of_what_is_not_known() -> None:
    recent, records = Recent("w"), written(Chain("w"), 6)
    assert recent.after(START, 9) == []  # a new writer has written nothing
    recent.add(records[:3])
    assert recent.after((1, b"another"), 9) is None
    assert recent.after(mark(records[4]), 9) is None
    assert recent.after(START, 9) is None  # what is in the tree was let go


@requirement("AUD-1")
def test_after_a_commit_of_unknown_end_it_begins_anew() -> None:
    recent, records = Recent("w"), written(Chain("w"), 6)
    recent.add(records[:2])
    recent.forget()
    assert recent.after(START, 9) is None
    assert recent.after(mark(records[1]), 9) is None
    recent.add(records[4:])
    assert recent.after(mark(records[1]), 9) is None
    assert recent.after(mark(records[3]), 9) == records[4:]


@requirement("AUD-1")
def test_records_that_do_not_follow_take_the_place_of_those_before() -> None:
    recent, records = Recent("w"), written(Chain("w"), 6)
    recent.add(records[:2])
    recent.add(records[3:])
    assert recent.after(START, 9) is None
    assert recent.after(mark(records[2]), 9) == records[3:]


@requirement("AUD-1")
def test_only_so_many_are_kept() -> None:
    recent, records = Recent("w"), written(Chain("w"), MOST + 5)
    recent.add(records)
    assert recent.after(START, 9) is None
    assert recent.after(mark(records[4]), MOST + 5) == records[5:]


@requirement("AUD-1")
def test_somebody_is_called_once_for_every_many() -> None:
    recent, records, called = Recent("w", many=3), written(Chain("w"), 8), list[int]()
    recent.full = lambda: called.append(1)
    for record in records:
        recent.add([record])
        recent.call()
        recent.call()
    assert len(called) == 2
