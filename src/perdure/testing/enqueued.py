"""Enqueued jobs, recorded in memory, so that a test can inspect them without a database and without await."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, NewJob
from perdure.kinds.kind import Kind
from perdure.policy.own_settings import read_settings
from perdure.policy.retries.retry import Retry


class Enqueued(Struct, frozen=True, kw_only=True):
    """One call of `enqueue` that made a job, or replaced the arguments of an existing one.

    `arguments` are those that the handler will get, defaults included. `due_at` is None for a job that was ready at
    once.
    """

    id: JobId
    kind: str
    arguments: dict[str, Any]
    plain: dict[str, Any]  # the given arguments, as the stored JSON
    queue: str
    priority: int
    at: datetime
    due_at: datetime | None
    tags: tuple[str, ...]
    meta: dict[str, Any]
    retry: Retry | None = None  # settings of this job alone
    timeout: timedelta | None = None
    crash_limit: int = DEFAULT_CRASH_LIMIT
    ref: str | None = None

    @property
    def delay(self) -> timedelta:
        """The delay between enqueue and due time."""
        return timedelta(0) if self.due_at is None else self.due_at - self.at

    def __str__(self) -> str:
        """The call as text, with its options."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if name in self.plain)
        parts = [f"queue={self.queue!r}"]
        if self.priority != DEFAULT_PRIORITY:
            parts.append(f"priority={self.priority}")
        if self.due_at is not None:
            parts.append(f"due in {format_duration(self.delay)}")
        if self.tags:
            parts.append(f"tags={list(self.tags)}")
        if self.meta:
            parts.append(f"meta={self.meta}")
        if self.ref is not None:
            parts.append(f"ref={self.ref!r}")
        return f"{self.kind}({given})  [{', '.join(parts)}]"


def read(job: NewJob, job_id: JobId, kind: Kind | None, now: datetime) -> Enqueued:
    """The record of a job to be stored; a job of an undeclared kind is read as plain JSON."""
    plain = msgspec.json.decode(job.args, type=dict[str, Any])
    if kind is None:
        arguments = plain
    else:
        args, keywords = kind.signature.decode(job.args)
        arguments = dict(zip(kind.signature.names, args, strict=False)) | keywords
    due_at = now + job.delay if job.delay else job.run_at
    own = read_settings(job.settings)
    return Enqueued(
        id=job_id,
        kind=job.kind,
        arguments=arguments,
        plain=plain,
        queue=job.queue,
        priority=job.priority,
        at=now,
        due_at=due_at if due_at is not None and due_at > now else None,
        tags=job.tags,
        meta=msgspec.json.decode(job.meta, type=dict[str, Any]) if job.meta else {},
        retry=own.retry,
        timeout=own.timeout,
        crash_limit=job.crash_limit,
        ref=job.ref,
    )
