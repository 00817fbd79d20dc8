"""Is a backup all of the store, at one moment, and is a bad one found out before anything is touched?"""

import asyncio
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Gateway
from holdfast.gateway import engines
from holdfast.model.errors import StoreError
from holdfast.model.observation import Status
from holdfast.stores.backup.archive import written
from holdfast.stores.backup.manifest import Manifest
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.backup.tables import LEFT_OUT, TABLES
from holdfast.stores.postgres.snapshot import SHAPES
from holdfast.stores.sqlite.migrate import migrate, shipped
from tests.lives.tools import Slow, effects
from tests.lives.town import ANA, ENGINES, ZOE, Town, town
from tests.postgres import empty_database
from tests.requirements import requirement


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVES_EFFECTS", str(tmp_path / "effects"))
    Slow.reset()


async def rows(home: Town) -> dict[str, list[Row]]:
    """Everything in a store."""
    source = await engines.store(home.config)
    try:
        found = {}
        for table in TABLES:
            names = ", ".join(await source.columns(table))
            found[table] = sorted(await source.all(f"SELECT {names} FROM {table}"), key=repr)
        return found
    finally:
        await source.close()


@requirement("PPL-5")
@pytest.mark.parametrize("engine", ENGINES)
async def test_every_table_is_in_it(engine: str, tmp_path: Path) -> None:
    async with town(engine, tmp_path) as home:
        await home.call("one")
        source = await engines.store(home.config)
        if engine == "sqlite":
            found = await source.all("SELECT name FROM sqlite_master WHERE type = 'table'")
        else:
            found = await source.all("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
        await source.close()
    # Who is at work is not in it: those processes are not there when it is put back.
    assert {name for (name,) in found} - {"schema_migration", "worker", *LEFT_OUT} == set(TABLES)


@requirement("PPL-5")
def test_both_engines_know_the_same_shape_of_the_tables() -> None:
    assert max(SHAPES) == max(shipped())


@requirement("PPL-5")
@pytest.mark.parametrize("there", ENGINES)
@pytest.mark.parametrize("here", ENGINES)
async def test_a_store_moves_from_any_engine_to_any_other_with_all_it_has(
    here: str, there: str, tmp_path: Path
) -> None:
    async with town(here, tmp_path / "home") as home, town(there, tmp_path / "home") as other:
        for key in ("one", "two"):
            await home.call(key)
        await home.call("hers", principal=ZOE)
        noon = await home.back_up()
        before = await rows(home)
        if here != there:  # the key files move by hand
            for ending in (".keys", ".audit.key", ".checkpoints"):
                other.config.beside(ending).write_bytes(home.config.beside(ending).read_bytes())
                other.config.beside(ending).chmod(0o600)
        await other.restore(noon)
        after, told = await rows(other), manifest(noon)
        assert [t for t in TABLES if t not in LIFE and t not in LOG and after[t] != before[t]] == []
        assert {t: len(after[t]) for t in LOG} == {t: told.tables[t].rows for t in LOG}
        assert all(row in before[table] for table in LOG for row in after[table])
        await other.recover(*(() if other == home else (source_of(home),)))
        again = await other.call("hers", principal=ZOE)
        assert (again.status, again.replayed) == (Status.DONE, True)
        assert (await other.verify()).ok
    assert effects() == {"one": 1, "two": 1, "hers": 1}


LIFE = ("halt", "store_life", "record", "chain_head")
"""What a restore itself writes."""
LOG = ("tree_leaf", "tree_node", "tree_checkpoint")
"""What the process that took the backup added to when it closed."""


def manifest(path: Path) -> Manifest:
    with zipfile.ZipFile(path) as archive:
        return Manifest.from_json(archive.read("manifest.json"))


def source_of(home: Town) -> str:
    return home.store if home.store.startswith("postgres") else str(home.config.store_path)


@requirement("PPL-5")
@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_written_meanwhile_is_in_it_whole_or_not_at_all(engine: str, tmp_path: Path) -> None:
    async with town(engine, tmp_path / "home") as home:
        done: set[str] = set()

        async def keep_calling(gateway: Gateway, name: str) -> None:
            for number in range(30):
                key = f"{name}-{number}"
                await gateway.call("town.plain", {"name": key}, key=key, principal=ANA)
                done.add(key)

        async with home.open() as gateway:
            calling = [asyncio.create_task(keep_calling(gateway, name)) for name in "abcd"]
            manifests = []
            for number in range(3):
                acknowledged = len(done)
                manifests.append((acknowledged, await gateway.back_up(ANA, home.folder / f"b{number}")))
            await asyncio.gather(*calling)
        for acknowledged, manifest in manifests:
            assert manifest.tables["operation"].rows >= acknowledged
        await home.restore(home.folder / "b1")
        recovered = await home.recover()
        assert recovered.operations >= 120 - manifests[1][1].tables["operation"].rows
        async with home.open() as gateway:
            for key in sorted(done):
                again = await gateway.call("town.plain", {"name": key}, key=key, principal=ANA)
                assert (again.status, again.replayed) == (Status.DONE, True), key
        report = await home.verify()
        assert report.ok, report.lines()
    assert set(effects().values()) == {1}
    assert len(effects()) == 120


@requirement("PPL-5")
@pytest.mark.parametrize("engine", ENGINES)
async def test_nothing_is_restored_under_a_gateway_that_runs(engine: str, tmp_path: Path) -> None:
    async with town(engine, tmp_path / "home") as home:
        noon = await home.back_up()
        async with home.open() as gateway:
            with pytest.raises(StoreError, match="a gateway has this store open"):
                await home.restore(noon)
            done = await gateway.call("town.plain", {"name": "one"}, key="one", principal=ANA)
            assert done.status is Status.DONE
        await home.restore(noon)


# --- a file that is not what it should be ---------------------------------------------------


@pytest.fixture
async def home(tmp_path: Path) -> "Town":
    home = Town(tmp_path / "home", "sqlite:///holdfast.db")
    home.folder.mkdir()
    await home.call("one")
    await home.back_up()
    return home


def members(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        yield from archive.namelist()


def changed(path: Path, name: str, into: bytes | None) -> Path:
    """The same backup with one member changed or missing."""
    fresh = path.with_name("changed")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(fresh, "w") as new:
        for member in old.namelist():
            if member != name:
                new.writestr(member, old.read(member))
            elif into is not None:
                new.writestr(member, old.read(member) + into)
    return fresh


@requirement("PPL-5")
async def test_a_backup_of_which_any_part_was_changed_or_is_missing_is_refused(home: Town) -> None:
    noon, before = home.folder / "noon", home.config.store_path.read_bytes()
    for name in members(noon):
        for into in (None, b'["x"]\n'):
            with pytest.raises(StoreError, match=r"damaged|key file"):
                await home.restore(changed(noon, name, into))
    assert home.config.store_path.read_bytes() == before
    assert [path.name for path in home.folder.glob("*.restoring-*")] == []


@requirement("PPL-5")
async def test_a_backup_that_was_cut_off_anywhere_is_refused(home: Town) -> None:
    noon = home.folder / "noon"
    whole, short = noon.read_bytes(), home.folder / "short"
    for length in range(0, len(whole), 97):
        short.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="damaged"):
            await home.restore(short)


@requirement("PPL-5")
async def test_it_holds_no_keys_and_is_refused_without_them(home: Town, tmp_path: Path) -> None:
    keys = home.config.beside(".keys")
    secret = keys.read_bytes()
    other = Town(tmp_path / "other", "sqlite:///holdfast.db")
    other.folder.mkdir()
    with pytest.raises(StoreError, match="there is no key file"):
        await other.restore(home.folder / "noon")
    await other.call("theirs")
    with pytest.raises(StoreError, match="does not belong to the key file here"):
        await other.restore(home.folder / "noon")
    with zipfile.ZipFile(home.folder / "noon") as archive:
        assert not any(secret[20:60] in archive.read(name) for name in archive.namelist())


@requirement("PPL-5")
async def test_a_backup_newer_than_this_code_is_refused(home: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = {**shipped(), max(shipped()) + 1: "CREATE TABLE novelty (a)"}
    migrate(home.config.store_path, newest)
    with pytest.raises(StoreError, match="upgrade holdfast"):
        await engines.store(home.config)


@requirement("PPL-5")
async def test_an_older_store_is_read_as_this_code_would_have_it(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    migrate(path, {number: step for number, step in shipped().items() if number < 7})
    source = await engines.sqlite(path)
    assert await source.shape() == max(shipped())
    assert await source.columns("store_life")
    await source.close()
    with closing(sqlite3.connect(path)) as old:
        assert old.execute("SELECT max(version) FROM schema_migration").fetchall() == [(6,)]


@requirement("PPL-5")
def test_half_a_backup_never_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "noon"
    with pytest.raises(StoreError, match="the disk is full"), written(path):
        raise OSError("the disk is full")
    assert list(tmp_path.iterdir()) == []
    path.write_text("an older one")
    with pytest.raises(StoreError, match="there is a file"), written(path):
        pass
    assert path.read_text() == "an older one"


@requirement("PPL-5")
def test_a_manifest_says_the_same_after_a_journey() -> None:
    told = Manifest(
        engine="sqlite", shape=7, life=1, life_id="a", taken_at=1.5, tree_size=0, tree_root="", tables={}
    )
    assert Manifest.from_json(told.to_json()) == told


@requirement("PPL-5")
async def test_a_database_that_is_none_any_more_is_kept_and_replaced(home: Town) -> None:
    path = home.config.store_path
    path.write_bytes(b"no database" * 1000)
    restored = await home.restore(home.folder / "noon")
    assert Path(str(restored.kept)).read_bytes().startswith(b"no database")
    assert (await home.call("one")).replayed
    with pytest.raises(StoreError, match="cannot be read"):
        await home.recover()
    recovered = await home.recover(note="the disk died")
    assert len(recovered.unread) == 1
    assert (await home.call("two")).status is Status.DONE


@requirement("PPL-5")
async def test_a_backup_goes_into_an_empty_place(tmp_path: Path) -> None:
    home = Town(tmp_path / "home", "sqlite:///holdfast.db")
    home.folder.mkdir()
    await home.call("one")
    noon = await home.back_up()
    async with empty_database() as url:
        fresh = Town(home.folder, url)
        for ending in (".keys", ".audit.key"):
            fresh.config.beside(ending).write_bytes(home.config.beside(ending).read_bytes())
            fresh.config.beside(ending).chmod(0o600)
        restored = await fresh.restore(noon)
        assert restored.kept is None
        await fresh.recover(home.config.store_path)
        assert (await fresh.call("one")).replayed
