"""What if the lost store is not there, not whole, or nobody said that it was put back?"""

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.gateway import auditing
from holdfast.gateway.recovery import Undecided, Wish
from holdfast.model.errors import Code, StoreError
from holdfast.model.observation import Status
from holdfast.model.restored import RESTORED
from tests.lives.tools import effects
from tests.lives.town import ANA, BEN, ZOE, Town, town
from tests.requirements import requirement


@pytest.fixture
async def lost(tmp_path: Path) -> AsyncIterator[Town]:
    """A store that was put back from noon, `lunch` having happened since; nothing was kept but `old.db`."""
    async with town("sqlite", tmp_path / "home") as home:
        await home.call("morning")
        noon = await home.back_up()
        await home.call("lunch")
        await home.export()
        await home.back_up("later")
        restored = await home.restore(noon)
        Path(str(restored.kept)).rename(home.folder / "old.db")
        yield home


@requirement("PPL-5")
async def test_without_anything_to_merge_it_says_what_the_choices_are(lost: Town) -> None:
    with pytest.raises(Undecided) as refused:
        await lost.recover()
    for choice in ("--from", "newer backup", "export", "--nothing-left --note"):
        assert choice in str(refused.value)
    assert (await lost.call("lunch")).code is Code.TOOL_UNAVAILABLE


@requirement("PPL-5")
async def test_the_lost_store_may_be_named(lost: Town) -> None:
    await lost.recover(f"sqlite:///{lost.folder}/old.db")
    assert (await lost.call("lunch")).replayed
    assert effects() == {"morning": 1, "lunch": 1}
    assert (await lost.verify()).ok


@requirement("PPL-5")
@pytest.mark.parametrize("source", ["log.jsonl", "later"])
async def test_an_export_or_a_newer_backup_is_taken_with_a_word_that_nothing_newer_is_left(
    lost: Town, source: str
) -> None:
    with pytest.raises(Undecided, match="end before the lost store did"):
        await lost.recover(lost.folder / source)
    recovered = await lost.recover(lost.folder / source, note="the disk died")
    assert recovered.operations == 1
    again = await lost.call("lunch")
    if source == "later":
        assert (again.status, again.replayed) == (Status.DONE, True)
    else:  # records say that it happened, not what it answered
        assert (again.status, again.code) == (Status.REFUSED, Code.KEY_EXPIRED)
    assert effects() == {"morning": 1, "lunch": 1}
    assert (await lost.verify()).ok


@requirement("PPL-5")
async def test_an_export_that_was_changed_is_not_believed(lost: Town) -> None:
    path = lost.folder / "log.jsonl"
    path.write_bytes(path.read_bytes().replace(b"committed", b"no_effect", 1))
    with pytest.raises(StoreError, match="is not intact"):
        await lost.recover(path, note="the disk died")
    assert (await lost.call("lunch")).code is Code.TOOL_UNAVAILABLE


@requirement("PPL-5")
async def test_a_tenant_whose_key_is_gone_is_told_of_and_not_made_up(tmp_path: Path) -> None:
    async with town("sqlite", tmp_path / "home") as home:
        noon = await home.back_up()
        await home.call("hers", principal=ZOE)
        log = await home.export()
        Path(str((await home.restore(noon)).kept)).unlink()
        recovered = await home.recover(log, note="the disk died")
        assert (recovered.operations, recovered.merged[0].unreadable) == (0, 1)


@requirement("PPL-5", "AUD-1")
async def test_giving_up_needs_a_reason_and_begins_the_log_anew(lost: Town, tmp_path: Path) -> None:
    old = tmp_path / "old.checkpoints"
    shutil.copy(auditing.checkpoint_path(lost.config), old)
    async with lost.open() as gateway:
        with pytest.raises(Undecided, match="say why with --note"):
            await gateway.recover(ANA, Wish(nothing_left=True))
    recovered = await lost.recover(note="the disk died")
    assert recovered.lost is not None
    assert "restored from the backup taken" in recovered.lost
    assert recovered.unprotected == ["town.grave", "town.plain", "town.slow"]
    assert Path(str(recovered.checkpoints_kept)).read_bytes() == old.read_bytes()
    for checkpoints in (None, old):  # with those that were signed before, too
        report = await lost.verify(checkpoints)
        assert report.ok, report.lines()
        [restart] = report.restarts
        assert "the log starts anew" in restart
        assert "the disk died" in restart
    assert (await lost.call("evening")).status is Status.DONE
    assert (await lost.call("lunch")).status is Status.DONE
    assert effects() == {"morning": 1, "lunch": 2, "evening": 1}, "as the operator was told"
    assert (await lost.verify()).ok


