"""Runs jobs for a sandbox: all due jobs, or those just enqueued."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, structs

from perdure.app.app import App
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.domain.worker import NewWorker
from perdure.errors import JobNotSuccessful
from perdure.lifecycle.process.identity import this_process
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.testing.calendar import SandboxCalendar
from perdure.testing.drained import Drained
from perdure.testing.periodic import SandboxPeriodic
from perdure.testing.runner import Runner
from perdure.testing.witness import Witness
from perdure.upkeep.promoter import Promoter
from perdure.version import __version__
from perdure.worker.settings import WorkerSettings
from perdure.worker.surroundings import Surroundings

_JOBS_PER_CALL: Final = 1_000
_INLINE_DEPTH_LIMIT: Final = 50
_RETRY_SECONDS: Final = 0.001
_UNDER_WAY: Final = frozenset({JobState.READY, JobState.RUNNING})
_LEFT_FAILED: Final = frozenset({JobState.RETRYING, JobState.DEAD})
_depth: ContextVar[int] = ContextVar("perdure_inline_depth", default=0)


class SandboxOptions(Struct, frozen=True, kw_only=True):
    """How a sandbox runs jobs: in processes or here, with which chance, and whether periodic functions run."""

    isolate: bool
    seed: int
    periodic: bool


class Drainer:
    """The worker of a sandbox, which works only on request."""

    def __init__(
        self,
        app: App,
        store: Store,
        clock: ManualClock,
        settings: WorkerSettings,
        options: SandboxOptions,
    ) -> None:
        self._app = app
        self._store = store
        self._clock = clock
        self._settings = settings
        self._isolate = options.isolate
        self._chance = random.Random(options.seed)  # noqa: S311 - jitter hides nothing
        self._promoter = Promoter(store, app.events, lambda: None)
        self.calendar = SandboxCalendar(app, store, clock, self._chance)
        self._periodic = SandboxPeriodic(app, clock) if options.periodic else None
        self._worker_id: WorkerId | None = None

    async def drain(
        self,
        queue: str | None,
        *,
        travel: bool | timedelta,
        until: Callable[[], bool],
        concurrency: int,
        limit: int,
        raising: bool,
    ) -> Drained:
        """Run due jobs until none is left; with `travel`, also jobs that fall due later.

        Schedules and periodic functions never end, so they move the clock only up to a horizon. Without a horizon,
        those due at the beginning fire, and none fires later.
        """
        queues = None if queue is None else (queue,)
        horizon = self._clock.now() + travel if isinstance(travel, timedelta) else None
        async with self._runner(concurrency) as (runner, witness):
            await self.calendar.declare()
            await self.calendar.fire()
            await self._call_periodic(raising=raising)
            for _ in range(limit + 1):
                await self._run_due(runner, queues, limit, until)
                if witness.escaped is not None:
                    raise witness.escaped
                due = await self._next_due(queue, horizon) if travel and not until() else None
                if horizon is not None and not until():
                    due = await self._tick_on_the_way(due, horizon, raising=raising)
                if due is None:
                    break
                self.travel_to(due)
                if horizon is not None:
                    await self.calendar.fire()
            else:
                still = await self._kinds_in(PARKED, queue) or "those of schedules"
                raise AssertionError(
                    f"{limit} jumps in time were made, and jobs are still to come: {still}; raise limit=…?"
                )
            if horizon is not None and not until():
                self.travel_to(horizon)
            views = await self._views(runner.jobs)
            if raising:
                _raise_first(views, witness)
        counts = await self._store.counts()
        left = sum(c.jobs for c in counts if c.state not in FINAL and (queue is None or c.queue == queue))
        return Drained(jobs=tuple(views), attempts=runner.attempts, left=left)

    async def run_inline(self, jobs: Sequence[JobId], *, limit: int, raising: bool) -> None:
        """Run ready jobs until none is left, these jobs included; only errors of these jobs are raised."""
        before = _depth.set(_depth.get() + 1)
        try:
            async with self._runner(1) as (runner, witness):
                while True:
                    await self._run_ready(runner, None, limit, _never)
                    views = await self._views(jobs)
                    if not any(view.state in _UNDER_WAY and view.queue not in runner.paused for view in views):
                        break
                    await asyncio.sleep(_RETRY_SECONDS)  # a concurrent enqueue has taken it
                if witness.escaped is not None:
                    raise witness.escaped
                if raising:
                    _raise_first(views, witness)
        finally:
            _depth.reset(before)

    def travel_to(self, when: datetime) -> None:
        """Move the clock forward; never back."""
        self._clock.move(max(when - self._clock.now(), timedelta(0)))

    @asynccontextmanager
    async def _runner(self, concurrency: int) -> AsyncIterator[tuple[Runner, Witness]]:
        witness = Witness()
        served = self._app.kinds | self._app.own_kinds
        kinds = {name: witness.watch(kind, isolate=self._isolate) for name, kind in served.items()}
        settings = structs.replace(self._settings, concurrency=concurrency)
        worker_id = await self._worker()
        around = Surroundings(
            store=self._store,
            kinds=kinds,
            settings=settings,
            emitter=self._app.events,
            clock=self._clock,
            hooks=self._app.hooks,
        )
        runner = Runner(around, worker_id, self._chance)
        async with self._app.hooks.lifespans.opened(_not_closed):
            try:
                yield runner, witness
            finally:
                await runner.close()

    async def _worker(self) -> WorkerId:
        """The worker id for claims; a new one if a rescuer declared the old one dead after a jump of the clock."""
        if self._worker_id is None or not await self._store.beat(self._worker_id):
            me = NewWorker(name="sandbox", process=this_process(), queues=(), concurrency=1, version=__version__)
            self._worker_id = await self._store.register(me)
        return self._worker_id

    async def _run_due(
        self, runner: Runner, queues: Sequence[str] | None, limit: int, until: Callable[[], bool]
    ) -> None:
        before = -1
        while runner.attempts > before and not until():
            before = runner.attempts
            while (await self._promoter.tick()).total:
                pass
            await self._run_ready(runner, queues, limit, until)

    async def _run_ready(
        self, runner: Runner, queues: Iterable[str] | None, limit: int, until: Callable[[], bool]
    ) -> None:
        await runner.run(queues, limit, until)
        if runner.attempts >= limit and not until() and (ready := await self._kinds_in({JobState.READY})):
            raise AssertionError(f"{limit} attempts were made, and jobs are still ready: {ready}; raise limit=…?")

    async def _next_due(self, queue: str | None, horizon: datetime | None) -> datetime | None:
        """The next time up to the horizon at which a job of this queue or, with a horizon, a schedule is due.

        Jobs of a queue that is paused until a time fall due then.
        """
        parked = JobFilter(states=PARKED, queue=queue)
        dues: list[datetime] = []
        before: JobId | None = None
        while page := await self._store.jobs(parked, Page(_JOBS_PER_CALL, before)):
            dues += [view.due_at for view in page if view.due_at is not None]
            before = page[-1].id
        dues += await self._ends_of_pauses(queue)
        if horizon is not None and (time := await self.calendar.next_time()) is not None:
            dues.append(time)
        return min((due for due in dues if horizon is None or due <= horizon), default=None)

    async def _call_periodic(self, *, raising: bool) -> None:
        error = None if self._periodic is None else await self._periodic.call_due()
        if raising and error is not None:
            raise error

    async def _tick_on_the_way(self, due: datetime | None, horizon: datetime, *, raising: bool) -> datetime | None:
        """Call periodic functions at their times until something else is due, or until one of them has changed jobs.

        Returns what is due then: now, if jobs have changed. These calls are many and do not count as jumps.
        """
        before = await self._store.counts() if self._periodic else []
        while self._periodic and (time := self._periodic.next_time()) is not None and time <= (due or horizon):
            self.travel_to(time)
            await self._call_periodic(raising=raising)
            if await self._store.counts() != before:
                return self._clock.now()
        return due

    async def _ends_of_pauses(self, queue: str | None) -> list[datetime]:
        """When paused queues with ready jobs resume by themselves."""
        ready = {count.queue for count in await self._store.counts() if count.state is JobState.READY}
        held = ready if queue is None else ready & {queue}
        pauses = [pause for pause in await self._store.pauses() if pause.kind is None and pause.queue in held]
        return [pause.until for pause in pauses if pause.until is not None]

    async def _views(self, ids: Iterable[JobId]) -> list[JobView]:
        wanted = tuple(ids)
        found: dict[JobId, JobView] = {}
        for start in range(0, len(wanted), _JOBS_PER_CALL):
            which = JobFilter(ids=wanted[start : start + _JOBS_PER_CALL])
            found |= {view.id: view for view in await self._store.jobs(which, Page(_JOBS_PER_CALL))}
        return [found[job_id] for job_id in wanted if job_id in found]

    async def _kinds_in(self, states: Iterable[JobState], queue: str | None = None) -> str:
        views = await self._store.jobs(JobFilter(states=frozenset(states), queue=queue), Page(_JOBS_PER_CALL))
        kinds = [view.kind for view in views]
        return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))


def refuse_too_deep() -> None:
    """Refuse a deep recursion of inline jobs that enqueue inline jobs: it may never end."""
    if _depth.get() >= _INLINE_DEPTH_LIMIT:
        raise AssertionError(f"inline jobs enqueue each other more than {_INLINE_DEPTH_LIMIT} deep: drain them instead")


def _not_closed(lifespan: str, error: BaseException) -> None:
    raise AssertionError(f"lifespan {lifespan} failed to close") from error


def _never() -> bool:
    return False


def _raise_first(views: Iterable[JobView], witness: Witness) -> None:
    """Raise the exception of the first failed job: the original one, if the handler ran in this process."""
    for view in views:
        if view.state in _LEFT_FAILED:
            error = witness.raised.get(view.id)
            if error is None:
                raise JobNotSuccessful(view.id, view.state, view.last_error or view.reason)
            error.add_note(f"raised by job {view.kind} {view.id} on attempt {view.failures}; it is {view.state} now")
            raise error
