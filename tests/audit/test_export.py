"""Is every touch of an exported log found, and said where?"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import orjson
import pytest

from holdfast.records.chain import Chain
from holdfast.records.export import Part
from holdfast.records.note import Signer
from tests.audit.world import Place, check, said
from tests.requirements import requirement

Lines = list[bytes]
NAMES = re.compile(r"record \d+ of writer '.*?' \(call '.*?'\)|\bline \d+")


def lines(exported: bytes) -> Lines:
    return exported.splitlines(keepends=True)


def name_of(line: bytes) -> str:
    """How a fault names the record on this line."""
    it = json.loads(line)
    return f"record {it['seq']} of writer '{it['writer']}' (call '{it['call_id']}')"


@requirement("AUD-1", "AUD-4")
def test_an_export_verifies_alone_with_the_public_key(
    thousand: Place, exported: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(exported)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.records.verify", str(file), "--key", str(thousand.key), "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["records"], told["tail_not_anchored"]) == (0, True, 1000, 0)


@requirement("AUD-1")
def test_another_key_verifies_nothing(exported: bytes) -> None:
    assert not check(exported, Signer.fresh().verifier).ok


def flipped(exported: Lines, turn: int, bit: int, lines: range) -> Lines:
    """Every line with one bit of its byte `turn` turned, where it is that long; its end is left alone."""
    out = list(exported)
    for number in lines:
        line = out[number]
        if turn < len(line) - 1:
            out[number] = line[:turn] + bytes([line[turn] ^ 1 << bit]) + line[turn + 1 :]
    return out


PLACE = len(b'{"leaf":1000,')
"""So far a line says where it belongs: two that move together would vouch for each other, so every third."""


def unfound(exported: Lines, turn: int, bit: int, place: Place, which: range) -> Iterator[bytes]:
    """The lines whose flipped bit nobody told of. Header and manifest stay whole, so that all is read."""
    touched = [exported[0], *flipped(exported[1:-1], turn, bit, which), exported[-1]]
    named = set(NAMES.findall(said(check(b"".join(touched), place.key))))
    number, further = 1, 0
    for line, was in zip(touched, exported, strict=True):
        number, further = number + further, line.count(b"\n")  # a bit may turn a letter into a line end
        if line == was or line in (exported[0], exported[-1]):
            continue
        if f"line {number}" in named or name_of(was) in named:
            continue
        try:  # a record that calls itself something else is named by what is left of its name
            if name_of(line) in named:
                continue
        except (ValueError, KeyError, TypeError):
            pass
        yield was


def flip_every_byte(place: Place, exported: bytes, bits: list[int], step: int = 1) -> None:
    every = lines(exported)
    for turn in range(0, max(map(len, every[1:-1])), step):
        apart = 3 if turn < PLACE else 1
        for bit, first in product(bits, range(apart)):
            which = range(first, len(every) - 2, apart)
            missed = list(unfound(every, turn, (bit + turn) % 8, place, which))
            assert missed == [], (turn, bit, missed[0])


EVERY = pytest.param(1, marks=pytest.mark.soak)
"""A step that misses no byte; the others take a sample of places, in every record."""


@requirement("AUD-1")
@pytest.mark.parametrize("step", [5, EVERY])
def test_a_flipped_bit_in_any_byte_of_any_record_is_found_and_named(place_of_80: Place, step: int) -> None:
    flip_every_byte(place_of_80, place_of_80.export(), [0], step)


@requirement("AUD-1")
def test_a_flipped_bit_in_a_thousand_records_is_found_and_named(thousand: Place, exported: bytes) -> None:
    flip_every_byte(thousand, exported, [0], step=61)


@pytest.mark.soak
@pytest.mark.parametrize("bit", range(8))
@requirement("AUD-1")
def test_every_single_bit_flip_in_a_thousand_records_is_found_and_named(
    thousand: Place, exported: bytes, bit: int
) -> None:
    flip_every_byte(thousand, exported, [bit])


@requirement("AUD-1")
def test_a_single_flipped_bit_anywhere_in_the_file_is_found(thousand: Place, exported: bytes) -> None:
    chance = random.Random(6962)
    for _ in range(100):
        at, bit = chance.randrange(len(exported)), chance.randrange(8)
        touched = exported[:at] + bytes([exported[at] ^ 1 << bit]) + exported[at + 1 :]
        report = check(touched, thousand.key)
        number = exported[:at].count(b"\n") + 1
        names = [f"line {number}", f"line {number + 1}"]  # a broken line end spoils the next one
        if 1 < number < len(lines(exported)):
            names.append(name_of(lines(exported)[number - 1]))
        found = said(report)
        assert any(name in found for name in names) or _names_part(found, exported, number), (number, found)


def _names_part(found: str, exported: bytes, number: int) -> bool:
    """Whether the record is named by its number and its call or writer, one of which was touched."""
    it = json.loads(lines(exported)[number - 1])
    if "seq" not in it:
        return "checkpoint" in found or "manifest" in found
    names = (it["call_id"], it["writer"], f"record {it['seq']} ")
    return sum(name in found for name in names) >= 2


@requirement("AUD-1")
@pytest.mark.parametrize("step", [5, EVERY])
def test_a_flipped_bit_in_any_byte_of_header_and_manifest_is_found(place_of_80: Place, step: int) -> None:
    exported = place_of_80.export()
    every = lines(exported)
    for which in (0, -1):
        for at in range(0, len(every[which]), step):
            touched = list(every)
            line = touched[which]
            touched[which] = line[:at] + bytes([line[at] ^ 1 << at % 8]) + line[at + 1 :]
            assert not check(b"".join(touched), place_of_80.key).ok, (which, at)


@requirement("AUD-1")
@pytest.mark.parametrize("at", [1, 2, 500, 999, 1000])
def test_a_deleted_record_is_found_and_named(thousand: Place, exported: bytes, at: int) -> None:
    every = lines(exported)
    report = check(b"".join(every[:at] + every[at + 1 :]), thousand.key)
    it = json.loads(every[at])
    assert f"leaf {at - 1} of the tree is missing" in said(report) or (
        f"only {len(every) - 3} are left: the end was cut off" in said(report)
    )
    later = any(json.loads(line)["writer"] == it["writer"] for line in every[at + 1 : -1])
    assert not later or f"record {it['seq']} of writer '{it['writer']}' is missing" in said(report)


@requirement("AUD-1")
@pytest.mark.parametrize("at", [1, 499, 998])
def test_two_records_that_changed_places_are_found_and_named(
    thousand: Place, exported: bytes, at: int
) -> None:
    every = lines(exported)
    every[at], every[at + 1] = every[at + 1], every[at]
    told = said(check(b"".join(every), thousand.key))
    assert name_of(every[at]) in told
    assert name_of(every[at + 1]) in told


@requirement("AUD-1")
@pytest.mark.parametrize("left", [1, 2, 300, 1000, 1001])
def test_a_file_that_was_cut_off_is_found_out(thousand: Place, exported: bytes, left: int) -> None:
    report = check(b"".join(lines(exported)[:left]), thousand.key)
    assert {"truncated"} <= {fault.kind for fault in report.faults}
    if left > 1:
        it = json.loads(lines(exported)[left - 1])
        assert f"the file after record {it['seq']} of writer '{it['writer']}'" in said(report)


@requirement("AUD-1")
def test_a_record_that_was_appended_is_found_and_named(thousand: Place, exported: bytes) -> None:
    every = lines(exported)
    last = json.loads(every[-2])
    more = Chain(last["writer"])
    more.reset((last["seq"], bytes.fromhex(last["hash"])))
    forged = more.append("default", "call_forged", "intent", last["at"], last["body"])
    line = {
        **last,
        "leaf": last["leaf"] + 1,
        "seq": forged.seq,
        "call_id": forged.call_id,
        "kind": forged.kind,
    }
    line |= {"prev": forged.prev.hex(), "hash": forged.hash.hex(), "tenant": "default"}
    inside = check(b"".join([*every[:-1], orjson.dumps(line) + b"\n", every[-1]]), thousand.key)
    assert "speaks for other lines: 1000 records were exported, 1001 are here" in said(inside)
    after = check(b"".join([*every, orjson.dumps(line) + b"\n"]), thousand.key)
    assert "line 1003 comes after the end" in said(after)


def forged_from(every: Lines, at: int) -> Lines:
    """Every later record of that writer chained anew, as somebody would who has no key."""
    chains: dict[str, tuple[int, bytes]] = {}
    out: Lines = [every[0]]
    for number, line in enumerate(every[1:-1], 1):
        it = json.loads(line)
        chain = Chain(it["writer"])
        chain.reset(chains.get(it["writer"], (0, bytes(32))))
        body = it["body"].replace('"operation"', '"operatiom"') if number == at else it["body"]
        record = chain.append(it["tenant"], it["call_id"], it["kind"], it["at"], body)
        chains[it["writer"]] = chain.mark()
        it |= {"body": body, "prev": record.prev.hex(), "hash": record.hash.hex()}
        out.append(orjson.dumps(it) + b"\n")
    return [*out, every[-1]]


@requirement("AUD-1")
@pytest.mark.parametrize("at", [1, 555, 1000])
def test_a_log_rewritten_from_a_record_on_does_not_lead_to_what_was_signed(
    thousand: Place, exported: bytes, at: int
) -> None:
    told = said(check(b"".join(forged_from(lines(exported), at)), thousand.key))
    first, last = (at - 1) // 100 * 100, (at - 1) // 100 * 100 + 99
    assert f"leaves {first} to {last} were rewritten after it was signed" in told


@requirement("AUD-1")
def test_a_fork_of_the_log_does_not_pass_for_it(thousand: Place, log: Place, exported: bytes) -> None:
    """Two histories signed by the same key: somebody ran a copy of the store with a copy of the key."""
    import asyncio

    from tests.audit.world import ANA

    async def go_on(place: Place, thing: str) -> None:
        async with place.gateway() as gateway:
            await gateway.call("test.look", {"thing": thing}, principal=ANA)

    other = log.copy(log.folder.with_name("other"))
    asyncio.run(go_on(log, "one"))
    asyncio.run(go_on(other, "two"))
    outside = log.checkpoints.read_text().split("\n\n\n")[:-1]
    told = said(check(other.export(), other.key, [f"{note}\n" for note in outside]))
    assert "are both signed, and over 1002 records they differ" in told


@requirement("AUD-4", "AUT-6")
def test_a_tenants_part_proves_itself_and_shows_nobody_elses(thousand: Place) -> None:
    part = thousand.export(Part("acme"))
    report = check(part, thousand.key)
    assert (report.ok, report.tail) == (True, 0)
    assert report.records == len(lines(part)) - 2 > 100
    assert {json.loads(line)["tenant"] for line in lines(part)[1:-1]} == {"acme"}
    assert b'"default"' not in part
    assert b'"caller\\":\\"zoe' in part
    assert b'"caller\\":\\"ana' not in part


@requirement("AUD-1", "AUD-4")
@pytest.mark.parametrize("at", [1, 50, -2])
def test_a_touched_part_is_found_out(thousand: Place, at: int) -> None:
    every = lines(thousand.export(Part("acme")))
    it = json.loads(every[at])
    swapped = [*every]
    swapped[at] = orjson.dumps({**it, "body": it["body"].replace("zoe", "ben")}) + b"\n"
    assert name_of(every[at]) in said(check(b"".join(swapped), thousand.key))
    path = [*it["path"][:-1], it["path"][-1][:-1] + ("0" if it["path"][-1][-1] != "0" else "1")]
    swapped[at] = orjson.dumps({**it, "path": path}) + b"\n"
    assert f"{name_of(every[at])} does not lead to the signed root" in said(
        check(b"".join(swapped), thousand.key)
    )
    without = every[:at] + every[at + 1 :] if at > 0 else every[:at] + every[-1:]
    assert "records were exported" in said(check(b"".join(without), thousand.key))


@requirement("AUD-4")
def test_an_export_from_a_time_on_has_what_came_later(thousand: Place, exported: bytes) -> None:
    since = json.loads(lines(exported)[900])["at"]
    part = thousand.export(Part(None, since))
    report = check(part, thousand.key)
    assert report.ok
    assert 95 <= report.records <= 105
