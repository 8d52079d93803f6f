"""Lists of jobs that an index leads to: no more ids are read than a page needs, unless few of them match."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import a_job, numbered_id

from perdure.domain.operate.audit import By
from perdure.engines.postgres.operate.views.queue_states import QueueStates
from perdure.engines.postgres.store import PostgresStore
from perdure.storage.records import JobFilter, Page, Reach


async def test_a_page_reads_as_many_ids_as_it_shows_and_more_only_where_few_match(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [a_job(id=numbered_id(n), kind="common" if n % 10 else "rare") for n in range(60)]
    await pg_store.insert(jobs)
    await pg_store.mark(JobFilter(ids=[job.id for job in jobs]), "seen", By("ada"), 100)
    limits: list[int] = []
    picked = QueueStates.picked

    async def counted(self: QueueStates, which: JobFilter, before: object, limit: int) -> object:
        limits.append(limit)
        return await picked(self, which, before, limit)  # type: ignore[arg-type]

    monkeypatch.setattr(QueueStates, "picked", counted)
    reach, rare = Reach(1_000, timedelta(seconds=60)), JobFilter(mark="seen", kind="rare")
    page = Page(5, numbered_id(10))
    assert len((await pg_store.search(JobFilter(mark="seen", kind="common"), page, reach)).jobs) == 5
    assert limits == [5]
    for ask in (pg_store.search(rare, Page(5), reach), pg_store.jobs(rare, Page(5))):
        limits.clear()
        await ask
        assert limits == [5, 10, 20, 40]
