"""A write to a file that has been moved away does not count as stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.builders.jobs import a_job, employ, enqueue, show

from perdure.app.connect import store_for
from perdure.domain.jobs.states import JobState
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import StoreUnavailable
from perdure.storage.port import Store

SINGLE_WRITES = 40  # enough for small writes to take their short way


@pytest.fixture(params=["apsw", "sqlite3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    (tmp_path / "home").mkdir()
    return f"sqlite:///{tmp_path / 'home' / 'jobs.db'}?driver={request.param}"


@contextmanager
def moved_away(home: Path) -> Iterator[None]:
    elsewhere = home.with_name("elsewhere")
    home.rename(elsewhere)
    yield
    elsewhere.rename(home)


async def refuses(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match=r"jobs\.db: the file was moved, deleted or replaced while it was open"):
        await store.insert([a_job()])
    with pytest.raises(StoreUnavailable, match="moved, deleted or replaced"):
        await store.workers()


async def opened(url: str) -> Store:
    store = store_for(url)
    await store.open()
    await store.migrate()
    return store


async def test_g1_a_file_that_is_away_takes_nothing_and_goes_on_when_it_is_back(url: str, tmp_path: Path) -> None:
    store = await opened(url)
    try:
        before = [await enqueue(store) for _ in range(SINGLE_WRITES)]
        with moved_away(tmp_path / "home"):
            await refuses(store)
            assert not (tmp_path / "home").exists()
        after = await enqueue(store)
        for job_id in (*before, after):
            assert (await show(store, job_id)).state is JobState.READY
    finally:
        await store.close()


async def test_g1_a_file_that_was_replaced_is_not_written_to_by_those_who_have_the_old_one(
    url: str, tmp_path: Path
) -> None:
    store = await opened(url)
    try:
        await enqueue(store)
        for file in (tmp_path / "home").iterdir():
            file.unlink()
        await refuses(store)
        fresh = await opened(url)
        try:
            await enqueue(fresh)
            await refuses(store)
            assert len(await fresh.insert([a_job()])) == 1
        finally:
            await fresh.close()
    finally:
        await store.close()


async def test_a_program_that_changes_its_folder_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was lost begins to beat again through a sibling: it must not beat into another file."""
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("perdure.db")
    await store.open()
    await store.migrate()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sibling = store.sibling()
    await sibling.open()
    try:
        assert await sibling.beat(await employ(store))
    finally:
        await sibling.close()
        await store.close()
    assert not (tmp_path / "elsewhere" / "perdure.db").exists()
