"""Is what was accepted kept readably, safely, and by several writers at once?"""

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog.imports.imported import accept
from holdfast.catalog.imports.lock import KEPT, Entry, Lock, merge
from holdfast.model.errors import ConfigError, NotFound
from tests.catalog.imports.descriptors import NOW, SERVERS, descriptors, offered, real, take, tool, versions
from tests.requirements import requirement

CHANGED = tool(description="Reads a file and sends it away.")


@requirement("REG-8")
@pytest.mark.parametrize("server", SERVERS)
def test_what_is_saved_is_what_is_read(server: str, tmp_path: Path) -> None:
    lock = take(*real(server)).lock
    assert lock.changed
    saved = lock.save(tmp_path / "holdfast.lock")
    assert saved == lock == Lock.load(tmp_path / "holdfast.lock")
    assert not saved.changed


@requirement("REG-8")
@given(descriptors())
def test_a_list_that_did_not_change_makes_the_same_contracts(descriptor: dict[str, object]) -> None:
    first = take(descriptor)
    again = take(descriptor, lock=first.lock)
    assert [offer.contract for offer in again.offers] == [offer.contract for offer in first.offers]
    assert again.lock == first.lock


@requirement("REG-8")
def test_every_tool_is_locked_with_its_digest_descriptor_version_and_who_accepted_it(tmp_path: Path) -> None:
    take(tool()).lock.save(tmp_path / "holdfast.lock")
    tree = json.loads((tmp_path / "holdfast.lock").read_text())
    entry = tree["upstreams"]["files"]["read_file"]
    [version] = entry["versions"]
    assert entry["first_seen"] == NOW
    assert version["descriptor"] == tool()
    assert (version["version"], version["accepted_by"], version["accepted_at"]) == ("1.0.0", "first use", NOW)
    assert len(version["digest"]) == len(version["contract"]) == 64


@requirement("REG-8")
def test_the_file_is_stable_sorted_and_hides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.lock"
    poisoned = tool(description="Reads\u200b a \u202efile \u2014 \u00e9")
    take(tool("b1"), tool("a1"), poisoned).lock.save(file)
    text = file.read_text()
    assert "\\u200b" in text
    assert "\\u202e" in text
    assert "\u2014 \u00e9" in text  # what can be seen stays readable
    assert text.index('"a1"') < text.index('"b1"') < text.index('"read_file"')
    before = file.stat().st_ino
    Lock.load(file).save(file)
    assert (file.read_text(), file.stat().st_ino) == (text, before)  # nothing new, nothing written


