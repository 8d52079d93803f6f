"""Files that this process can read and not write: read in full, never touched, and every write is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import a_job
from tests.support.without_rights import run_on_read_only_mount, run_without_rights

from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.engines.sqlite.database.looking import LookingConnection
from perdure.engines.sqlite.store import SqliteStore

LOOK = "tests.support.programs.look_at_files"
RIGHTS = {"file": (0o444, 0o777), "folder": (0o644, 0o555), "both": (0o444, 0o555)}
COUNT = "SELECT count(*) FROM perdure_job"


async def _filled(path: Path, jobs: int = 1) -> SqliteStore:
    store = SqliteStore(str(path))
    await store.open()
    await store.migrate()
    await store.insert([a_job() for _ in range(jobs)])
    return store


def _take_rights(folder: Path, rights: tuple[int, int]) -> None:
    for file in folder.iterdir():
        file.chmod(rights[0])
    folder.chmod(rights[1])


async def _left_by_a_crash(source: Path, folder: Path, endings: tuple[str, ...]) -> Path:
    """Some of the files of a database whose writer died with all commits in the log."""
    folder.mkdir()
    store = await _filled(source)
    for ending in endings:
        shutil.copy(f"{source}{ending}", folder / f"a.db{ending}")
    await store.close()
    return folder / "a.db"


async def test_it_is_read_with_and_without_its_log_and_nothing_is_created(tmp_path: Path) -> None:
    """A worker has it open, has closed it, or died; for each way in which it cannot be written."""
    paths = {}
    stores = []
    for name, rights in RIGHTS.items():
        for state in ("open", "closed"):
            path = paths[name, state] = tmp_path / f"{name}-{state}" / "a.db"
            path.parent.mkdir()
            store = await _filled(path)
            if state == "closed":
                await store.close()
            else:
                stores.append(store)
            _take_rights(path.parent, rights)
        paths[name, "died"] = await _left_by_a_crash(
            tmp_path / f"{name}.db", tmp_path / f"{name}-died", ("", "-wal", "-shm")
        )
        _take_rights(tmp_path / f"{name}-died", rights)
    before = {path: sorted(file.name for file in path.parent.iterdir()) for path in paths.values()}
    found = run_without_rights(LOOK, *map(str, paths.values()))
    for (name, state), path in paths.items():
        for driver in ("apsw", "sqlite3"):
            seen = found[f"{path} {driver}"]
            why = (
                "the file is not writable" if RIGHTS[name][0] == 0o444 else f"the folder {path.parent} is not writable"
            )
            assert seen.get("jobs") == 1, (name, state, driver, seen)
            assert seen["why"].startswith(why)
            assert seen["found"] == [f"read-only: {seen['why']}"]
            assert seen["write"] == f"{path}: the database is read-only: {seen['why']}"
            assert seen["files"] == before[path]
    for store in stores:
        _take_rights(Path(store._database.path).parent, (0o644, 0o777))
        await store.close()


async def test_a_log_without_its_index_and_an_old_schema_are_reported_with_the_remedy(tmp_path: Path) -> None:
    lost = await _left_by_a_crash(tmp_path / "b.db", tmp_path / "lost", ("", "-wal"))
    bare = tmp_path / "bare" / "a.db"
    bare.parent.mkdir()
    store = SqliteStore(str(bare))
    await store.open()
    await store.close()
    for path in (lost, bare):
        _take_rights(path.parent, RIGHTS["both"])
    found = run_without_rights(LOOK, str(lost), str(bare))
    assert f"the index of its log is missing ({lost}-shm)" in found[f"{lost} apsw"]["refused"]
    assert "open it once where it can be written" in found[f"{lost} apsw"]["refused"]
    assert "run `perdure migrate`" in found[f"{bare} apsw"]["failed"]


async def test_on_a_read_only_mount_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "disk" / "a.db"
    path.parent.mkdir()
    await (await _filled(path)).close()
    seen: dict[str, Any] = run_on_read_only_mount(str(path.parent), LOOK, str(path))[f"{path} apsw"]
    assert (seen["jobs"], seen["why"]) == (1, "its file system is mounted read-only")
    assert seen["files"] == ["a.db"]


async def test_a_writer_that_comes_is_noticed_before_the_next_read(tmp_path: Path) -> None:
    """Without a log there are no locks, so the file itself tells; with one, SQLite's locks do."""
    path = tmp_path / "a.db"
    await (await _filled(path)).close()
    looking = LookingConnection("apsw", str(path), "for a test")
    assert looking.run(COUNT) == [(1,)]
    writer = SqliteStore(str(path))
    await writer.open()
    await writer.insert([a_job()])
    assert looking.run(COUNT) == [(2,)]
    await writer.insert([a_job()])
    assert looking.run(COUNT) == [(3,)]
    looking.close()
    await writer.close()


async def test_what_was_read_while_a_writer_came_is_discarded(tmp_path: Path) -> None:
    """The writer has changed the file itself and taken its log away again, so only the file's time tells."""
    path = tmp_path / "a.db"
    await (await _filled(path)).close()
    looking = LookingConnection("apsw", str(path), "for a test")
    looking.run("BEGIN")
    looking.run(COUNT)
    writer = SqliteStore(str(path))
    await writer.open()
    await writer.insert([a_job() for _ in range(200)])
    await writer.close()
    with pytest.raises(StoreBusy, match="wrote the file while it was read"):
        looking.run("ROLLBACK")
    looking.run("BEGIN")
    assert looking.run(COUNT) == [(201,)]
    looking.run("ROLLBACK")
    looking.close()
