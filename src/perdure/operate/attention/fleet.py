"""Queues without progress, breakers that are open, workers that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from shlex import quote as shell_word
from typing import Final
from urllib.parse import quote

from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs.states import JobState
from perdure.domain.worker import Phase, WorkerView
from perdure.operate.attention.need import Need
from perdure.operate.health.checkup import ASSUMED_LEASE, LONG_WAIT_AFTER
from perdure.operate.wording import listed, roughly, some
from perdure.storage.operate.diagnosis import Severity
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Tally

_JOBS_COUNTED: Final = 1_000
_JOBS_PER_FRONT: Final = 1  # jobs looked at in each priority for the one that waits longest
_READY: Final = JobFilter(states=frozenset({JobState.READY}))
_RECENT_WITHIN: Final = timedelta(hours=1)


async def queues_without_progress(store: Store, now: datetime) -> list[Need]:
    """Queues with ready jobs that no worker serves, or whose oldest job waits for long."""
    tallies = {
        tally.queue: tally for tally in await store.count(_READY, ("queue",), _JOBS_COUNTED) if tally.queue is not None
    }
    if not tallies:
        return []
    pauses, workers, fronts = await asyncio.gather(
        store.pauses(), store.workers(), store.fronts(sorted(tallies), _JOBS_PER_FRONT)
    )
    paused = {pause.queue for pause in pauses if pause.kind is None and pause.args is None}
    alive = [worker for worker in workers if worker.dead_at is None and now - worker.beat_at <= ASSUMED_LEASE]
    served = {queue for worker in alive if not _is_quiet(worker) for queue in worker.queues}
    oldest: dict[str, datetime] = {}
    for front in fronts:
        oldest[front.queue] = min(front.since, oldest.get(front.queue, front.since))
    found: list[Need] = []
    for queue, tally in tallies.items():
        since = oldest.get(queue, now)
        if queue in paused:
            continue
        if queue not in served:
            found.append(_unserved(queue, tally, since, now, workers))
        elif now - since >= LONG_WAIT_AFTER:
            found.append(_slow(queue, tally, since, now))
    return found


async def tripped_breakers(store: Store, now: datetime) -> list[Need]:
    """Breakers that are not closed."""
    return [_tripped(breaker, now) for breaker in await store.breakers() if breaker.state is not BreakerState.CLOSED]


async def lost_workers(store: Store, now: datetime) -> list[Need]:
    """Workers that are silent, or were given up in the last hour."""
    return [
        _lost(worker, now)
        for worker in await store.workers()
        if (worker.dead_at is None and now - worker.beat_at > ASSUMED_LEASE)
        or (worker.dead_at is not None and worker.phase is not Phase.CLOSED and now - worker.dead_at < _RECENT_WITHIN)
    ]


def _unserved(queue: str, tally: Tally, since: datetime, now: datetime, workers: Iterable[WorkerView]) -> Need:
    before = [worker for worker in workers if queue in worker.queues]
    last = max(before, key=lambda worker: worker.beat_at, default=None)
    quiet = [worker.name for worker in before if worker.dead_at is None and _is_quiet(worker)]
    if quiet:
        detail = f"quiet: {listed(quiet)}"
    elif last is None:
        detail = "no worker of this queue is on record"
    else:
        end = "closed ❀ cleanly" if last.phase is Phase.CLOSED else "was lost"
        detail = f"its last worker, {last.name}, {end} {roughly(now - (last.dead_at or last.beat_at))} ago"
    return Need(
        severity=Severity.PROBLEM,
        about="queue",
        name=queue,
        subject=f"Queue {queue}",
        what=f"has {_many(tally)} and no worker",
        detail=detail,
        since=since,
        path=f"/queues/{quote(queue, safe='')}",
        label="See queue",
        cli=f"perdure worker your_module:app --queues {shell_word(queue)}",
    )


def _slow(queue: str, tally: Tally, since: datetime, now: datetime) -> Need:
    return Need(
        severity=Severity.WARNING,
        about="queue",
        name=queue,
        subject=f"Queue {queue}",
        what=f"does not keep up: its oldest ready job waits for {roughly(now - since)}",
        detail=f"{_many(tally)} ready; add workers or concurrency, or give this queue more weight",
        since=since,
        path=f"/queues/{quote(queue, safe='')}",
        label="See queue",
        cli=f"perdure jobs list --queue {shell_word(queue)} --state ready",
    )


def _tripped(breaker: BreakerView, now: datetime) -> Need:
    hand = f" by {breaker.by}" if breaker.by_hand and breaker.by else ""
    until = "" if breaker.until is None or breaker.until <= now else f"tries again in {roughly(breaker.until - now)}"
    return Need(
        severity=Severity.WARNING,
        about="breaker",
        name=breaker.name,
        subject=f"Breaker {breaker.name}",
        what=f"is {breaker.state}{hand}" + (": it needs a person to close it" if breaker.by_hand else ""),
        detail="; ".join(part for part in (breaker.note or "", until) if part),
        since=breaker.changed_at,
        path="/gates",
        label="See breaker",
        cli=f"perdure breakers close {shell_word(breaker.name)}",
    )


def _lost(worker: WorkerView, now: datetime) -> Need:
    held = f", with {some(worker.running, 'job')}" if worker.running else ""
    return Need(
        severity=Severity.PROBLEM if worker.dead_at is None else Severity.WARNING,
        about="worker",
        name=worker.name,
        subject=f"Worker {worker.name}",
        what=f"is lost: its last heartbeat was {roughly(now - worker.beat_at)} ago{held}",
        detail="its jobs come back to other workers; find out whether it hangs, was killed, or lost the network",
        since=worker.beat_at,
        path="/workers",
        label="See workers",
        cli="perdure workers",
    )


def _is_quiet(worker: WorkerView) -> bool:
    return worker.phase is Phase.QUIET or worker.quiet_at is not None


def _many(tally: Tally) -> str:
    return f"{'at least ' if tally.capped else ''}{some(tally.jobs, 'job')}"
