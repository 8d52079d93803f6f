"""Schedules: definitions, times, and commands."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field

from perdure.app.schedules import checked_schedule, one_expression
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob
from perdure.domain.schedule import Fire, Missed, Overlap, ScheduleView
from perdure.errors import NotFoundError, PayloadError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name, checked_priority
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.surfaces.api.handlers.jobs.commands import Because, OneVersion
from perdure.surfaces.api.handlers.jobs.enqueueing import checked_args
from perdure.surfaces.api.revisions import check_version, schedule_etag
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Instant, Limit

_ARGUMENTS_LIMIT_BYTES: Final = 64 * 1024


class ShownQuery(Given, frozen=True, kw_only=True):
    """How many next and past times."""

    shown: Limit = 5


class TimesQuery(Given, frozen=True, kw_only=True):
    """How many times."""

    limit: Limit = 20


class ScheduleBody(OneVersion, frozen=True, kw_only=True):
    """A schedule. Either `cron` or `every` (a duration such as "90s") says when it fires."""

    kind: str
    cron: str | None = None
    every: str | None = None
    tz: str = "UTC"
    args: dict[str, Any] = field(default_factory=dict)
    missed: Missed = Missed.SKIP
    within: str | None = None
    overlap: Overlap = Overlap.SKIP
    jitter: str = "0s"
    queue: str | None = None
    priority: int | None = None


class PauseUntil(Because, frozen=True, kw_only=True):
    """Until when; without it, until it is resumed."""

    until: Instant | None = None


class PauseVersionUntil(OneVersion, frozen=True, kw_only=True):
    """Until when; without it, until it is resumed."""

    until: Instant | None = None


class Range(OneVersion, frozen=True, kw_only=True):
    """Times in the past from `start` up to but not including `end`. `dry_run` only counts them."""

    start: Instant
    end: Instant
    dry_run: bool = False


class ScheduleList(Struct, frozen=True):
    """All schedules by name, with their next and last times."""

    schedules: tuple[ScheduleDetail, ...]


class UpcomingTimes(Struct, frozen=True):
    """The next nominal times, in order."""

    times: tuple[datetime, ...]


class PastTimes(Struct, frozen=True):
    """The outcomes of past nominal times, newest first."""

    fires: tuple[Fire, ...]


class Backfilled(Struct, frozen=True, kw_only=True):
    """How many nominal times the range has, and what was fired; times already handled are skipped."""

    times: int
    fires: tuple[Fire, ...]
    dry_run: bool


async def list_schedules(call: Call[None, None]) -> ScheduleList:
    """List schedules."""
    return ScheduleList(tuple(await call.desk.calendar.details()))


async def show_schedule(call: Call[ShownQuery, None]) -> ScheduleDetail:
    """Show a schedule with its next times and the outcomes of past times."""
    detail = await call.desk.calendar.schedule(call.path["name"], shown=call.query.shown)
    call.headers["etag"] = schedule_etag(detail.view)
    return detail


async def list_upcoming(call: Call[TimesQuery, None]) -> UpcomingTimes:
    """List the next times of a schedule."""
    detail = await call.desk.calendar.schedule(call.path["name"], shown=call.query.limit)
    return UpcomingTimes(detail.upcoming)


async def list_past(call: Call[TimesQuery, None]) -> PastTimes:
    """List past times of a schedule and their outcomes."""
    detail = await call.desk.calendar.schedule(call.path["name"], shown=call.query.limit)
    return PastTimes(detail.fires)


async def put_schedule(call: Call[None, ScheduleBody]) -> ScheduleView:
    """Create or replace a schedule.

    409 if it is declared in code. If the app is loaded, kind and arguments are checked. `If-None-Match: *` only
    creates, never replaces.
    """
    name, body = call.path["name"], call.body
    schedule = checked_schedule(
        name,
        _job(call),
        one_expression(body.cron, body.every),
        tz=body.tz,
        missed=body.missed,
        within=body.within,
        overlap=body.overlap,
        jitter=body.jitter,
    )
    await _check(call, name)
    return _with_etag(call, await call.desk.calendar.save(schedule, why=body.why))


async def pause_schedule(call: Call[None, PauseVersionUntil]) -> ScheduleView:
    """Pause a schedule, optionally until a time."""
    name = call.path["name"]
    await _check(call, name)
    return _with_etag(call, await call.desk.calendar.pause(name, until=call.body.until, why=call.body.why))


async def resume_schedule(call: Call[None, OneVersion]) -> ScheduleView:
    """Resume a paused schedule with its next time."""
    name = call.path["name"]
    await _check(call, name)
    return _with_etag(call, await call.desk.calendar.resume(name, why=call.body.why))


async def delete_schedule(call: Call[None, OneVersion]) -> None:
    """Delete a schedule and the record of its times; its jobs stay.

    A schedule declared in code comes back with the next worker: pause it instead.
    """
    name = call.path["name"]
    await _check(call, name)
    await call.desk.calendar.delete(name, why=call.body.why)


async def trigger_schedule(call: Call[None, OneVersion]) -> Fire:
    """Enqueue a job of a schedule now, in addition to its regular times."""
    name = call.path["name"]
    await _check(call, name)
    return await call.desk.calendar.trigger(name, why=call.body.why)


async def backfill_schedule(call: Call[None, Range]) -> Backfilled:
    """Enqueue jobs for past times of a schedule that have none, for at most 10,000 times."""
    name, body = call.path["name"], call.body
    await _check(call, name)
    times = len(await call.desk.calendar.nominal_times(name, body.start, body.end))
    if body.dry_run:
        return Backfilled(times=times, fires=(), dry_run=True)
    fires = await call.desk.calendar.backfill(name, body.start, body.end, why=body.why)
    return Backfilled(times=times, fires=tuple(fires), dry_run=False)


def _job(call: Call[None, ScheduleBody]) -> NewJob:
    """The job that the schedule enqueues; the app's code checks it if it is loaded."""
    body, app = call.body, call.site.backing.app
    if app is not None:
        known = checked_args(app, body.kind, body.args)
        return app.job_named(body.kind).using(queue=body.queue, priority=body.priority).call(**known).job
    text = encode(body.args)
    if len(text.encode()) > _ARGUMENTS_LIMIT_BYTES:
        raise PayloadError("args", f"take {len(text.encode()):,} bytes, {_ARGUMENTS_LIMIT_BYTES:,} are allowed")
    return NewJob(
        id=new_job_id(),
        kind=checked_name("kind", body.kind),
        args=text,
        queue=DEFAULT_QUEUE if body.queue is None else checked_name("queue", body.queue),
        priority=DEFAULT_PRIORITY if body.priority is None else checked_priority(body.priority),
    )


async def _check(call: Call[Any, Any], name: str) -> None:
    """Refuse a command for another version of the schedule than the current one."""
    try:
        etag: str | None = schedule_etag((await call.desk.calendar.schedule(name, shown=1)).view)
    except NotFoundError:
        etag = None
    check_version(call.request, call.body.revision, etag, f"schedule {name!r}")


def _with_etag(call: Call[Any, Any], view: ScheduleView) -> ScheduleView:
    call.headers["etag"] = schedule_etag(view)
    return view
