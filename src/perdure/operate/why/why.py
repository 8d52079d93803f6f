"""Why is this job not running? All possible reasons are checked in order, and the first that applies is the answer.

A parked job stores its reason (see `operate.why.parked`). A ready one has none: it waits because of a pause, or because
of its queue's workers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from shlex import quote
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import FINAL, JobState
from perdure.domain.stored_words import is_known
from perdure.domain.worker import Phase, WorkerView
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.records import Remedy, Why
from perdure.operate.why.awaited import failed_children
from perdure.operate.why.parked import held_by, parked
from perdure.operate.wording import listed, rounded, some, utc_text
from perdure.policy.limits.pausing import covers
from perdure.storage.port import Store

_JOBS_COUNTED: Final = 1_000


async def why(store: Store, job: JobView) -> Why:
    """Why this job is not running, or that it is running or final."""
    now = await store.now()
    if not is_known(job.state):
        return _foreign(job)
    if job.state in FINAL:
        return await _finished(store, job)
    if job.state is JobState.RUNNING:
        return await _running(store, job, now)
    pauses = [pause for pause in await store.pauses() if covers(pause, job.queue, job.kind, job.args)]
    if job.state is JobState.READY:
        return held_by(pauses[0], job) if pauses else await _ready(store, job, now)
    crew = _Crew.of(job, await store.workers(), now)
    return await parked(store, job, now, pauses=pauses, is_alone=not crew.beating)


class _Crew(Struct, frozen=True):
    """The running workers: all of them, and those of the job's queue, each in one of four groups."""

    beating: tuple[WorkerView, ...]
    silent: tuple[WorkerView, ...]
    quiet: tuple[WorkerView, ...]
    busy: tuple[WorkerView, ...]
    free: tuple[WorkerView, ...]

    @classmethod
    def of(cls, job: JobView, workers: Iterable[WorkerView], now: datetime) -> _Crew:
        living = [worker for worker in workers if worker.dead_at is None]
        beating = tuple(worker for worker in living if now - worker.beat_at <= ASSUMED_LEASE)
        serving = [worker for worker in living if job.queue in worker.queues]
        awake = [worker for worker in serving if worker in beating]
        claiming = [worker for worker in awake if not _is_quiet(worker)]
        return cls(
            beating,
            tuple(worker for worker in serving if worker not in beating),
            tuple(worker for worker in awake if _is_quiet(worker)),
            tuple(worker for worker in claiming if worker.running >= worker.concurrency),
            tuple(worker for worker in claiming if worker.running < worker.concurrency),
        )


async def _ready(store: Store, job: JobView, now: datetime) -> Why:
    found = _about_workers(job, _Crew.of(job, await store.workers(), now))
    facts = [
        *found.facts,
        f"It was first due at {utc_text(job.since)} and has priority {job.priority} (0 goes first).",
    ]
    facts += await _line(store, job)
    if job.last_error is not None:
        facts.append(f"It has failed before: {job.last_error}")
    return replace(found, facts=tuple(facts))


def _about_workers(job: JobView, crew: _Crew) -> Why:
    remedy = None
    start = f"start one: perdure worker your_module:app --queues {quote(job.queue)}"
    if crew.free:
        answer, facts = "It is ready, and waits for its turn.", [f"Workers with a free slot: {_names(crew.free)}."]
        advice = "look again in a moment; if nothing changes, see the log of these workers"
    elif crew.busy:
        taken, room = sum(worker.running for worker in crew.busy), sum(worker.concurrency for worker in crew.busy)
        answer = "All workers of its queue are busy."
        facts = [f"{taken:,} of {room:,} places are taken: {_names(crew.busy)}.", *_others(crew)]
        advice = "add workers or concurrency, or wait"
    elif crew.quiet:
        answer, facts = "All workers of its queue are quiet: they claim nothing.", _others(crew)
        advice = "let them claim again with `perdure quiet --off NAME`, or start another worker"
        remedy = Remedy("loud", crew.quiet[0].name, f"Let {crew.quiet[0].name} claim again")
    elif crew.silent:
        answer = "The workers of its queue send no heartbeat."
        facts = [f"No heartbeat for more than {rounded(ASSUMED_LEASE)}: {_names(crew.silent)}."]
        advice = f"look whether they hang or lost the network, or {start}"
    else:
        served = sorted({queue for worker in crew.beating for queue in worker.queues})
        living = f"{'is' if len(crew.beating) == 1 else 'are'} {some(len(crew.beating), 'worker')}"
        alive = f"Alive {living}, for {listed(repr(queue) for queue in served)}."
        answer, facts, advice = f"No worker serves its queue {job.queue!r}.", [alive], start
        if not crew.beating:
            facts = ["No worker is alive."]
    return Why(job=job, answer=answer, facts=tuple(facts), what_to_do=advice, remedy=remedy)


