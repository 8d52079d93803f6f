"""Every metric that perdure exports: its name, type, labels and meaning. The reference page is made from this list."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

SECONDS: Final = "seconds"


class Type(StrEnum):
    """The type of a metric, in Prometheus' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    """One metric. The name of a counter ends with `_total`."""

    name: str
    type: Type
    labels: Sequence[str]
    help: str

    @property
    def unit(self) -> str | None:
        """The unit that the name ends with."""
        return SECONDS if self.name.endswith(f"_{SECONDS}") else None

    @property
    def is_of_cluster(self) -> bool:
        """Whether it is read from the database, so that every exporter gives the same value."""
        return self.name.startswith("perdure_cluster_")


_ALL: Final[list[Metric]] = []
_OF_JOBS: Final = ("queue", "kind")


def _counter(name: str, labels: Sequence[str], text: str) -> Metric:
    return _added(Metric(f"perdure_{name}_total", Type.COUNTER, tuple(labels), text))


def _gauge(name: str, labels: Sequence[str], text: str) -> Metric:
    return _added(Metric(f"perdure_{name}", Type.GAUGE, tuple(labels), text))


def _histogram(name: str, labels: Sequence[str], text: str) -> Metric:
    return _added(Metric(f"perdure_{name}", Type.HISTOGRAM, tuple(labels), text))


def _added(metric: Metric) -> Metric:
    _ALL.append(metric)
    return metric


BUILD: Final = _gauge("build_info", ["version"], "Always 1; the label is the version of perdure.")
ENQUEUED: Final = _counter("enqueued", _OF_JOBS, "Jobs that this process stored: enqueued, spawned or by a schedule.")
ATTEMPTS: Final = _counter(
    "attempts",
    [*_OF_JOBS, "outcome"],
    "Attempts that ended here: succeeded, retried, died, cancelled, or crashed (with another attempt to follow).",
)
RETRIES: Final = _counter("retries", _OF_JOBS, "Attempts that failed or crashed and are followed by another one.")
DEATHS: Final = _counter("deaths", _OF_JOBS, "Jobs that went to the dead letters here.")
HOLDS: Final = _counter(
    "holds",
    [*_OF_JOBS, "reason"],
    "Jobs put off at no cost: snoozed, parked, or held by a gate, a pause or a missing handler.",
)
WAIT: Final = _histogram("wait_seconds", _OF_JOBS, "Time from when a job was due to its start.")
RUN: Final = _histogram("run_seconds", _OF_JOBS, "Time from the start of an attempt to its end.")
RESCUED: Final = _counter(
    "rescued_jobs", ["outcome"], "Jobs that this process took from dead workers: made ready again, or dead."
)
STALE: Final = _counter(
    "stale_acknowledgements", [], "Acknowledgements that came after the lease was lost and changed nothing."
)
SCHEDULES: Final = _counter(
    "schedule_times", ["schedule", "outcome"], "Nominal times that this process handled: fired, missed or overlapped."
)
LAST_MISSED: Final = _gauge(
    "schedule_last_missed_timestamp_seconds",
    ["schedule"],
    "When this process last found nominal times of a schedule that no process had handled, as a Unix time.",
)
LATENESS: Final = _histogram(
    "schedule_lateness_seconds", ["schedule"], "Time from a nominal time of a schedule to when its job was stored."
)
TICKS: Final = _counter("loop_ticks", ["loop"], "Ticks of a periodic loop.")
SKIPS: Final = _counter("loop_skips", ["loop"], "Ticks that were skipped because the previous one still ran.")
LOOP_FAILURES: Final = _counter("loop_failures", ["loop"], "Ticks that failed or exceeded their limit.")
EVENTS: Final = _counter(
    "events", ["event"], "Events that this process emitted, by class; not those of single attempts."
)
RUNNING: Final = _gauge("worker_running", [], "Attempts that the workers of this process run now.")
SLOTS: Final = _gauge("worker_slots", [], "The most attempts that the workers of this process run at once.")
BACKLOG: Final = _gauge("worker_unrecorded", [], "Attempts that have ended and are not recorded yet.")

UP: Final = _gauge("cluster_up", [], "1 if the database answered this scrape, else 0: then the rest is missing.")
READ: Final = _gauge("cluster_read_seconds", [], "How long reading the cluster from the database took.")
CAP: Final = _gauge(
    "cluster_count_cap", [], "The most jobs counted in one queue and state; a value of this size may be more."
)
JOBS: Final = _gauge("cluster_jobs", ["queue", "state"], "Jobs that are not finished, and dead letters, up to the cap.")
OLDEST: Final = _gauge("cluster_oldest_ready_seconds", ["queue"], "Wait so far of the oldest ready job of a queue.")
DEAD: Final = _gauge("cluster_dead_letters", ["kind"], "Dead letters now, counted by their groups of failures.")
ALL_ATTEMPTS: Final = _counter(
    "cluster_attempts", [*_OF_JOBS, "outcome"], "Attempts of all workers ever, by outcome. Survives restarts."
)
ALL_RETRIES: Final = _counter(
    "cluster_retries", _OF_JOBS, "Attempts of all workers ever that another one follows. Survives restarts."
)
ALL_DEATHS: Final = _counter(
    "cluster_deaths", _OF_JOBS, "Jobs that ever went to the dead letters. Survives restarts, pruning and requeues."
)
ALL_HOLDS: Final = _counter("cluster_holds", _OF_JOBS, "Jobs that were ever put off at no cost. Survives restarts.")
ALL_WAIT: Final = _histogram("cluster_wait_seconds", _OF_JOBS, "Time from due to start, of all workers ever.")
ALL_RUN: Final = _histogram("cluster_run_seconds", _OF_JOBS, "Run time of attempts, of all workers ever.")
WORKERS: Final = _gauge(
    "cluster_workers", ["phase"], "Workers by phase; `silent`: without a heartbeat for longer than `silence`."
)
QUEUE_WORKERS: Final = _gauge("cluster_queue_workers", ["queue"], "Workers alive that serve a queue.")
QUEUE_SLOTS: Final = _gauge("cluster_queue_slots", ["queue"], "Jobs that these workers can run at once, of any queue.")
PAUSED: Final = _gauge("cluster_queue_paused", ["queue"], "1 if the queue is paused as a whole, else 0.")
BREAKER: Final = _gauge("cluster_breaker_state", ["breaker", "state"], "1 for the current state of a breaker, else 0.")
SPENT: Final = _gauge("cluster_budget_spent", ["budget", "window"], "What was spent in the last day, week and month.")
SHARE: Final = _gauge(
    "cluster_budget_share",
    ["budget", "window"],
    "Spent as a share of the limit, as the app's code or a worker declares it.",
)
OVERDUE: Final = _gauge(
    "cluster_schedule_overdue_seconds", ["schedule"], "How long a schedule's next time is overdue; 0 if it is not."
)

METRICS: Final[tuple[Metric, ...]] = tuple(_ALL)
