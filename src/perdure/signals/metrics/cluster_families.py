"""The cluster as families."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.domain.gate import BreakerState
from perdure.domain.jobs.states import ACTIVE, JobState
from perdure.domain.operate.statistics import Ending
from perdure.domain.worker import Phase, WorkerView
from perdure.signals.metrics import catalogue as c
from perdure.signals.metrics.attempts import AttemptFamilies
from perdure.signals.metrics.cluster import Cluster
from perdure.signals.metrics.families import Family, Numbers, Times
from perdure.signals.metrics.labels import Labels
from perdure.signals.metrics.settings import MetricsSettings

SILENT: Final = "silent"
_SHOWN: Final = ACTIVE | {JobState.DEAD}


def cluster_families(cluster: Cluster, labels: Labels, settings: MetricsSettings) -> list[Family]:
    """All metrics of the cluster, except those about the read itself."""
    cap = Numbers(c.CAP)
    cap.add(settings.cap)
    return [
        cap,
        *_attempts(cluster, labels),
        *_jobs(cluster, labels),
        *_fleet(cluster, labels, settings.silence),
        *_gates(cluster, labels),
        _overdue(cluster, labels),
    ]


def _attempts(cluster: Cluster, labels: Labels) -> tuple[Numbers | Times, ...]:
    found = AttemptFamilies(
        attempts=c.ALL_ATTEMPTS, retries=c.ALL_RETRIES, deaths=c.ALL_DEATHS, wait=c.ALL_WAIT, run=c.ALL_RUN
    )
    for pair in labels.declared:
        found.add(pair, {})
    holds = Numbers(c.ALL_HOLDS)
    for one in sorted(cluster.totals, key=lambda one: -sum(one.endings)):  # the most frequent get their own labels
        pair = labels.pair(one.queue or "", one.kind or "")
        endings = dict(zip(Ending, one.endings, strict=True))
        found.add(pair, endings)
        found.add_times(pair, (one.waits, one.waited), (one.runs, one.ran))
        holds.add(endings[Ending.HELD], *pair)
    return *found.parts, holds


def _jobs(cluster: Cluster, labels: Labels) -> tuple[Numbers, ...]:
    jobs, oldest, dead = Numbers(c.JOBS), Numbers(c.OLDEST, largest=True), Numbers(c.DEAD)
    for queue in sorted({*_served(cluster), *(count.queue for count in cluster.counts)}):
        for state in sorted(_SHOWN):
            jobs.add(0, labels.queue(queue), state)  # a graph that returns to 0 is clearer than one that ends
        age = cluster.now - cluster.oldest.get(queue, cluster.now)
        oldest.add(max(age.total_seconds(), 0.0), labels.queue(queue))
    for count in cluster.counts:
        if count.state in _SHOWN:
            jobs.add(count.jobs, labels.queue(count.queue), count.state)
    for one in cluster.totals:
        dead.add(0, labels.kind(one.kind or ""))
    for group in cluster.dead:
        dead.add(group.jobs, labels.kind(group.kind))
    return jobs, oldest, dead


def _fleet(cluster: Cluster, labels: Labels, silence: timedelta) -> tuple[Numbers, ...]:
    workers, serving = Numbers(c.WORKERS), Numbers(c.QUEUE_WORKERS)
    slots, paused = Numbers(c.QUEUE_SLOTS), Numbers(c.PAUSED, largest=True)
    for phase in (*Phase, SILENT):
        workers.add(0, phase)
    for queue in sorted({*_served(cluster), *(count.queue for count in cluster.counts)}):
        serving.add(0, labels.queue(queue))
        slots.add(0, labels.queue(queue))
        paused.add(queue in cluster.paused, labels.queue(queue))
    for worker in _registered(cluster):
        is_silent = cluster.now - worker.beat_at > silence
        workers.add(1, SILENT if is_silent else worker.phase)
        for queue in worker.queues if not is_silent else ():
            serving.add(1, labels.queue(queue))
            slots.add(worker.concurrency, labels.queue(queue))
    return workers, serving, slots, paused


def _gates(cluster: Cluster, labels: Labels) -> tuple[Numbers, ...]:
    breakers = Numbers(c.BREAKER, largest=True)
    for breaker in cluster.breakers:
        for state in BreakerState:
            breakers.add(breaker.state is state, labels.breaker(breaker.name), state.replace(" ", "_"))
    spent, share = Numbers(c.SPENT), Numbers(c.SHARE, largest=True)
    for use in cluster.budgets:
        spent.add(use.spent, labels.budget(use.name), use.window)
        if use.limit is not None:
            share.add(use.spent / use.limit, labels.budget(use.name), use.window)
    return breakers, spent, share


def _overdue(cluster: Cluster, labels: Labels) -> Numbers:
    overdue = Numbers(c.OVERDUE, largest=True)
    for view in cluster.schedules:
        late = timedelta(0) if view.next_at is None else cluster.now - view.next_at
        overdue.add(max(late.total_seconds(), 0.0), labels.schedule(view.name))
    return overdue


def _registered(cluster: Cluster) -> list[WorkerView]:
    return [worker for worker in cluster.workers if worker.dead_at is None]


def _served(cluster: Cluster) -> set[str]:
    return {*(queue for worker in _registered(cluster) for queue in worker.queues), *cluster.paused}
