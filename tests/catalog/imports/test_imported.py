"""Does an upstream's list come into the catalog step by step, and nothing of it silently?"""

from typing import Any

import pytest

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.imports.imported import accept
from holdfast.catalog.imports.lock import Lock
from holdfast.model.vocabulary import ToolStatus
from tests.catalog.imports.descriptors import PATH, offered, take, tool, versions
from tests.requirements import requirement

SENDS = tool(description="Reads a file and sends it away.")


def accepted(old: dict[str, Any], new: dict[str, Any], **options: Any) -> Any:
    """What stands after an operator accepted a change."""
    waiting = take(new, lock=take(old, **options).lock, **options)
    assert waiting.quarantined
    return take(new, lock=accept(waiting.lock, "files", old["name"], "ann", "noon"), **options)


@requirement("REG-8")
def test_a_new_tool_is_trusted_on_first_use_and_locked() -> None:
    taken = take(tool())
    assert versions(taken) == ["1.0.0"]
    assert (taken.quarantined, taken.reports, taken.statuses) == ({}, (), {})
    again = take(tool(), lock=taken.lock, now="later")
    assert again.lock == taken.lock
    assert again.offers == taken.offers


@requirement("REG-8")
def test_a_reworded_description_of_the_same_words_is_a_patch() -> None:
    first = take(tool())
    second = take(tool(description="reads a FILE: whole"), lock=first.lock)
    assert versions(second) == ["1.0.0", "1.0.1"]
    assert second.statuses == {("files.read_file", "1.0.0"): ToolStatus.DEPRECATED}
    assert "changed cosmetically at /description; accepted" in second.reports[0]
    assert "is now version '1.0.1'" in second.reports[1]


@requirement("REG-8")
def test_what_only_looks_different_is_shown_and_moves_no_version() -> None:
    first = take(tool())
    second = take(tool(title="Read", _meta={"n": 1}), lock=first.lock)
    assert versions(second) == ["1.0.0"]
    assert second.offers[0].native == tool(title="Read", _meta={"n": 1})
    assert len(second.reports) == 1
    assert take(tool(title="Read", _meta={"n": 1}), lock=second.lock).reports == ()


@requirement("REG-8")
def test_a_material_change_leaves_the_old_contract_in_quarantine_with_the_new_one_waiting() -> None:
    first = take(tool())
    second = take(SENDS, lock=first.lock, now="later")
    assert [offer.contract for offer in second.offers] == [offer.contract for offer in first.offers]
    assert second.statuses == {("files.read_file", "1.0.0"): ToolStatus.QUARANTINED}
    pending = second.lock.tools("files")["read_file"].pending
    assert pending is not None
    assert (pending.descriptor, pending.seen_at) == (SENDS, "later")
    assert '+description: "Reads a file and sends it away."' in pending.diff
    assert str(second.quarantined["read_file"]) == pending.diff
    assert take(SENDS, lock=second.lock, now="much later").lock == second.lock


@requirement("REG-8")
def test_an_accepted_change_becomes_the_next_version_and_the_old_one_stays_beside_it() -> None:
    after = accepted(tool(), SENDS)
    assert (after.quarantined, versions(after)) == ({}, ["1.0.0", "1.1.0"])
    assert after.statuses == {("files.read_file", "1.0.0"): ToolStatus.DEPRECATED}
    current = after.lock.tools("files")["read_file"].current
    assert (current.accepted_by, current.version) == ("ann", "1.1.0")
    listed = MemoryCatalog().replace("files", after.offers, after.statuses)
    assert [listing.native["description"] for listing in listed if listing.native] == [
        tool()["description"],
        SENDS["description"],
    ]


@requirement("REG-5", "REG-8")
@pytest.mark.parametrize(
    ("properties", "required", "version"),
    [
        ({"path": PATH, "tail": {"type": "integer"}}, ["path"], "1.1.0"),
        ({"path": PATH}, [], "1.1.0"),
        ({"path": PATH, "host": PATH}, ["path", "host"], "2.0.0"),
        ({"file": PATH}, ["file"], "2.0.0"),
        ({"path": {"type": "integer"}}, ["path"], "2.0.0"),
        ({"path": {**PATH, "maxLength": 9}}, ["path"], "2.0.0"),
    ],
)
def test_how_far_the_version_moves_is_computed(properties: Any, required: list[str], version: str) -> None:
    new = tool(inputSchema={"type": "object", "properties": properties, "required": required})
    after = accepted(tool(), new)
    assert versions(after)[-1] == version
    MemoryCatalog().replace("files", after.offers, after.statuses)  # which holds each step to its promise


