"""The circuit breaker of an outside system.

Closed: its jobs run; failures within the window are counted, and enough of them open it. Open: its jobs are held until
its time is over. Then it is half open: a few trials run, and the first that ends decides. A trial without an outcome,
because its worker crashed, is given up after `open_for`. Once closed it lets jobs through slowly for ten seconds, so
that the backlog does not overload the system again.

Every function here takes a view and returns the next one, or the same object if nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from msgspec.structs import replace

from perdure.domain.duration import format_duration
from perdure.domain.gate import BreakerCheck, BreakerReport, BreakerState, BreakerView, Held
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason

BREAKER_OPEN: Final = Reason.BREAKER_OPEN.value

_SECOND: Final = timedelta(seconds=1)
_SLOW_TRIALS_FOR: Final = timedelta(seconds=10)
_MANUAL_RECHECK: Final = timedelta(hours=1)
_TRIAL_RECHECK: Final = timedelta(seconds=30)
_LONGEST_RETRY_AFTER: Final = timedelta(days=1)  # an absurd value must not switch a system off for good
_AFTER_NAME: Final = ":,"  # what may follow the breaker's name in the note of a job that it holds


def by_this_clock(view: BreakerView, check: BreakerCheck, now: datetime) -> BreakerView:
    """The same breaker, corrected if a clock that was ahead dated it: it waits for its intended time."""
    if view.changed_at is not None and view.changed_at > now:
        until = None if view.until is None else view.until - (view.changed_at - now)
        view = replace(view, changed_at=now, until=until)
    if view.failures and view.failures[-1] > now:
        view = replace(view, failures=tuple(min(at, now) for at in view.failures))
    if view.until is not None and view.by is None:
        longest = check.open_for if view.state is BreakerState.HALF_OPEN else max(check.open_for, _LONGEST_RETRY_AFTER)
        if view.until > now + longest:
            view = replace(view, until=now + longest)
    return view


def admit(view: BreakerView, check: BreakerCheck, job_id: JobId, now: datetime) -> tuple[BreakerView, Held | None]:
    """Whether a job may run now. A held job changes nothing."""
    match view.state:
        case BreakerState.CLOSED:
            return _admit_slowly(view, now)
        case BreakerState.OPEN:
            return _admit_after(view, check, job_id, now)
        case BreakerState.HALF_OPEN:
            return _admit_trial(view, check, job_id, now)


def note_failure(
    view: BreakerView, check: BreakerCheck, job_id: JobId, now: datetime, retry_after: timedelta | None = None
) -> BreakerView:
    """A job has failed at the outside system, which may have said when to come back."""
    away = max(check.open_for, min(retry_after or timedelta(0), _LONGEST_RETRY_AFTER))
    match view.state:
        case BreakerState.CLOSED:
            recent = [*(at for at in view.failures if at > now - check.window), now]
            if len(recent) < check.failures:
                return replace(view, failures=tuple(recent))
            counted = f"{len(recent)} failure{'' if len(recent) == 1 else 's'}"
            return _opened(view, now, away, f"{counted} within {format_duration(check.window)}")
        case BreakerState.HALF_OPEN if job_id in view.trials:
            return _opened(view, now, away, "the trial failed")
        case BreakerState.OPEN if retry_after and view.until is not None:
            return view if now + away <= view.until else replace(view, until=now + away)
        case _:
            return view  # begun before it opened, and ended late: ignored


def note_success(view: BreakerView, job_id: JobId, now: datetime) -> BreakerView:
    """A job has succeeded at the outside system. Only a trial's success matters."""
    if view.state is BreakerState.HALF_OPEN and job_id in view.trials:
        return _closed(view, now, "the trial succeeded")
    return view


def open_by_hand(view: BreakerView, now: datetime, note: str | None = None, by: str | None = None) -> BreakerView:
    """Open until an operator closes it."""
    return BreakerView(name=view.name, state=BreakerState.OPEN, changed_at=now, by_hand=True, by=by, note=note)


