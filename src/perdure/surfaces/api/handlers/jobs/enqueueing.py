"""Enqueue by the name of a kind, if the app is loaded: its code checks the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from perdure.app.app import App
from perdure.app.by_name import typed_arguments
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, JobView
from perdure.errors import ArgumentError, PayloadError
from perdure.surfaces.api.handlers.jobs.jobs import needs_app
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Instant
from perdure.surfaces.server.requests import path_to


class EnqueueBody(Given, frozen=True, kw_only=True):
    """A new job. `args` are the handler's arguments by name; `delay` is a duration such as "90s".

    `why` goes into the audit trail.
    """

    kind: str
    args: dict[str, Any] = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    delay: str | None = None
    run_at: Instant | None = None
    id: str | None = None
    ref: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] | None = None
    why: str | None = None


class Enqueued(Struct, frozen=True, kw_only=True):
    """The job of the request. `intake` existing: an earlier job has its unique key or id."""

    id: JobId
    intake: Intake
    job: JobView


async def enqueue_job(call: Call[None, EnqueueBody]) -> Enqueued:
    """Enqueue a job by the name of its kind.

    The arguments are checked against the handler's signature, so the app must be loaded (`perdure up`,
    `perdure.desk.asgi(app)`); otherwise 409.
    """
    app, body = call.site.backing.app, call.body
    if app is None:
        raise needs_app("what a kind takes")
    known = checked_args(app, body.kind, body.args)
    prepared = app.job_named(body.kind).using(
        queue=body.queue,
        priority=body.priority,
        delay=body.delay,
        run_at=body.run_at,
        id=body.id,
        ref=body.ref,
        tags=body.tags,
        meta=body.meta,
    )
    new = prepared.call(**known).job
    receipt = await call.desk.enqueue(new, why=body.why)
    app.enqueued.note([new], [receipt])
    job = (await call.desk.job(receipt.job_id, lines=0)).job
    call.headers["location"] = path_to(call.request, f"/api/v1/jobs/{job.id}")
    return Enqueued(id=receipt.job_id, intake=receipt.intake, job=job)


def checked_args(app: App, kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments converted to the handler's types; an error names the member of the body, such as `args.user`."""
    try:
        return typed_arguments(app, kind, args)
    except PayloadError as error:
        problem = str(error).removeprefix(f"{error.field} ")
        raise ArgumentError(error.field.replace("argument ", "args.", 1), problem) from None
