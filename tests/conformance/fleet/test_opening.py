"""Store: opening, closing, siblings."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.support.builders.jobs import a_job, enqueue, show
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.errors import StoreError, StoreUnavailable
from perdure.storage.port import Store


async def test_a_store_opens_closes_and_leaves_no_thread_behind(engine_url: str) -> None:
    before = set(threading.enumerate())
    store = store_for(engine_url)
    await store.open()
    await store.migrate()
    await asyncio.gather(*(enqueue(store) for _ in range(20)))
    await store.close()
    ours = [thread for thread in set(threading.enumerate()) - before if not thread.name.startswith("asyncio_")]
    assert ours == []


async def test_closing_finishes_what_was_begun(engine_url: str) -> None:
    """An insert that was under way is either stored and answered, or refused: never stored and lost to its caller."""
    store = store_for(engine_url)
    await store.open()
    await store.migrate()
    calls = [asyncio.create_task(store.insert([a_job()])) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(error, StoreError) for error in refused)
    [(stored,)] = query(engine_url, "SELECT count(*) FROM {job}")
    assert stored == len(answers) - len(refused)


async def test_a_closed_store_refuses_in_words(engine_url: str) -> None:
    store = store_for(engine_url)
    await store.open()
    await store.migrate()
    await store.close()
    with pytest.raises(StoreError):
        await store.insert([a_job()])


async def test_a_store_that_is_not_open_can_be_closed(engine_url: str) -> None:
    store = store_for(engine_url)
    await store.close()
    await store.open()
    await store.close()
    await store.close()


async def test_a_sibling_works_in_the_loop_of_another_thread(store: Store, clock: ManualClock) -> None:
    sibling = store.sibling()

    async def elsewhere() -> JobId:
        await sibling.open()
        try:
            return await enqueue(sibling)
        finally:
            await sibling.close()

    job_id = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    assert (await show(store, job_id)).created_at == clock.now()


async def test_a_closed_sibling_leaves_its_elder_open(store: Store) -> None:
    sibling = store.sibling()
    await sibling.open()
    await sibling.close()
    assert await enqueue(store)


async def test_an_unreachable_server_is_unavailable(tmp_path: Path) -> None:
    store = store_for(f"postgresql://postgres@/postgres?host={tmp_path}")
    with pytest.raises(StoreUnavailable):
        await store.open()
    await store.close()


async def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    store = store_for(f"sqlite:///{tmp_path / 'nowhere' / 'perdure.db'}")
    with pytest.raises(StoreError, match="nowhere"):
        await store.open()
    await store.close()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear Ada, this is not a database. " * 100)
    store = store_for(f"sqlite:///{file}")
    with pytest.raises(StoreError):
        await store.open()
    await store.close()
    assert file.read_text().startswith("Dear Ada")
