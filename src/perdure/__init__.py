"""perdure: durable jobs for Python, on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING, Any

from perdure.app import App
from perdure.domain.job import Intake, JobView, OnConflict
from perdure.domain.states import JobState
from perdure.domain.verdicts import (
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
from perdure.errors import (
    ArgumentError,
    ConflictError,
    DuplicateJobError,
    ForkError,
    JobNotSuccessful,
    NotFoundError,
    PayloadError,
    PerdureError,
    ProcessDied,
    SchemaError,
    SettingsError,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from perdure.events import Event
from perdure.handle import Handle
from perdure.job import Call, Job
from perdure.policy.backoff import Backoff
from perdure.policy.decide import MissingHandler
from perdure.policy.jitter import Jitter
from perdure.policy.retry import Retry
from perdure.policy.uniqueness import Unique
from perdure.storage.records import JobFilter, Keep, Page
from perdure.version import __version__
from perdure.worker.context import Context, current_context
from perdure.worker.settings import Queue, WorkerSettings

if TYPE_CHECKING:
    from perdure.policy.http import HttpTriage

__all__ = [
    "App",
    "ArgumentError",
    "Backoff",
    "Call",
    "CancelJob",
    "ConflictError",
    "Context",
    "DuplicateJobError",
    "Event",
    "Finish",
    "ForkError",
    "Handle",
    "HttpTriage",
    "Intake",
    "Jitter",
    "Job",
    "JobFilter",
    "JobNotSuccessful",
    "JobState",
    "JobView",
    "Keep",
    "MissingHandler",
    "NotFoundError",
    "OnConflict",
    "Page",
    "Pause",
    "PayloadError",
    "Pending",
    "PerdureError",
    "Permanent",
    "ProcessDied",
    "Queue",
    "Release",
    "Retry",
    "RetryAfter",
    "SchemaError",
    "SettingsError",
    "Snooze",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "Unique",
    "Verdict",
    "WorkerSettings",
    "__version__",
    "current_context",
]


def __getattr__(name: str) -> Any:
    """Load on demand what few need and all would wait for."""
    if name == "HttpTriage":
        from perdure.policy.http import HttpTriage  # noqa: PLC0415 - that is the point

        return HttpTriage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
