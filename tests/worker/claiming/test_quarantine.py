"""Jobs in quarantine: a closing worker starts none, and those behind the first go back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.support.bench import Ledger, a_claim

from perdure import App, JobState, WorkerSettings
from perdure.clock import SystemClock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.events import Emitter
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.wiring.worker import build_worker

QUICK = WorkerSettings(grace="10ms", poll="50ms", stop_timeout=0)


async def test_g9_a_job_in_quarantine_is_not_started_by_a_closing_worker() -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def plain() -> None:
        return None

    ledger = Ledger()
    worker = build_worker(store=ledger.store, kinds=app.kinds, settings=QUICK, emitter=Emitter(), clock=SystemClock())
    suspect = a_claim("plain", crashes=2)
    worker._parts.attempts.quarantine.start([suspect])
    worker._parts.attempts.stages.is_closing = True
    await asyncio.wait_for(worker._parts.attempts.quarantine.drain(), 10)
    await asyncio.wait_for(worker._parts.attempts.acknowledger.drain(), 10)
    assert [(move.to, move.reason) for move in ledger.written.values()] == [(JobState.READY, Reason.RELEASED)]
    assert worker.running == 0


async def test_quarantine_gives_back_after_every_first_answer_of_the_database() -> None:
    errors: list[Exception] = [RuntimeError("odd")]

    def refuse(_: Sequence[Transition]) -> None:
        if errors:
            raise errors.pop()

    ledger, started = Ledger(refuse), list[Claim]()
    quarantine = Quarantine(
        ledger.store,
        Emitter(),
        WorkerSettings(),
        start=started.extend,
        is_running=lambda _: True,
        on_given_back=lambda: None,
    )
    suspects = [a_claim("plain", crashes=2) for _ in range(2)]
    quarantine.start(suspects)
    await asyncio.wait_for(quarantine.drain(), 10)
    assert (started, list(ledger.written)) == (suspects[:1], [suspects[1].job_id])
