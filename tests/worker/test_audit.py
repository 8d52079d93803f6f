"""What a worker writes to the audit trail, where its settings say so (A14)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.support.jobs import HOUR, MINUTE, start

from perdure import App, Retry, SettingsError, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.audit import Audited
from perdure.events import Emitter
from perdure.storage.audit import AuditFilter
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.upkeep.rescuer import Rescuer


async def actions(store: Store) -> list[tuple[str, Any]]:
    entries = await store.audit(AuditFilter(actor="system"), 100)
    return [(entry.action, entry.details["attempts"]) for entry in reversed(entries)]


@pytest.mark.parametrize(
    ("audit", "written"),
    [
        ((), []),
        ("retry", [("job_retry", 1), ("job_retry", 2)]),
        (("retry", "death"), [("job_retry", 1), ("job_retry", 2), ("job_death", 3)]),
    ],
    ids=["off", "retries", "deaths too"],
)
async def test_a14_each_retry_is_in_the_trail_if_that_is_switched_on(
    audit: Any, written: list[tuple[str, int]], tmp_path: Any
) -> None:
    """And the job takes the same way if it is not."""
    app = App(f"sqlite:///{tmp_path / 'unused.db'}", worker=WorkerSettings(audit=audit))

    @app.job(retry=Retry(attempts=3))
    async def fail() -> None:
        raise ValueError("never mind")

    async with Sandbox(app) as box:
        handle = await fail.enqueue()
        await box.drain(travel=True)
        view = await handle.view()
        assert (view.state, view.failures) == ("dead", 3)
        store = await app.store()
        assert await actions(store) == written
        for entry in await store.audit(AuditFilter(action="job_retry"), 1):
            assert entry.details == {
                "old_status": "running",
                "new_status": "retrying",
                "attempts": 2,
                "max_attempts": 3,
            }


@pytest.mark.parametrize("audit", [{Audited.RESCUE}, frozenset()])
async def test_a_rescue_is_in_the_trail_if_that_is_switched_on(
    store: Store, clock: ManualClock, audit: frozenset[Audited]
) -> None:
    claim = await start(store)
    rescuer = Rescuer(store, Emitter(), clock, MINUTE, timedelta(seconds=5), lambda: None, audit=audit)
    clock.move(HOUR)
    assert (await rescuer.tick()).ready == 1
    entries = await store.audit(AuditFilter(job_id=claim.job_id), 10)
    assert [(entry.actor, entry.action) for entry in entries] == ([("system", "job_rescue")] if audit else [])


def test_what_is_audited_is_given_by_words() -> None:
    assert WorkerSettings(audit=("retry", "cancel")).audit == {Audited.RETRY, Audited.CANCEL}
    assert WorkerSettings(audit="death").audit == {Audited.DEATH}
    assert WorkerSettings().audit == frozenset()


@pytest.mark.parametrize("audit", ["retries", ("retry", "x"), 3, [["retry"]]])
def test_an_unknown_word_is_refused_by_name(audit: Any) -> None:
    with pytest.raises(SettingsError, match=r"worker\.audit must be among retry, rescue, death, cancel, got"):
        WorkerSettings(audit=audit)
