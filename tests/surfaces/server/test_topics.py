"""What tells an open page that something has changed."""

from __future__ import annotations

from tests.support.builders.jobs import a_job, apply, claim_one, employ

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.server.topics import TICK


async def test_a_job_that_starts_or_ends_changes_the_word_and_running_jobs_are_counted_once(
    store: Store, clock: ManualClock
) -> None:
    del clock  # it stands still
    asked: list[object] = []
    desk = Desk(store, "ada")
    count = desk.count_by

    async def counting(*by: str, which: object, cap: int) -> object:
        asked.append(which)
        return await count(*by, which=which, cap=cap)  # type: ignore[arg-type]

    desk.count_by = counting  # type: ignore[assignment,method-assign]
    worker_id = await employ(store)
    await store.insert([a_job()])
    words = [await TICK.ask(desk)]
    claim = await claim_one(store, worker_id)
    words.append(await TICK.ask(desk))
    await apply(store, transition.succeeded(claim, None, ()))
    words += [await TICK.ask(desk), await TICK.ask(desk)]
    assert [words.index(word) for word in words] == [0, 1, 2, 2]
    assert all("running" not in which.states for which in asked)  # type: ignore[attr-defined]
