"""Workers: their running jobs, heartbeats and phases (quiet, opening, closing, lost)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.worker import Phase, WorkerView
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.wording import listed
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("workers")
_JOBS_LOOKED_AT: Final = 300
_JOBS_SHOWN: Final = 8
_WORKERS_AS_CARDS: Final = 12  # more workers are shown as a table
_GONE_WORKERS_SHOWN: Final = 20
_RUNNING: Final = JobFilter(states=frozenset({JobState.RUNNING}))


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker with its row's data. `word` is its phase, or `lost`; `said` explains it.

    Jobs know the name of their worker only, so that two workers of one name that serve one queue share their jobs here.
    `handle` names it in a terminal: its id if another running worker has the same name. `jobs` are the longest running
    of those that were looked at; `more`: how many others it runs.
    """

    view: WorkerView
    word: str
    mark: str
    said: str
    handle: str
    jobs: tuple[JobView, ...] = ()
    more: int = 0

    @property
    def is_quiet(self) -> bool:
        """Whether it was told to stop claiming."""
        return self.view.quiet_at is not None or self.view.phase is Phase.QUIET


@room.page("/workers")
async def workers(visit: Visit) -> Response:
    """Running workers with their jobs, and workers that have ended."""
    views = await visit.shared("workers", visit.desk.workers)
    running = await visit.shared("running", lambda: visit.desk.jobs(_RUNNING, Page(_JOBS_LOOKED_AT)))
    now = await visit.now()
    living = [view for view in views if view.dead_at is None]
    gone = sorted(
        (view for view in views if view.dead_at is not None), key=lambda view: view.dead_at or now, reverse=True
    )
    return await visit.page(
        "pages/workers.html",
        title="Workers",
        now=now,
        living=sorted(rows_of(living, now, running.jobs), key=lambda row: (row.word != "lost", row.view.name)),
        many=_WORKERS_AS_CARDS,
        gone=rows_of(gone[:_GONE_WORKERS_SHOWN], now),
        gone_more=max(len(gone) - _GONE_WORKERS_SHOWN, 0),
        running=sum(view.running for view in living),
        slots=sum(view.concurrency for view in living),
        hosts=len({view.process.host for view in living}),
    )


@room.command("/workers/{id}/quiet", confirm="Tell this worker to stop claiming?")
async def quiet(visit: Visit) -> Response:
    """Tell one worker to stop claiming."""
    return await _set_quiet(visit, [visit.path("id")], quiet=True)


@room.command("/workers/{id}/loud")
async def loud(visit: Visit) -> Response:
    """Tell one worker to claim again."""
    return await _set_quiet(visit, [visit.path("id")], quiet=False)


@room.command("/workers/quiet", confirm="Tell all workers to stop claiming?")
async def quiet_all(visit: Visit) -> Response:
    """Tell all workers to stop claiming."""
    return await _set_quiet(visit, None, quiet=True)


@room.command("/workers/loud")
async def loud_all(visit: Visit) -> Response:
    """Tell all workers to claim again."""
    return await _set_quiet(visit, None, quiet=False)


async def _set_quiet(visit: Visit, names: Sequence[str] | None, *, quiet: bool) -> Response:
    asked = await visit.desk.quiet(names, quiet=quiet, why=visit.why)
    if not asked:
        return visit.done("No worker runs.", back="/workers")
    what = "stop claiming; running jobs continue" if quiet else "claim again"
    return visit.done(f"Told {listed(worker.name for worker in asked)} to {what}.", back="/workers")


def rows_of(views: Sequence[WorkerView], now: datetime, running: Sequence[JobView] = ()) -> list[WorkerRow]:
    """The rows of workers; `running` are jobs of any worker."""
    named = Counter(view.name for view in views)
    return [_row_of(view, now, running, is_alone=named[view.name] == 1) for view in views]


def _row_of(view: WorkerView, now: datetime, running: Sequence[JobView], *, is_alone: bool) -> WorkerRow:
    own = [job for job in running if job.worker == view.name and job.queue in view.queues] if view.running else []
    shown = tuple(sorted(own, key=lambda job: job.started_at or now)[:_JOBS_SHOWN])
    word, mark, said = _status(view, now)
    return WorkerRow(
        view=view,
        word=word,
        mark=mark,
        said=said,
        handle=view.name if is_alone and not view.name.startswith("-") else str(view.id),
        jobs=shown,
        more=max(view.running - len(shown), 0),
    )


def _status(view: WorkerView, now: datetime) -> tuple[str, str, str]:
    if view.dead_at is not None:
        if view.phase is Phase.CLOSED:
            return "closed", "❀", "It closed cleanly."
        return "lost", "", "It died without closing; other workers took over its jobs."
    if now - view.beat_at > ASSUMED_LEASE:
        return "lost", "", "It sends no heartbeat; other workers take over its jobs."
    if view.phase in {Phase.OPENING, Phase.CLOSING}:
        return view.phase, *_GENTLE[view.phase]
    if view.phase is Phase.QUIET or view.quiet_at is not None:
        return "quiet", "", "It was told to stop claiming; its running jobs continue."
    return view.phase, "", "It claims jobs."


_GENTLE: Final = {
    Phase.OPENING: ("✿", "It is opening: it claims more jobs step by step."),
    Phase.CLOSING: ("❀", "It is closing: it claims nothing, and lets its running jobs finish."),
}