def close_by_hand(view: BreakerView, now: datetime, note: str | None = None, by: str | None = None) -> BreakerView:
    """Close and forget all failures; jobs are let through slowly, as after a trial."""
    return replace(_closed(view, now, note), by=by)


def note_reports(
    reports: Sequence[tuple[BreakerCheck, BreakerReport]],
) -> Callable[[datetime, Mapping[str, BreakerView]], list[BreakerView]]:
    """What a store's `report_breakers` needs: the breakers that these reports change."""

    def decide(now: datetime, views: Mapping[str, BreakerView]) -> list[BreakerView]:
        after = dict(views)
        for check, report in reports:
            view = by_this_clock(after.get(report.name) or BreakerView(name=report.name), check, now)
            after[report.name] = (
                note_success(view, report.job_id, now)
                if report.succeeded
                else note_failure(view, check, report.job_id, now, report.retry_after)
            )
        return [view for name, view in after.items() if view != (views.get(name) or BreakerView(name=name))]

    return decide


def spread(span: timedelta, job_id: JobId) -> timedelta:
    """A span made up to a fifth shorter or longer by the job's id, so that jobs held together come back apart."""
    return span * (0.8 + 0.4 * (crc32(job_id.encode()) / 0xFFFFFFFF))


def _admit_slowly(view: BreakerView, now: datetime) -> tuple[BreakerView, Held | None]:
    """One job in the first second, twice as many in each following one; unused ones carry over."""
    if view.changed_at is None or now - view.changed_at >= _SLOW_TRIALS_FOR:
        return view, None
    second = max(now - view.changed_at, timedelta(0)) // _SECOND
    if view.started < 2 ** (second + 1) - 1:
        return replace(view, started=view.started + 1), None
    wait = view.changed_at + (second + 1) * _SECOND - now
    return view, Held(BREAKER_OPEN, f"{view.name}: closed again, jobs are let through slowly", wait, key=view.name)


def _admit_after(
    view: BreakerView, check: BreakerCheck, job_id: JobId, now: datetime
) -> tuple[BreakerView, Held | None]:
    why = f": {view.note}" if view.note else ""
    if view.by_hand:
        note = f"{view.name}: opened by hand{why}, until it is closed by hand"
        return view, Held(BREAKER_OPEN, note, spread(_MANUAL_RECHECK, job_id), key=view.name)
    if view.until is not None and now < view.until:
        by = "" if view.by is None else f": opened by {view.by}"
        note = f"{view.name}{by}{why}, until {view.until.isoformat(timespec='seconds')}"
        return view, Held(BREAKER_OPEN, note, view.until - now, key=view.name)
    tried = replace(view, state=BreakerState.HALF_OPEN, changed_at=now, trials=(), by=None)
    return _admit_trial(tried, check, job_id, now)


def _admit_trial(
    view: BreakerView, check: BreakerCheck, job_id: JobId, now: datetime
) -> tuple[BreakerView, Held | None]:
    given_up = view.until is not None and now >= view.until
    others = () if given_up else tuple(trial for trial in view.trials if trial != job_id)
    if len(others) < check.half_open:
        return replace(view, trials=(*others, job_id), until=now + check.open_for), None
    note = f"{view.name}: {len(others)} of {check.half_open} trials under way"
    wait = min(max(check.open_for / 4, _SECOND), _TRIAL_RECHECK)
    return view, Held(BREAKER_OPEN, note, spread(wait, job_id), key=view.name)


def openings_of_breaker(name: str) -> list[str]:
    """How the notes of jobs begin that this breaker holds."""
    return [f"{name}{end}" for end in _AFTER_NAME]


def _opened(view: BreakerView, now: datetime, away: timedelta, note: str) -> BreakerView:
    return BreakerView(name=view.name, state=BreakerState.OPEN, changed_at=now, until=now + away, note=note)


def _closed(view: BreakerView, now: datetime, note: str | None) -> BreakerView:
    return BreakerView(name=view.name, changed_at=now, note=note)
