"""Checks the whole system: schema, clocks, workers, queues, schedules, and the engine's own checks.

Every check stands alone: one that fails becomes a finding, and the others still run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.duration import format_duration
from perdure.domain.jobs.states import PARKED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.stored_words import is_known
from perdure.domain.worker import Phase, WorkerView
from perdure.errors import PerdureError, SchemaError
from perdure.operate.health.schedule_health import judge_schedules
from perdure.operate.wording import listed, rounded, some
from perdure.storage.operate.diagnosis import Finding, Severity, fine, problem, warning
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Overdue, Page

ASSUMED_LEASE: Final = timedelta(seconds=30)
SKEW_TO_NOTE: Final = timedelta(seconds=2)
SKEW_TO_MEND: Final = timedelta(seconds=60)
LONG_WAIT_AFTER: Final = timedelta(minutes=5)
LATE_AFTER: Final = timedelta(minutes=1)
_JOBS_SAMPLED: Final = 1_000
_ITEMS_NAMED: Final = 3


async def repair(store: Store, by: By) -> int:
    """Correct the due times of jobs parked by a clock that was ahead; returns how many."""
    mended = 0
    while redated := await store.redate_parked(by, _JOBS_SAMPLED):
        mended += len(redated)
    return mended


class Checkup:
    """One checkup of an open store. `lease` is that of the workers, 30 s by default."""

    def __init__(self, store: Store, clock: Clock, lease: timedelta = ASSUMED_LEASE) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease

    async def examine(self) -> list[Finding]:
        """Run every check; without a current schema, only those that do not need it."""
        findings = await self.examine_database()
        if any(finding.severity is not Severity.OK for finding in findings if finding.check == "schema"):
            return findings
        checks = (self._workers, self._orphans, self._queues, self._waits, self._overdue, self._parked_ahead)
        for check in (*checks, self._schedules, self._unknown_kinds, self._unknown_states, self._dead_letters):
            findings += await self._guarded(check.__name__.strip("_").replace("_", " "), check)
        return findings

    async def examine_database(self) -> list[Finding]:
        """Check only the engine, its clock and its schema: this does not depend on the number of jobs."""
        findings = await self._guarded("engine", self._store.diagnose)
        findings += await self._guarded("clock", self._clocks)
        return findings + await self._guarded("schema", self._schema)

    async def _guarded(self, check: str, look: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
        try:
            return await look()
        except PerdureError as error:
            return [problem(check, f"could not be checked: {error}", "fix this first, then run the check again")]

    async def _schema(self) -> list[Finding]:
        try:
            await self._store.check_schema()
        except SchemaError as error:
            return [problem("schema", str(error), "run `perdure migrate`, or use the perdure that made this database")]
        return [fine("schema", "current")]

    async def _clocks(self) -> list[Finding]:
        before = self._clock.now()
        theirs = await self._store.now()
        after = self._clock.now()
        ahead = max(theirs - after, timedelta(0)) or min(theirs - before, timedelta(0))
        if abs(ahead) < SKEW_TO_NOTE:
            return [fine("clock", f"this machine and the database agree within {format_duration(SKEW_TO_NOTE)}")]
        way = "ahead of" if ahead > timedelta(0) else "behind"
        seen = f"the database is {rounded(abs(ahead))} {way} this machine"
        advice = "run NTP on both: due times go by the database's clock, dates made by your code by this one"
        return [(problem if abs(ahead) >= SKEW_TO_MEND else warning)("clock", seen, advice)]

    async def _workers(self) -> list[Finding]:
        workers = await self._store.workers()
        now = await self._store.now()
        living = [worker for worker in workers if worker.dead_at is None]
        silent = [worker for worker in living if self._is_silent(worker, now)]
        findings = []
        if silent:
            longest = rounded(now - min(worker.beat_at for worker in silent))
            seen = f"{some(len(silent), 'worker')} silent, the longest for {longest}: {_names(silent)}"
            advice = (
                "their jobs come back once any worker runs; look whether these hang, were stopped, or lost the network"
            )
            findings.append(problem("workers", seen, advice))
        quiet = [worker for worker in living if worker not in silent and _is_quiet(worker)]
        if quiet:
            seen = f"{some(len(quiet), 'worker')} quiet, claiming nothing: {_names(quiet)}"
            advice = "let them claim again with `perdure quiet --off NAME`, or with SIGCONT if SIGTSTP made them quiet"
            findings.append(warning("workers", seen, advice))
        beating = len(living) - len(silent)
        if beating:
            running = sum(worker.running for worker in living if worker not in silent)
            findings.append(fine("workers", f"{some(beating, 'worker')} alive, {some(running, 'job')} running"))
        elif not silent:
            findings.append(warning("workers", "none alive", "start one: perdure worker your_module:app"))
        return findings

    async def _orphans(self) -> list[Finding]:
        orphans = await self._store.orphans(_JOBS_SAMPLED)
        if not orphans:
            return [fine("orphans", "none")]
        seen = f"{_at_least(len(orphans))} held by workers that are dead"
        return [warning("orphans", seen, "a running worker rescues them within seconds; if they stay, read its log")]

    async def _queues(self) -> list[Finding]:
        counts = await self._store.counts()
        now = await self._store.now()
        served = {
            queue
            for worker in await self._store.workers()
            if worker.dead_at is None and not self._is_silent(worker, now)
            for queue in worker.queues
        }
        idle = {count.queue for count in counts} - served
        ready = {count.queue: count.jobs for count in counts if count.queue in idle and count.state is JobState.READY}
        later = {count.queue for count in counts if count.queue in idle and count.state in PARKED} - ready.keys()
        advice = "start a worker with --queues "
        findings = []
        if ready:
            seen = f"no worker serves {_quoted(ready)}, where jobs are ready: {sum(ready.values()):,}"
            findings.append(problem("queues", seen, advice + ",".join(sorted(ready))))
        if later:
            seen = f"no worker serves {_quoted(later)}, where jobs will be due later"
            findings.append(warning("queues", seen, advice + ",".join(sorted(later))))
        return findings or [fine("queues", "every queue with jobs has a worker")]

    async def _waits(self) -> list[Finding]:
        waiting = await self._store.waiting()
        if not waiting:
            return [fine("waits", "no job waits for a worker")]
        longest = min(waiting, key=lambda one: one.since)
        wait = await self._store.now() - longest.since
        seen = f"the oldest ready job waits for {rounded(wait)}, in queue {longest.queue!r}"
        if wait < LONG_WAIT_AFTER:
            return [fine("waits", seen)]
        return [warning("waits", seen, "add workers or concurrency, or give that queue more weight")]

    async def _overdue(self) -> list[Finding]:
        """Workers make due jobs ready within a second; an overdue job cannot be made ready, or no worker tries."""
        late = await self._store.overdue(_JOBS_SAMPLED, LATE_AFTER)
        if not late:
            return [fine("overdue", "no job is parked beyond its time")]
        longest = rounded(await self._store.now() - late[0].due_at)
        seen = f"{_at_least(len(late))} parked beyond their time, the longest for {longest}: {_some_ids(late)}"
        if not await self._has_living_workers():
            return [warning("overdue", seen, "start a worker: it makes due jobs ready")]
        advice = (
            "read a worker's log for 'due job could not be made ready': it says what is wrong with the job's record; "
            "fix it, or cancel the job with `perdure jobs cancel ID`"
        )
        return [problem("overdue", seen, advice)]

    async def _has_living_workers(self) -> bool:
        now = await self._store.now()
        return any(
            worker.dead_at is None and not self._is_silent(worker, now) for worker in await self._store.workers()
        )

    async def _parked_ahead(self) -> list[Finding]:
        ahead = await self._store.parked_ahead()
        if ahead is None:
            return [fine("parked ahead", "no job was parked by a clock that was ahead")]
        seen = (
            f"{some(ahead.jobs, 'job')} parked by a clock that was ahead by up to {rounded(ahead.by)}: too long a wait"
        )
        return [problem("parked ahead", seen, "`perdure doctor --repair` restores their intended waits")]

    async def _schedules(self) -> list[Finding]:
        return judge_schedules(await self._store.schedules(), await self._store.now())

    async def _unknown_kinds(self) -> list[Finding]:
        paused = await self._store.jobs(JobFilter(states=frozenset({JobState.PAUSED})), Page(_JOBS_SAMPLED))
        kinds = Counter(job.kind for job in paused if job.reason == Reason.UNKNOWN_KIND)
        if not kinds:
            return [fine("unknown kinds", "none")]
        seen = listed(f"{kind!r} ({jobs})" for kind, jobs in kinds.most_common())
        advice = "deploy a worker that has these handlers; a job that finds none for a day is dead"
        return [warning("unknown kinds", f"jobs that no worker has a handler for: {seen}", advice)]

    async def _unknown_states(self) -> list[Finding]:
        counts = [count for count in await self._store.counts() if not is_known(count.state)]
        if not counts:
            return [fine("unknown states", "none")]
        jobs = Counter[str]()
        for count in counts:
            jobs[count.state] += count.jobs
        seen = listed(f"{state!s} ({number:,})" for state, number in jobs.most_common())
        advice = "upgrade perdure here; until then it shows these jobs but does not touch them"
        return [warning("unknown states", f"jobs in a state that only a newer release knows: {seen}", advice)]

    async def _dead_letters(self) -> list[Finding]:
        counts = [count for count in await self._store.counts() if count.state is JobState.DEAD]
        dead = sum(count.jobs for count in counts)
        if not dead:
            return [fine("dead letters", "none")]
        least = "at least " if any(count.capped for count in counts) else ""
        advice = "see `perdure dead list`; then requeue or purge them"
        return [warning("dead letters", f"{least}{some(dead, 'job')} given up", advice)]

    def _is_silent(self, worker: WorkerView, now: datetime) -> bool:
        return now - worker.beat_at > self._lease


def _is_quiet(worker: WorkerView) -> bool:
    return worker.phase is Phase.QUIET or worker.quiet_at is not None


def _quoted(names: Iterable[str]) -> str:
    return listed(repr(name) for name in sorted(names))


def _at_least(count: int) -> str:
    return some(count, "job") if count < _JOBS_SAMPLED else f"at least {some(count, 'job')}"


def _some_ids(late: list[Overdue]) -> str:
    shown = ", ".join(job.job_id for job in late[:_ITEMS_NAMED])
    return shown if len(late) <= _ITEMS_NAMED else f"{shown}, …"


def _names(workers: list[WorkerView]) -> str:
    return listed(worker.name for worker in workers)
