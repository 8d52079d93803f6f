"""Records as stores return them, for tests that need no store: change what the test is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from perdure.domain.gate import Pause
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, Claim, JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import AuditEntry

NOON: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)
AN_ID: Final = JobId("00000000-0000-7000-8000-000000000001")


def a_view(**changes: Any) -> JobView:
    """A ready job."""
    plain: dict[str, Any] = {
        "id": AN_ID,
        "kind": "greet",
        "queue": "default",
        "priority": 5,
        "state": JobState.READY,
        "reason": "enqueued",
        "args": "{}",
        "tags": (),
        "meta": None,
        "created_at": NOON,
        "due_at": None,
        "since": NOON,
        "started_at": None,
        "finished_at": None,
        "failures": 0,
        "crashes": 0,
        "max_attempts": 5,
        "worker": None,
        "cancel_requested_at": None,
        "result": None,
        "warnings": (),
        "unique_key": None,
        "last_error": None,
    }
    return JobView(**plain | changes)


def a_claim(**changes: Any) -> Claim:
    """The first attempt of a job."""
    plain: dict[str, Any] = {
        "job_id": AN_ID,
        "token": 1,
        "kind": "greet",
        "queue": "default",
        "args": "{}",
        "failures": 0,
        "crashes": 0,
        "crash_limit": 3,
        "since": NOON,
        "claimed_at": NOON,
    }
    return Claim(**plain | changes)


def an_attempt(**changes: Any) -> Attempt:
    """A failed attempt."""
    plain: dict[str, Any] = {
        "job_id": AN_ID,
        "token": 1,
        "number": 1,
        "reason": "failed",
        "worker": "worker-1",
        "started_at": NOON,
        "finished_at": NOON,
        "error_type": "builtins.ValueError",
        "message": "no such host",
        "traceback": None,
        "next_at": None,
    }
    return Attempt(**plain | changes)


def an_entry(**changes: Any) -> AuditEntry:
    """An entry of the audit trail."""
    plain: dict[str, Any] = {"id": 1, "at": NOON, "actor": "ada", "action": "requeue", "job_id": None, "details": {}}
    return AuditEntry(**plain | changes)


def a_pause(**changes: Any) -> Pause:
    """A pause of everything."""
    plain: dict[str, Any] = {"id": "p1", "actor": "ada", "at": NOON}
    return Pause(**plain | changes)