@requirement("PPL-5", "AUD-1")
async def test_an_excuse_that_nobody_signed_excuses_nothing(lost: Town) -> None:
    await lost.recover(note="the disk died")
    with closing(sqlite3.connect(lost.config.store_path)) as store:
        store.execute("DELETE FROM tree_checkpoint")
        store.commit()
    report = await lost.verify(Path(str(auditing.checkpoint_path(lost.config)) + ".before-2"))
    assert not report.ok


@requirement("PPL-5")
async def test_where_the_old_log_is_broken_the_operations_come_over_all_the_same(lost: Town) -> None:
    with closing(sqlite3.connect(lost.folder / "old.db")) as old:
        [(last,)] = old.execute("SELECT max(rowid) FROM record WHERE kind = 'outcome'").fetchall()
        old.execute("UPDATE record SET body = replace(body, 'done', 'gone') WHERE rowid = ?", (last,))
        old.commit()
    with pytest.raises(Undecided, match="was changed: calls may be missing"):
        await lost.recover(lost.folder / "old.db")
    assert (await lost.call("lunch")).replayed, "its operation is known already"
    assert (await lost.call("evening")).code is Code.TOOL_UNAVAILABLE
    recovered = await lost.recover(lost.folder / "old.db", note="somebody was there")
    assert "was changed" in str(recovered.merged[0].log_fault)
    assert (await lost.call("evening")).status is Status.DONE
    assert effects() == {"morning": 1, "lunch": 1, "evening": 1}
    assert len((await lost.verify()).restarts) == 1


@requirement("PPL-5")
async def test_a_store_of_another_key_file_is_not_merged(lost: Town, tmp_path: Path) -> None:
    async with town("sqlite", tmp_path / "elsewhere") as other:
        await other.call("theirs")
        with pytest.raises(StoreError, match="made with another key file"):
            await lost.recover(other.config.store_path)
    assert (await lost.call("lunch")).code is Code.TOOL_UNAVAILABLE


@requirement("PPL-5")
async def test_a_file_that_somebody_copied_back_is_noticed_and_recovered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with town("sqlite", tmp_path / "home") as home:
        path = home.config.store_path
        await home.call("morning")
        shutil.copy(path, tmp_path / "copy.db")
        await home.call("lunch")
        path.rename(tmp_path / "old.db")
        shutil.copy(tmp_path / "copy.db", path)
        assert (await home.call("lunch")).code is Code.TOOL_UNAVAILABLE
        assert "the store was put back" in caplog.text
        async with home.open() as gateway:
            assert RESTORED in await gateway.halts()
        await home.recover(tmp_path / "old.db")
        assert (await home.call("lunch")).replayed
        assert effects() == {"morning": 1, "lunch": 1}
        assert (await home.verify()).ok


@requirement("PPL-5")
async def test_a_source_older_than_the_backup_takes_nothing_back(tmp_path: Path) -> None:
    async with town("sqlite", tmp_path / "home") as home:
        await home.call("hers", principal=ZOE)
        async with home.open() as gateway:
            await gateway.call("town.grave", {"name": "grave"}, key="grave", principal=ANA)
            [asked] = await gateway.approvals(BEN)
            await gateway.decide(BEN, asked.id, approve=True)
        shutil.copy(home.config.store_path, tmp_path / "early.db")
        await home.call("grave", "grave")
        async with home.open() as gateway:
            await gateway.log.erase(ANA, "acme")
        noon = await home.back_up()
        Path(str((await home.restore(noon)).kept)).unlink()
        recovered = await home.recover(tmp_path / "early.db", note="the disk died")
        assert (recovered.operations, recovered.merged[0].approvals) == (0, 0)
        assert (await home.call("grave", "grave")).replayed
        assert (await home.call("hers", principal=ZOE)).code is Code.KEY_EXPIRED
        with closing(sqlite3.connect(home.config.store_path)) as store:
            assert store.execute("SELECT 1 FROM approval WHERE used_nonce IS NULL").fetchall() == []
    assert effects() == {"hers": 1, "grave": 1}
