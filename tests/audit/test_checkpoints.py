"""Is what was signed beyond the reach of whoever has the database?"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.gateway.auditing import Auditing
from holdfast.model import defaults
from holdfast.model.errors import ConfigError, StoreError
from holdfast.records import checkpoint
from holdfast.records.checkpoint import Checkpoint, CheckpointFile, Notary
from holdfast.records.note import BadNote, Signer, Verifier, kept_key, key_from
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from tests.audit.test_sequencing import run
from tests.audit.world import ANA, Place, said
from tests.requirements import requirement
from tests.spoiled import spoiled

ROOT = bytes(range(32))
MAKER = """
import sys
from pathlib import Path
from holdfast.records.note import kept_key
print("ready", flush=True)
sys.stdin.readline()
print(kept_key(Path(sys.argv[1])).verifier)
"""


@pytest.fixture
def notary(tmp_path: Path) -> Notary:
    return Notary(Signer.fresh(), CheckpointFile(tmp_path / "checkpoints"))


def publish(notary: Notary, size: int) -> str | None:
    return notary.publish(size, ROOT, 1_800_000_000.0, notary.last())


@requirement("AUD-1")
def test_a_note_is_what_c2sp_says_it_is() -> None:
    signer = Signer("example.com/log", bytes(32))
    note = signer.sign("example.com/log\n1\nAAAA\n")
    assert note.startswith("example.com/log\n1\nAAAA\n\n\u2014 example.com/log ")
    name, id, _ = str(signer.verifier).split("+", 2)
    assert (name, len(id)) == ("example.com/log", 8)
    assert Verifier.parse(str(signer.verifier)) == signer.verifier
    assert Signer.parse(signer.private()) == signer
    assert signer.verifier.open(note) == "example.com/log\n1\nAAAA\n"


@requirement("AUD-1")
def test_no_bit_of_a_note_can_be_turned() -> None:
    signer = Signer.fresh()
    note = signer.sign(Checkpoint(signer.name, 7, ROOT, "2027-01-15T08:00:00.000Z").text()).encode()
    for at in range(len(note)):
        for bit in range(8):
            turned = note[:at] + bytes([note[at] ^ 1 << bit]) + note[at + 1 :]
            with pytest.raises(BadNote):
                checkpoint.opened(turned.decode(errors="replace"), signer.verifier)


@requirement("AUD-1")
def test_a_note_about_another_log_or_by_another_key_is_not_believed() -> None:
    signer = Signer.fresh()
    other = Checkpoint("another-log", 7, ROOT, "2027-01-15T08:00:00.000Z")
    with pytest.raises(BadNote, match="about another log"):
        checkpoint.opened(signer.sign(other.text()), signer.verifier)
    with pytest.raises(BadNote, match="has not signed"):
        checkpoint.opened(signer.sign(other.text()), Signer.fresh().verifier)
    with pytest.raises(BadNote, match="another key of that name"):
        checkpoint.opened(signer.sign(other.text()), Signer.fresh(signer.name).verifier)


@requirement("AUD-1", "PPL-6")
def test_nobody_waits_for_ever_for_a_process_that_was_stopped_while_it_signed(
    notary: Notary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SIGNING_S", 0.0)
    with notary.file.locked(), pytest.raises(StoreError, match="does not let go"):
        publish(notary, 3)
    assert publish(notary, 3) is not None


@requirement("AUD-1")
def test_checkpoints_are_appended_and_only_while_the_tree_grows(notary: Notary) -> None:
    assert publish(notary, 3) is not None
    before = notary.file.path.read_bytes()
    assert publish(notary, 3) is None
    assert publish(notary, 2) is None
    assert notary.file.path.read_bytes() == before
    assert publish(notary, 9) is not None
    assert notary.file.path.read_bytes().startswith(before)
    sizes = [checkpoint.opened(note, notary.verifier).size for note in notary.file.read()]
    assert sizes == [3, 9]


@requirement("AUD-1")
def test_of_two_signers_the_one_who_looked_earlier_waits(notary: Notary) -> None:
    looked = notary.last()
    assert publish(notary, 5) is not None
    assert notary.publish(8, ROOT, 1_800_000_000.0, looked) is None


@requirement("AUD-1")
def test_half_a_checkpoint_left_by_a_power_cut_is_replaced(notary: Notary) -> None:
    publish(notary, 3)
    publish(notary, 5)
    whole = notary.file.path.read_bytes()
    for cut in (1, 2, 3, 40, 150):
        notary.file.path.write_bytes(whole[:-cut])
        assert notary.last() is not None
        assert publish(notary, 7 + cut) is not None
        assert [checkpoint.opened(n, notary.verifier).size for n in notary.file.read()] == [3, 7 + cut]


@requirement("DEC-4")
def test_the_key_is_the_owners_alone_and_processes_agree_on_one(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db.audit.key"
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for maker in makers:
        assert maker.stdout is not None
        maker.stdout.readline()
    assert len({maker.communicate("go\n")[0] for maker in makers}) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(StoreError, match="can be read by others"):
        kept_key(path)


@requirement("DEC-4")
def test_the_key_comes_from_a_file_or_the_environment_and_says_what_is_wrong(tmp_path: Path) -> None:
    signer = Signer.fresh()
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(signer.private() + "\n")
    assert key_from("file:key", tmp_path) == signer
    assert key_from("env:KEY", tmp_path, {"KEY": signer.private()}) == signer
    for source, environ, told in (
        ("env:KEY", {}, "'KEY' is not set"),
        ("file:none", {}, "holdfast audit key --new"),
        ("env:KEY", {"KEY": "secret"}, "is no audit key"),
        ("env:KEY", {"KEY": spoiled(signer.private())}, "is damaged"),
    ):
        with pytest.raises(ConfigError, match=told):
            key_from(source, tmp_path, environ)
    with pytest.raises(ConfigError, match="no public audit key"):
        Verifier.parse("nonsense")


@requirement("AUD-1")
async def test_a_gateway_signs_now_and_then_and_when_it_closes(notary: Notary) -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    auditing = Auditing(store.audit, notary, clock)
    await run(store, "a")
    assert await auditing.tidy() == 2
    await run(store, "b")
    await auditing.tidy()
    assert len(notary.file.read()) == 1  # not yet time
    await clock.advance(defaults.CHECKPOINT_S)
    await auditing.tidy()
    await run(store, "c")
    await auditing.tidy(sign_now=True)
    assert [checkpoint.read(note).size for note in notary.file.read()] == [2, 4, 6]


@requirement("AUD-1")
@pytest.mark.parametrize("after", ["another history", "less of it"])
async def test_a_log_that_did_not_grow_out_of_what_was_signed_is_not_signed(
    notary: Notary, after: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    store, other = MemoryStore(clock), MemoryStore(clock)
    for key in "abc":
        await run(store, key)
    await Auditing(store.audit, notary, clock).tidy(sign_now=True)
    for key in "abcd" if after == "another history" else "a":
        await run(other, key)
    auditing = Auditing(other.audit, notary, clock)
    for _ in range(2):
        await auditing.tidy(sign_now=True)
    assert [checkpoint.read(note).size for note in notary.file.read()] == [6]
    assert "did not grow out of the checkpoint" in caplog.text
    alarms = await other.audit.since("*", 0.0, -1, 10)
    assert [entry.record.kind for entry in alarms] == ["control"]
    assert "checkpoint refused" in alarms[0].record.body


@requirement("AUD-1")
def test_a_database_restored_from_a_backup_is_found_out_and_not_signed(log: Place, tmp_path: Path) -> None:
    backup = log.copy(tmp_path / "backup")

    async def call(place: Place, thing: str) -> None:
        async with place.gateway() as gateway:
            await gateway.call("test.look", {"thing": thing}, principal=ANA)

    asyncio.run(call(log, "lost"))
    log.database.write_bytes(backup.database.read_bytes())
    asyncio.run(call(log, "later"))
    report = log.verify()
    assert "is over 1002 records, and only 1000 are left: the end was cut off" in said(report)
    assert report.anchored == 1000