@requirement("REG-8")
def test_a_tool_that_goes_back_to_what_was_accepted_is_free_again() -> None:
    away = take(SENDS, lock=take(tool()).lock)
    back = take(tool(), lock=away.lock)
    assert back.quarantined == {}
    assert back.statuses == {}
    assert back.lock.tools("files")["read_file"].pending is None
    assert "no longer in quarantine" in back.reports[0]


@requirement("REG-8", "REG-1")
def test_all_versions_of_a_tool_in_quarantine_are_in_quarantine() -> None:
    after = accepted(tool(), SENDS)
    again = take(tool(description="Reads a file and deletes it."), lock=after.lock)
    assert set(again.statuses.values()) == {ToolStatus.QUARANTINED}
    assert len(again.statuses) == len(again.offers) == 2


@requirement("REG-8")
def test_a_tool_that_vanished_is_not_offered_and_not_forgotten() -> None:
    first = take(tool(), tool("other"), overlay={"read_file": {"effect": "READ_ONLY"}})
    gone = take(tool("other"), lock=first.lock)
    assert versions(gone) == []
    back = take(SENDS, tool("other"), lock=gone.lock)
    assert list(back.quarantined) == ["read_file"]  # coming back does not make it new


@requirement("REG-8", "ECO-3")
def test_a_newcomer_with_hidden_characters_can_be_accepted() -> None:
    hidden = tool(description="Reads\u200b a file")
    waiting = take(hidden)
    assert versions(waiting) == ["0.0.0"]
    after = take(hidden, lock=accept(waiting.lock, "files", "read_file", "ann", "noon"))
    assert (versions(after), after.quarantined, after.statuses) == (["1.0.0"], {}, {})
    assert any("is flagged" in report for report in after.reports)


@requirement("REG-1")
def test_odd_names_are_reported_made_visible_and_skipped() -> None:
    taken = take(tool("read\u200bfile"), tool("re\u0430d"), tool("a b"), tool("x" * 200), tool())
    assert [offer.contract.identity.name for offer in taken.offers] == ["read_file"]
    assert "read<U+200B>file" in taken.reports[0]
    assert all(report.isprintable() for report in taken.reports)
    assert len(taken.reports) == 4


@requirement("REG-1", "REG-8")
def test_of_names_that_look_alike_only_the_one_known_already_is_free() -> None:
    first = take(tool())
    second = take(tool(), tool("Read_File"), lock=first.lock)
    assert list(second.quarantined) == ["Read_File"]
    assert "looks like that of 'read_file'" in str(second.quarantined["Read_File"])
    assert versions(second) == ["1.0.0"]
    gone = take(tool("read_fi1e"), lock=first.lock)  # also where the other one is not listed any more
    assert list(gone.quarantined) == ["read_fi1e"]


@requirement("REG-1", "REG-8")
def test_look_alikes_that_come_together_all_wait_until_accepted() -> None:
    both = take(tool(), tool("Read_File"))
    assert set(both.quarantined) == {"read_file", "Read_File"}
    lock = accept(both.lock, "files", "read_file", "ann", "noon")
    one = take(tool(), tool("Read_File"), lock=lock)
    assert list(one.quarantined) == ["Read_File"]
    lock = accept(one.lock, "files", "Read_File", "ann", "noon")
    assert take(tool(), tool("Read_File"), lock=lock).quarantined == {}


@requirement("REG-1")
def test_a_name_listed_twice_is_never_taken_silently() -> None:
    taken = take(tool(), SENDS, tool("other"))
    assert [offer.contract.identity.name for offer in taken.offers] == ["other"]
    assert "listed twice with different descriptors" in taken.reports[0]
    same = take(tool(), tool())
    assert versions(same) == ["1.0.0"]
    assert "listed twice with one descriptor" in same.reports[0]


