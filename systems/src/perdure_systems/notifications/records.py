"""A notification as the API shows it. There is no table: every field is read from the job."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

import msgspec

from perdure import ArgumentError, JobFilter, JobState, JobView
from perdure_systems.notifications.jobs import KIND, QUEUE, STATUS_OF

STATUSES: Final = ("pending", "failed", "sent", "dead", "cancelled", "read")
READ: Final = "read"
_TYPE: Final = re.compile(r"^(?:\w+\.)*(\w+): ")


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One notification.

    `retry_count` is the number of failed attempts, `max_attempts` includes the first one. `next_retry_at` is set while
    a retry is due. `note` says why a notification was closed without being sent.
    """

    id: str
    channel: str
    recipient: str | None
    subject: str
    body: str
    severity: str | None
    status: str
    read: bool
    retry_count: int
    max_attempts: int | None
    next_retry_at: datetime | None
    last_error: str | None
    delivered_on_attempt: int | None
    note: str | None
    created_at: datetime
    sent_at: datetime | None

    @property
    def headline(self) -> str:
        """The subject, or what stands for an empty one."""
        return self.subject.strip() or "(no subject)"


def notification_of(job: JobView) -> Notification:
    """The notification that a job is."""
    arguments = job.arguments
    is_sent = job.state is JobState.SUCCEEDED
    return Notification(
        id=job.id,
        channel=arguments["channel"],
        recipient=arguments.get("recipient"),
        subject=arguments["subject"],
        body=arguments["body"],
        severity=arguments.get("severity"),
        status=STATUS_OF.get(job.state, str(job.state)),
        read=job.mark == READ,
        retry_count=job.failures,
        max_attempts=job.max_attempts,
        next_retry_at=job.due_at if job.state is JobState.RETRYING else None,
        last_error=error_text(job.last_error),
        delivered_on_attempt=job.failures + job.crashes + 1 if is_sent and not job.warnings else None,
        note="; ".join(job.warnings) or None,
        created_at=job.created_at,
        sent_at=job.finished_at if is_sent else None,
    )


def which_have(status: str | None) -> JobFilter:
    """The filter for notifications of a status, or for all of them; `read` means those marked as read."""
    if status is None:
        return JobFilter(kind=KIND, queue=QUEUE)
    if status == READ:
        return JobFilter(kind=KIND, queue=QUEUE, mark=READ)
    if status not in STATUSES:
        raise ArgumentError("status", f"must be one of {', '.join(STATUSES)}, got {status[:50]!r}")
    states = tuple(state for state, word in STATUS_OF.items() if word == status)
    return JobFilter(kind=KIND, queue=QUEUE, states=states)


def error_text(error: str | None) -> str | None:
    """An error for people: `DeliveryError` goes without its type, others keep the last word of it."""
    if error is None:
        return None
    return _TYPE.sub(lambda found: "" if found[1] == "DeliveryError" else f"{found[1]}: ", error)