def _others(crew: _Crew) -> list[str]:
    states = (("Quiet", crew.quiet), ("Silent", crew.silent))
    return [f"{word}: {_names(workers)}." for word, workers in states if workers]


async def _line(store: Store, job: JobView) -> list[str]:
    """Its rough place: only the length of the line is cheap to know."""
    counts = [c for c in await store.counts(_JOBS_COUNTED) if c.queue == job.queue and c.state is JobState.READY]
    others = sum(count.jobs for count in counts) - 1
    if others < 1:
        return []
    least = "At least " if counts[0].capped else ""
    are = "is" if others == 1 else "are"
    return [f"{least}{some(others, 'other job')} of its queue {are} ready too: by priority first, then by age."]


async def _running(store: Store, job: JobView, now: datetime) -> Why:
    since = f" since {utc_text(job.started_at)}" if job.started_at else ""
    facts = []
    if (progress := await store.progress(job.id)) is not None:
        total = "" if progress.total is None else f" of {progress.total:g}"
        note = f": {progress.note}" if progress.note else ""
        facts.append(f"Progress: {progress.current:g}{total}{note} ({utc_text(progress.at)}).")
    if job.failures or job.crashes:
        facts.append(f"It is attempt {job.failures + job.crashes + 1}; the last one failed: {job.last_error}")
    advice = None
    if job.cancel_requested_at is not None:
        facts.append(f"It was asked to stop at {utc_text(job.cancel_requested_at)}, and has not ended yet.")
    crew = [worker for worker in await store.workers() if worker.name == job.worker]
    if crew and all(now - worker.beat_at > ASSUMED_LEASE for worker in crew):
        facts.append(f"Its worker is silent for {rounded(now - max(worker.beat_at for worker in crew))}.")
        advice = "any running worker rescues the job once that worker is declared dead: see `perdure doctor`"
    return Why(job=job, answer=f"It is running{since}, on {job.worker}.", facts=tuple(facts), what_to_do=advice)


def _foreign(job: JobView) -> Why:
    answer = f"It is {job.state}, which only a newer release of perdure knows: {job.reason}."
    facts = () if job.last_error is None else (f"The last error was {job.last_error}",)
    advice = "use the release that put it there; this one does not touch the job"
    return Why(job=job, answer=answer, facts=facts, until=job.due_at, what_to_do=advice)


async def _finished(store: Store, job: JobView) -> Why:
    when = f" at {utc_text(job.finished_at)}" if job.finished_at else ""
    facts = [] if job.last_error is None else [f"The last error was {job.last_error}"]
    facts += [f"Warning: {warning}" for warning in job.warnings]
    word = f" ({job.word})" if job.word not in {None, job.state} else ""
    answer = f"It is finished: {job.state}{word}{when}, {job.reason}."
    advice = None if job.state is JobState.SUCCEEDED else f"perdure jobs requeue {job.id} requeues it"
    if job.state is JobState.DEAD and (failed := await failed_children(store, job.id)):
        facts.append(f"Of its children, these have failed: {listed(failed)}.")
        advice = f"requeued alone, it finds the same children: perdure jobs requeue CHILD first, then {job.id}"
    remedy = None if job.state is JobState.SUCCEEDED else Remedy("requeue", job.id, "Requeue")
    return Why(job=job, answer=answer, facts=tuple(facts), what_to_do=advice, remedy=remedy)


def _is_quiet(worker: WorkerView) -> bool:
    return worker.phase in {Phase.QUIET, Phase.CLOSING} or worker.quiet_at is not None


def _names(workers: Iterable[WorkerView]) -> str:
    return listed(f"{worker.name} (id {worker.id})" for worker in workers)
