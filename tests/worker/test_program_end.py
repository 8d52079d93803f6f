"""A worker inside somebody else's program, which ends without stopping it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.waiting import until

from perdure import App, JobState, JobView
from perdure.domain.ids import JobId, WorkerId
from perdure.domain.job import Claim
from perdure.storage.records import Wanted

JOBS = 5


async def test_g9_a_program_that_ends_costs_the_jobs_of_its_worker_no_attempt(engine_url: str) -> None:
    """`asyncio.run` cancels every task at once: the worker's own, those of its actors, and those of its handlers."""
    app, begun = App(engine_url), list[int]()

    @app.job
    async def lingers(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(600)

    @app.job
    async def is_quick() -> None:
        return None

    async def program() -> list[JobId]:
        ids = [(await lingers.enqueue(number)).id for number in range(JOBS)]
        worker = await app.worker()
        program.working = asyncio.create_task(worker.run())  # type: ignore[attr-defined] # or it may be collected
        await until(lambda: len(begun) == JOBS)
        quick = await is_quick.enqueue()
        await quick.result("30s")
        return ids

    ids = await asyncio.to_thread(lambda: asyncio.run(program()))
    async with app:
        views = [await app.view(job_id) for job_id in ids]
    assert [_standing(view) for view in views] == [(JobState.READY, 0, 0)] * JOBS


async def test_g9_a_program_that_ends_in_the_middle_of_a_claim_costs_no_attempt(
    engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs are taken, and the worker never hears which: others would think that it died over them."""
    app, taken = App(engine_url), list[Claim]()

    @app.job
    async def is_never_begun(number: int) -> None:
        raise AssertionError(number)

    async def program() -> list[JobId]:
        ids = [(await is_never_begun.enqueue(number)).id for number in range(JOBS)]
        worker = await app.worker()
        claim = worker._store.claim

        async def claim_without_an_answer(worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
            taken.extend(await claim(worker_id, wanted))
            await asyncio.sleep(600)
            return taken

        monkeypatch.setattr(worker._store, "claim", claim_without_an_answer)
        program.working = asyncio.create_task(worker.run())  # type: ignore[attr-defined] # as above
        await until(lambda: len(taken) == JOBS)
        return ids

    ids = await asyncio.to_thread(lambda: asyncio.run(program()))
    async with app:
        views = [await app.view(job_id) for job_id in ids]
    assert [_standing(view) for view in views] == [(JobState.READY, 0, 0)] * JOBS


def _standing(view: JobView | None) -> tuple[JobState, int, int] | None:
    return None if view is None else (view.state, view.failures, view.crashes)
