"""perdure: durable jobs for Python, on SQLite and PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure.app.app import App
from perdure.domain.flows.approval import Approval
from perdure.domain.jobs.job import Intake, JobView, OnConflict
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.verdicts import (
    CancelJob,
    Finish,
    Pause,
    Pending,
    Permanent,
    Release,
    RetryAfter,
    Snooze,
    Verdict,
)
from perdure.enqueue.calls import Call, Chain
from perdure.enqueue.handle import Handle
from perdure.enqueue.job import Job
from perdure.errors import (
    ArgumentError,
    BudgetExceeded,
    ChildrenFailed,
    ChildrenTimeout,
    ConflictError,
    DuplicateChildError,
    DuplicateJobError,
    EventTimeout,
    FailedChild,
    ForkError,
    JobNotSuccessful,
    LifespanError,
    NotFoundError,
    PayloadError,
    PerdureError,
    PollTimeout,
    ProcessDied,
    RunningJob,
    SchemaError,
    SettingsError,
    StepError,
    StillRunning,
    StoreError,
    StoreLocked,
    StoreRefused,
    StoreUnavailable,
)
from perdure.events import Event, JobDied, JobFailed, JobRetrying, JobStarted, JobSucceeded
from perdure.events.log import AttemptLog
from perdure.flows.families.batches import BatchOutcome
from perdure.flows.families.family import ChildResult, Family
from perdure.lifecycle.loops.intervals import interval_from_env
from perdure.policy.bounds import Bounds
from perdure.policy.decide import MissingHandler
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.limits.gates import Breaker, Budget, Concurrency, Rate
from perdure.policy.opening import Opening, Polling
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry
from perdure.policy.schedules.backup_plan import BackupPlan
from perdure.storage.records import JobFilter, Keep, Page, Tally
from perdure.version import __version__
from perdure.worker.attempt.context.context import Context, current_context
from perdure.worker.attempt.context.sync_context import SyncContext
from perdure.worker.settings import Queue, WorkerSettings

if TYPE_CHECKING:
    from perdure.operate.desk import Desk
    from perdure.policy.retries.http import HttpTriage
    from perdure.worker.worker import Worker

__all__ = [
    "App",
    "Approval",
    "ArgumentError",
    "AttemptLog",
    "Backoff",
    "BackupPlan",
    "BatchOutcome",
    "Bounds",
    "Breaker",
    "Budget",
    "BudgetExceeded",
    "Call",
    "CancelJob",
    "Chain",
    "ChildResult",
    "ChildrenFailed",
    "ChildrenTimeout",
    "Concurrency",
    "ConflictError",
    "Context",
    "Desk",
    "DuplicateChildError",
    "DuplicateJobError",
    "Event",
    "EventTimeout",
    "FailedChild",
    "Family",
    "Finish",
    "ForkError",
    "Handle",
    "HttpTriage",
    "Intake",
    "Jitter",
    "Job",
    "JobDied",
    "JobFailed",
    "JobFilter",
    "JobNotSuccessful",
    "JobRetrying",
    "JobStarted",
    "JobState",
    "JobSucceeded",
    "JobView",
    "Keep",
    "LifespanError",
    "MissingHandler",
    "NotFoundError",
    "OnConflict",
    "Opening",
    "Page",
    "Pause",
    "PayloadError",
    "Pending",
    "PerdureError",
    "Permanent",
    "PollTimeout",
    "Polling",
    "ProcessDied",
    "Queue",
    "Rate",
    "Release",
    "Retry",
    "RetryAfter",
    "RunningJob",
    "SchemaError",
    "SettingsError",
    "Snooze",
    "StepError",
    "StillRunning",
    "StoreError",
    "StoreLocked",
    "StoreRefused",
    "StoreUnavailable",
    "SyncContext",
    "Tally",
    "Unique",
    "Verdict",
    "Worker",
    "WorkerSettings",
    "__version__",
    "current_context",
    "interval_from_env",
]


_ON_DEMAND = {
    "Desk": "perdure.operate.desk",
    "HttpTriage": "perdure.policy.retries.http",
    "Worker": "perdure.worker.worker",
}


def __getattr__(name: str) -> Any:
    """Import on first use what programs that only enqueue do not need."""
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