@requirement("REG-1", "REG-8")
def test_a_known_tool_that_is_listed_twice_is_put_in_quarantine() -> None:
    first = take(tool())
    twice = take(tool(), SENDS, lock=first.lock)
    assert list(twice.quarantined) == ["read_file"]
    assert twice.statuses == {("files.read_file", "1.0.0"): ToolStatus.QUARANTINED}
    assert twice.lock == first.lock


@requirement("REG-8")
def test_a_stricter_overlay_leaves_no_laxer_version_usable() -> None:
    lax = take(tool(), overlay={"read_file": {"effect": "READ_ONLY"}})
    strict = take(tool(), lock=lax.lock)
    assert versions(strict) == ["1.0.0", "2.0.0"]
    assert strict.statuses == {("files.read_file", "1.0.0"): ToolStatus.SUNSET}
    assert offered(strict)[-1].effect == "HIGH_RISK_EXTERNAL"


@requirement("REG-8", "CON-8")
def test_trust_withdrawn_leaves_no_laxer_version_usable() -> None:
    reads = tool(annotations={"readOnlyHint": True})
    trusted = take(reads, trust=True)
    doubted = take(reads, lock=trusted.lock)
    assert versions(doubted) == ["1.0.0", "2.0.0"]
    assert doubted.statuses == {("files.read_file", "1.0.0"): ToolStatus.SUNSET}


@requirement("REG-8")
def test_an_annotation_that_turns_harmless_overnight_is_quarantined_even_where_trusted() -> None:
    first = take(tool(), trust=True)
    second = take(tool(annotations={"readOnlyHint": True}), lock=first.lock, trust=True)
    assert list(second.quarantined) == ["read_file"]
    assert offered(second)[-1].effect.writes


@requirement("REG-5")
def test_an_overlay_may_name_the_version_as_long_as_it_is_true() -> None:
    named = {"read_file": {"effect": "READ_ONLY", "version": "3.1.0"}}
    first = take(tool(), overlay=named)
    assert versions(first) == ["3.1.0"]
    other = {"read_file": {"effect": "READ_ONLY", "version": "3.1.0", "scopes": ["files:other"]}}
    second = take(tool(), overlay=other, lock=first.lock)
    assert versions(second) == []
    assert "version '3.1.0' is taken by another contract" in second.reports[0]
    assert second.lock == first.lock
    small = {"read_file": {"effect": "READ_ONLY", "version": "3.1.1", "scopes": ["files:other"]}}
    third = take(tool(), overlay=small, lock=first.lock)
    assert versions(third) == []
    assert "'/security/required_scopes' changed: needs a major version" in third.reports[0]
    large = {"read_file": {"effect": "READ_ONLY", "version": "4.0.0", "scopes": ["files:other"]}}
    assert versions(take(tool(), overlay=large, lock=first.lock)) == ["3.1.0", "4.0.0"]
    wrong = {"read_file": {"effect": "READ_ONLY", "version": "soon"}}
    for lock in (Lock(), first.lock):
        assert "is not a semantic version" in take(tool(), overlay=wrong, lock=lock).reports[0]
    back = {"read_file": {"effect": "READ_ONLY", "version": "2.0.0"}}
    assert "is older than '3.1.0'" in take(tool(), overlay=back, lock=first.lock).reports[0]


@requirement("CON-8")
def test_a_refused_tool_is_no_late_comer_once_its_overlay_is_right() -> None:
    wrong = take(tool(), tool("other"), overlay={"read_*": {"effect": "LOW_RISK_INTERNAL"}})
    assert versions(wrong) == []
    right = take(tool(), tool("other"), overlay={"read_*": {"effect": "READ_ONLY"}}, lock=wrong.lock)
    assert offered(right)[0].effect == "READ_ONLY"
    assert versions(right) == ["1.0.0"]


@requirement("REG-1")
def test_tools_of_two_upstreams_do_not_meet() -> None:
    lock = take(tool()).lock
    assert lock.tools("other") == {}
    assert take(tool(), lock=lock).lock == lock
    assert Lock().tools("files") == {}


def test_a_long_name_mounted_plainly_is_reported() -> None:
    taken = take(tool("n" * 100), plain=True)
    assert "more than 64 characters" in taken.reports[0]
    assert len(taken.offers) == 1
    assert take(tool("n" * 100)).reports == ()


def test_an_empty_list_changes_nothing() -> None:
    assert take().lock == Lock()
    locked = take(tool()).lock
    assert take(lock=locked).lock == locked
