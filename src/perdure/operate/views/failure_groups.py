"""Dead letters by group: each error, when it began, and its trend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.errors import ArgumentError, NotFoundError
from perdure.storage.checking import check_whole
from perdure.storage.operate.failure_groups import GroupRecord, HourOfFailures
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

GROUPS_PER_PAGE: Final = 200
TREND_HOURS: Final = 24
_HOUR: Final = timedelta(hours=1)


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failures of one fingerprint: the same kind, error type and message, but for numbers, ids and the like.

    `jobs` are its dead letters now; `jobs_capped`: at least that many. `trend` are the deaths of the last 24 hours, by
    the hour, oldest first; the last is the current one. `failures` are the attempts that failed in those hours, fatal
    or not. `attempts` is how many its newest dead letter has made, of the maximum. First and last seen count every
    failure.
    """

    fingerprint: str
    kind: str
    error_type: str
    message: str  # numbers and ids as …
    jobs: int
    jobs_capped: bool
    first_at: datetime
    last_at: datetime
    trend: tuple[int, ...]
    failures: int
    newest: JobId | None
    attempts: str
    is_new: bool  # first seen less than 24 hours ago


class GroupPage(Struct, frozen=True):
    """A page of groups, the last to fail first. `next` is the `before` of the next page; None: the end.

    `only_newest`: so many of the newest dead letters that match were looked at. Older ones may have other groups; a
    narrower filter shows them.
    """

    groups: tuple[FailureGroup, ...]
    next: str | None
    only_newest: int | None = None


async def groups_page(store: Store, which: JobFilter, limit: int, before: str | None) -> GroupPage:
    """The groups of the dead letters that match."""
    check_whole("limit", limit, 1, GROUPS_PER_PAGE)
    records = await store.failure_groups(which, limit + 1, None if before is None else _read_place(before))
    shown = records[:limit]
    only_newest = next((record.only_newest for record in records), None)
    following = _place(shown[-1]) if len(records) > limit else None
    return GroupPage(tuple(await _groups(store, shown)), following, only_newest)


async def one_group(store: Store, fingerprint: str) -> FailureGroup:
    """The group of this fingerprint, even without dead letters; raises NotFoundError."""
    records = await store.failure_groups(JobFilter(fingerprint=fingerprint), 1)
    if not records:
        raise NotFoundError(f"there is no group of failures {fingerprint!r}: see `perdure dead groups`")
    [group] = await _groups(store, records)
    return group


async def _groups(store: Store, records: Sequence[GroupRecord]) -> list[FailureGroup]:
    if not records:
        return []
    now = await store.now()
    first = now.replace(minute=0, second=0, microsecond=0) - (TREND_HOURS - 1) * _HOUR
    hours: dict[str, list[HourOfFailures]] = {}
    for hour in await store.failure_hours([record.fingerprint for record in records], first):
        hours.setdefault(hour.fingerprint, []).append(hour)
    ids = [record.newest for record in records if record.newest is not None]
    newest = {job.id: job for job in await store.jobs(JobFilter(ids=ids), Page(len(ids)))} if ids else {}
    return [
        _group(record, hours.get(record.fingerprint, []), newest.get(record.newest or JobId("")), first, now)
        for record in records
    ]


def _group(
    record: GroupRecord, hours: Sequence[HourOfFailures], newest: JobView | None, first: datetime, now: datetime
) -> FailureGroup:
    trend = [0] * TREND_HOURS
    for hour in hours:
        if 0 <= (place := (hour.hour - first) // _HOUR) < TREND_HOURS:
            trend[place] += hour.deaths
    return FailureGroup(
        fingerprint=record.fingerprint,
        kind=record.kind,
        error_type=record.error_type,
        message=record.message,
        jobs=record.jobs,
        jobs_capped=record.capped,
        first_at=record.first_at,
        last_at=record.last_at,
        trend=tuple(trend),
        failures=sum(hour.failures for hour in hours),
        newest=record.newest,
        attempts=_attempts(newest),
        is_new=record.first_at > now - TREND_HOURS * _HOUR,
    )


def _attempts(job: JobView | None) -> str:
    """`5/5`: the attempts of a job, and the maximum; a crash uses none of them."""
    if job is None:
        return ""
    made = job.failures + job.crashes
    return f"{made}/{job.max_attempts + job.crashes}" if job.max_attempts else str(made)


def _place(record: GroupRecord) -> str:
    return f"{record.last_at.isoformat()}/{record.fingerprint}"


def _read_place(before: str) -> tuple[datetime, str]:
    at, _, fingerprint = before.partition("/")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not fingerprint:
        raise ArgumentError("before", f"must be the `next` of a page of groups, got {before!r}")
    return moment, fingerprint
