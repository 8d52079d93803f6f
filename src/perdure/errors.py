"""Every error that perdure raises, in one tree.

PerdureError
├── ArgumentError          a value handed in by the caller is wrong; `field` names it
│   ├── PayloadError       the arguments of a job do not fit its handler, cannot be encoded, or are too large
│   └── SettingsError      a setting is wrong or contradicts another
├── DuplicateJobError      unique key held, and the caller asked for on_conflict="reject"
├── NotFoundError          no such job, kind or queue
├── ConflictError          the job is in a state in which this cannot be done
├── JobNotSuccessful       a job whose result was awaited died or was cancelled
├── ProcessDied            the process of an isolated attempt ended before its handler had returned
└── StoreError             the database failed us
    ├── StoreUnavailable   it cannot be reached now; trying again later may work
    ├── StoreRefused       it is reachable and refuses: read-only, full, no rights, unsafe file system
    ├── SchemaError        its schema is missing, damaged, or too new for this code
    └── ForkError          it was opened before a fork, and used after it
"""

from __future__ import annotations


class PerdureError(Exception):
    """The root of everything raised by perdure."""


class ArgumentError(PerdureError, ValueError):
    """A value handed in by the caller is wrong; `field` names it and the message says what to do."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field


class PayloadError(ArgumentError):
    """The arguments of a job do not fit its handler, cannot be encoded, or are too large."""


class SettingsError(ArgumentError):
    """A setting is wrong by itself or contradicts another."""


class DuplicateJobError(PerdureError):
    """Another job holds the unique key, and the caller asked to be refused."""

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(f"job {job_id} already holds the unique key {key!r}")
        self.key = key
        self.job_id = job_id


class NotFoundError(PerdureError, LookupError):
    """There is no such job, kind or queue."""


class JobNotSuccessful(PerdureError):  # noqa: N818 - reads as what is the matter with the job
    """A job whose result was awaited died or was cancelled."""

    def __init__(self, job_id: str, state: str, why: str) -> None:
        super().__init__(f"job {job_id} is {state}: {why}")
        self.job_id = job_id
        self.state = state
        self.why = why


class ConflictError(PerdureError):
    """The job is in a state in which this cannot be done."""


class ProcessDied(PerdureError):  # noqa: N818 - reads as what happened
    """The process of an isolated attempt ended before its handler had returned; the message says how."""

    def __init__(self, message: str, last_words: str | None = None) -> None:
        super().__init__(message)
        self.last_words = last_words


class StoreError(PerdureError):
    """The database failed us."""


class StoreUnavailable(StoreError):  # noqa: N818 - reads as a state of the store, which it is
    """The database cannot be reached now; trying again later may work. A commit may or may not have happened."""


class StoreRefused(StoreError):  # noqa: N818 - as above
    """The database is reachable and refuses: read-only, full, no rights, or an unsafe file system."""


class SchemaError(StoreError):
    """The schema is missing, damaged, or too new for this code: two releases or more."""


class ForkError(StoreError):
    """A store opened before a fork was used after it; for SQLite, also: its file was opened anew in the child."""
