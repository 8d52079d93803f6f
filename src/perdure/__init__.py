"""perdure: durable jobs for Python, on SQLite and PostgreSQL.

Docstrings and comments cite behaviours by code. A to F are listed in docs/reference/behaviours.md, G (promises) in
docs/explanation/promises.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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
    from perdure.domain.operate.condition import Condition
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
        EventsGone,
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
    from perdure.operate.desk import Desk
    from perdure.policy.bounds import Bounds
    from perdure.policy.decide import MissingHandler
    from perdure.policy.keys.uniqueness import Unique
    from perdure.policy.limits.gates import Breaker, Budget, Concurrency, Rate
    from perdure.policy.opening import Opening, Polling
    from perdure.policy.retries.backoff import Backoff
    from perdure.policy.retries.http import HttpTriage
    from perdure.policy.retries.jitter import Jitter
    from perdure.policy.retries.retry import Retry
    from perdure.policy.schedules.backup_plan import BackupPlan
    from perdure.policy.secrets.secret import Secret
    from perdure.storage.records import JobFilter, Keep, Page, Tally
    from perdure.version import __version__
    from perdure.worker.attempt.context.context import Context, current_context
    from perdure.worker.attempt.context.sync_context import SyncContext
    from perdure.worker.settings import Queue, WorkerSettings
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
    "Condition",
    "ConflictError",
    "Context",
    "Desk",
    "DuplicateChildError",
    "DuplicateJobError",
    "Event",
    "EventTimeout",
    "EventsGone",
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
    "Secret",
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

_HOMES: Final = {
    "perdure.app.app": "App",
    "perdure.domain.flows.approval": "Approval",
    "perdure.domain.jobs.job": "Intake JobView OnConflict",
    "perdure.domain.jobs.states": "JobState",
    "perdure.domain.jobs.verdicts": "CancelJob Finish Pause Pending Permanent Release RetryAfter Snooze Verdict",
    "perdure.domain.operate.condition": "Condition",
    "perdure.enqueue.calls": "Call Chain",
    "perdure.enqueue.handle": "Handle",
    "perdure.enqueue.job": "Job",
    "perdure.errors": (
        "ArgumentError BudgetExceeded ChildrenFailed ChildrenTimeout ConflictError DuplicateChildError "
        "DuplicateJobError EventTimeout EventsGone FailedChild ForkError JobNotSuccessful LifespanError NotFoundError "
        "PayloadError PerdureError PollTimeout ProcessDied RunningJob SchemaError SettingsError StepError "
        "StillRunning StoreError StoreLocked StoreRefused StoreUnavailable"
    ),
    "perdure.events": "Event JobDied JobFailed JobRetrying JobStarted JobSucceeded",
    "perdure.events.log": "AttemptLog",
    "perdure.flows.families.batches": "BatchOutcome",
    "perdure.flows.families.family": "ChildResult Family",
    "perdure.lifecycle.loops.intervals": "interval_from_env",
    "perdure.operate.desk": "Desk",
    "perdure.policy.bounds": "Bounds",
    "perdure.policy.decide": "MissingHandler",
    "perdure.policy.keys.uniqueness": "Unique",
    "perdure.policy.limits.gates": "Breaker Budget Concurrency Rate",
    "perdure.policy.opening": "Opening Polling",
    "perdure.policy.retries.backoff": "Backoff",
    "perdure.policy.retries.http": "HttpTriage",
    "perdure.policy.retries.jitter": "Jitter",
    "perdure.policy.retries.retry": "Retry",
    "perdure.policy.schedules.backup_plan": "BackupPlan",
    "perdure.policy.secrets.secret": "Secret",
    "perdure.storage.records": "JobFilter Keep Page Tally",
    "perdure.version": "__version__",
    "perdure.worker.attempt.context.context": "Context current_context",
    "perdure.worker.attempt.context.sync_context": "SyncContext",
    "perdure.worker.settings": "Queue WorkerSettings",
    "perdure.worker.worker": "Worker",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a program loads only the parts that it needs."""
    if name == "events":
        return import_module("perdure.events")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