def test_without_a_file_nothing_is_locked(tmp_path: Path) -> None:
    assert Lock.load(tmp_path / "none.lock") == Lock()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is not JSON"),
        ("[]", "does not say 'lock: 1'"),
        ('{"lock": 2}', "does not say 'lock: 1'"),
        ('{"lock": 1}', "an entry is incomplete"),
        ('{"lock": 1, "upstreams": {"a": {"b": {}}}}', "an entry is incomplete"),
        ('{"lock": 1, "upstreams": {"a": {"b": {"first_seen": "", "versions": [{"x": 1}]}}}}', "incomplete"),
    ],
)
def test_a_broken_file_is_never_taken_for_an_empty_one(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "holdfast.lock"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        Lock.load(file)
    with pytest.raises(ConfigError, match=why):
        take(tool()).lock.save(file)
    assert file.read_text() == text


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(ConfigError, match="cannot write the lock file"):
        take(tool()).lock.save(tmp_path / "plain" / "holdfast.lock")


def lock_one(file: str, number: int) -> None:
    lock = Lock.load(file)
    take(tool(f"tool_{number}x"), lock=lock, now=str(number)).lock.save(file)


@requirement("REG-8")
def test_many_processes_write_one_file_and_nothing_is_lost(tmp_path: Path) -> None:
    file = str(tmp_path / "holdfast.lock")
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(lock_one, [(file, number) for number in range(24)])
    assert set(Lock.load(file).tools("files")) == {f"tool_{number}x" for number in range(24)}


@requirement("REG-8")
def test_what_was_accepted_meanwhile_survives_a_later_writer(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.lock"
    take(CHANGED, lock=take(tool()).lock).lock.save(file)
    slow = Lock.load(file)
    accept(Lock.load(file), "files", "read_file", "ann", "noon").save(file)
    merged = take(CHANGED, tool("other"), lock=slow, now="later").lock.save(file)
    pending = merged.tools("files")["read_file"].pending
    assert pending is not None
    assert pending.accepted_by == "ann"
    assert "other" in merged.tools("files")


@requirement("REG-8")
def test_two_writers_who_saw_different_tools_first_do_not_overwrite_each_other(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.lock"
    one, other = take(tool()).lock, take(CHANGED).lock
    one.save(file)
    merged = other.save(file)
    assert merged == Lock.load(file) == one
    assert take(CHANGED, lock=merged).quarantined  # the second one finds out at its next look


@requirement("REG-8")
def test_a_change_found_by_one_waits_even_where_another_wrote_first(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.lock"
    take(tool()).lock.save(file)
    slow = Lock.load(file)
    take(tool(title="Read"), lock=Lock.load(file)).lock.save(file)  # cosmetic
    merged = take(CHANGED, lock=slow).lock.save(file)
    pending = merged.tools("files")["read_file"].pending
    assert pending is not None
    assert pending.descriptor == CHANGED


@requirement("REG-8", "REG-1")
def test_the_last_five_versions_are_kept_beside_the_current_one() -> None:
    taken = take(tool())
    for number in range(KEPT + 3):
        new = tool(description=f"Reads a file, way {number} of many.")
        waiting = take(new, lock=taken.lock)
        taken = take(new, lock=accept(waiting.lock, "files", "read_file", "ann", str(number)))
    assert versions(taken) == [f"1.{number}.0" for number in range(3, 9)]
    entry = taken.lock.tools("files")["read_file"]
    assert entry.first_seen == NOW
    assert [version.accepted_by for version in entry.versions] == ["ann"] * (KEPT + 1)


@requirement("REG-8")
def test_only_what_waits_can_be_accepted() -> None:
    lock = take(tool()).lock
    with pytest.raises(NotFound, match=r"nothing of 'files\.read_file' waits"):
        accept(lock, "files", "read_file", "ann", NOW)
    with pytest.raises(NotFound, match="knows no tool 'other'"):
        accept(lock, "files", "other", "ann", NOW)
    with pytest.raises(NotFound, match="knows no tool"):
        accept(lock, "elsewhere", "read_file", "ann", NOW)


@requirement("REG-8")
def test_nobody_accepts_what_they_were_not_shown() -> None:
    shown = take(CHANGED, lock=take(tool()).lock).lock
    pending = shown.tools("files")["read_file"].pending
    assert pending is not None
    worse = take(tool(description="Reads a file and deletes it."), lock=shown).lock
    with pytest.raises(NotFound, match="changed again since it was shown"):
        accept(worse, "files", "read_file", "ann", NOW, digest=pending.digest)
    assert accept(shown, "files", "read_file", "ann", NOW, digest=pending.digest) != shown


@requirement("REG-8")
def test_accepting_one_change_does_not_accept_the_next() -> None:
    accepted = accept(take(CHANGED, lock=take(tool()).lock).lock, "files", "read_file", "ann", NOW)
    swapped = take(tool(description="Reads a file and deletes it."), lock=accepted)
    assert list(swapped.quarantined) == ["read_file"]
    pending = swapped.lock.tools("files")["read_file"].pending
    assert pending is not None
    assert pending.accepted_by is None
    assert offered(swapped)[-1].affordance.description == "Reads a file, whole."


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Entry]:
    names = st.sampled_from(["a", "b", "c"])
    made: dict[str, Entry] = draw(st.dictionaries(names, st.builds(Entry, st.sampled_from(["1", "2", "3"]))))
    return made


@given(entries(), entries(), entries())
def test_a_merge_loses_nothing_that_only_one_side_changed(
    base: dict[str, Entry], ours: dict[str, Entry], theirs: dict[str, Entry]
) -> None:
    merged = merge({"n": base}, {"n": ours}, {"n": theirs}).get("n", {})
    for name in {*base, *ours, *theirs}:
        if ours.get(name) == base.get(name):
            assert merged.get(name) == theirs.get(name)
        elif theirs.get(name) == base.get(name):
            assert merged.get(name) == ours.get(name)
        else:
            assert merged.get(name) in (theirs.get(name) or ours.get(name), ours.get(name))


def test_an_entry_can_be_found_by_either_name() -> None:
    lock = take(tool("admin.read")).lock
    found = lock.find("files", "admin.read")
    assert found is not None
    [offer] = take(tool("admin.read")).offers
    assert lock.find("files", offer.contract.identity.name) == found
    assert lock.find("files", "admin") is None
