"""Builds rules from users' values; errors name the wrong field, and rules that can never match are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from msgspec import Struct

from perdure.domain.alerts.quiet import QuietHours, read_quiet
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE, AlertRule, AlertSeverity, Grouping, When
from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.domain.operate.statistics import BOUNDS
from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name
from perdure.operate.alerts.evaluation import LONGEST_THROTTLE
from perdure.operate.alerts.memory import LONGEST_WITHIN
from perdure.operate.alerts.world import JOBS_COUNTED
from perdure.storage.checking import check_whole, echo

Word = TypeVar("Word", bound=StrEnum)
QUIET_STRETCHES_LIMIT: Final = 14
CHANNELS_PER_RULE: Final = 20
_LONGEST_SHARE_WITHIN: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_LEAST_LIMIT_ATTEMPTS: Final = 1_000_000


class _Sort(Struct, frozen=True):
    """What a type of rule needs: what it can filter by, the unit of its limit, and how far back it may look."""

    chooses: tuple[str, ...] = ()
    unit: str | None = None  # jobs, seconds or share; None: no limit
    default: float | None = None
    longest: timedelta | None = None  # of `within`; None: it does not look back


_SORTS: Final[dict[When, _Sort]] = {
    When.JOB_DIED: _Sort(("kind",)),
    When.NEW_ERROR: _Sort(("kind",)),
    When.DEATHS: _Sort(("kind",), "jobs", None, LONGEST_WITHIN),
    When.FAILURE_SHARE: _Sort(("queue", "kind"), "share", None, _LONGEST_SHARE_WITHIN),
    When.DEPTH: _Sort(("queue",), "jobs"),
    When.OLDEST: _Sort(("queue",), "seconds"),
    When.WAIT_P95: _Sort(("queue", "kind"), "seconds", None, _LONGEST_SHARE_WITHIN),
    When.SCHEDULE_MISSED: _Sort(("about",)),
    When.BUDGET: _Sort(("about",), "share", 0.8),
    When.BREAKER_OPENED: _Sort(("about",)),
    When.WORKER_LOST: _Sort(("about",)),
    When.NO_WORKER: _Sort(("queue",)),
    When.DOCTOR: _Sort(("about",)),
}
_EVENTS: Final = frozenset({When.JOB_DIED, When.NEW_ERROR})  # they happen, and do not last
_SHARES: Final = frozenset({When.FAILURE_SHARE, When.WAIT_P95})  # of at least so many attempts


def make_rule(
    name: str,
    when: When | str,
    *,
    to: Iterable[str] | str,
    queue: str | None = None,
    kind: str | None = None,
    about: str | None = None,
    limit: Duration | None = None,
    within: Duration | None = None,
    lasting: Duration = 0,
    least: int | None = None,
    severity: AlertSeverity | str = AlertSeverity.WARNING,
    throttle: Duration = "10m",
    group: Grouping | str = Grouping.CAUSE,
    quiet: Iterable[QuietHours | str] | QuietHours | str = (),
    recovery: bool = True,
) -> AlertRule:
    """A rule, checked."""
    checked_name("name", name)
    sought = _word("when", When, when)
    sort = _SORTS[sought]
    _check_chosen(sought, sort, queue=queue, kind=kind, about=about)
    if least is not None and sought not in _SHARES:
        raise ArgumentError(
            "least", f"means nothing for a rule about {sought}: it is for {' and '.join(sorted(_SHARES))}"
        )
    return AlertRule(
        name=name,
        when=sought,
        to=_channels(to),
        queue=queue,
        kind=kind,
        about=about,
        limit=_limit(sought, sort, limit),
        within=_within(sought, sort, within),
        lasting=_lasting(sought, lasting),
        least=20 if least is None else _whole("least", least),
        severity=_word("severity", AlertSeverity, severity),
        throttle=_span("throttle", throttle, timedelta(seconds=1), LONGEST_THROTTLE),
        group=_word("group", Grouping, group),
        quiet=_quiet(quiet),
        recovery=_flag("recovery", recovery),
    )


def _check_chosen(when: When, sort: _Sort, **chosen: str | None) -> None:
    given = [field for field, value in chosen.items() if value is not None]
    for field in given:
        if field not in sort.chooses:
            can = f"it can name a {' or a '.join(sort.chooses)}" if sort.chooses else "leave it out"
            raise ArgumentError(field, f"means nothing for a rule about {when}: {can}")
        checked_name(field, chosen[field])
    if len(given) > 1:
        raise ArgumentError(given[1], f"cannot go with {given[0]}: make two rules, or name one of them")
    if chosen["queue"] == ALERT_QUEUE or chosen["kind"] == ALERT_KIND:
        raise ArgumentError(
            given[0], "must not be that of alerts themselves: other channels report a channel that fails"
        )


def _limit(when: When, sort: _Sort, limit: Duration | None) -> float | None:
    if sort.unit is None:
        if limit is not None:
            raise ArgumentError("limit", f"means nothing for a rule about {when}: leave it out")
        return None
    if limit is None:
        if sort.default is None:
            raise ArgumentError("limit", f"is missing: a rule about {when} needs one, in {sort.unit}")
        return sort.default
    if sort.unit == "seconds":
        longest = timedelta(seconds=BOUNDS[-1]) if when is When.WAIT_P95 else timedelta(days=365)
        return _span("limit", limit, timedelta(milliseconds=1), longest).total_seconds()
    number = _number("limit", limit, sort.unit)
    if sort.unit == "share" and not 0 < number <= 1:
        raise ArgumentError("limit", f"must be a share above 0 and up to 1 (0.8 means 80 %), got {echo(limit)}")
    if sort.unit == "jobs" and not (number == int(number) and 1 <= number <= JOBS_COUNTED):
        raise ArgumentError("limit", f"must be a whole number of jobs from 1 to {JOBS_COUNTED:,}, got {echo(limit)}")
    return number


def _number(field: str, value: object, unit: str) -> float:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and unit == "share" and text.endswith("%"):
        return _number(field, text.removesuffix("%"), "") / 100
    try:
        number = float(text) if isinstance(text, str | int | float) and not isinstance(text, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(field, f"must be a number, got {echo(value)}")
    return number


def _within(when: When, sort: _Sort, within: Duration | None) -> timedelta | None:
    if sort.longest is None:
        if within is not None:
            raise ArgumentError("within", f"means nothing for a rule about {when}: leave it out")
        return None
    return _span("within", "5m" if within is None else within, _MINUTE, sort.longest)


def _lasting(when: When, lasting: Duration) -> timedelta:
    span = _span("lasting", lasting, timedelta(0), LONGEST_THROTTLE)
    if span and when in _EVENTS:
        raise ArgumentError(
            "lasting", f"means nothing for a rule about {when}, which happens and is over: leave it out"
        )
    return span


def _span(field: str, value: Duration, least: timedelta, most: timedelta) -> timedelta:
    span = parse_duration(field, value)
    if not least <= span <= most:
        low, high = format_duration(least), format_duration(most)
        raise ArgumentError(field, f"must be from {low} to {high}, got {format_duration(span)}")
    return span


def _channels(to: object) -> tuple[str, ...]:
    names = [to] if isinstance(to, str) else list(to) if isinstance(to, Iterable) else []
    if not names or len(names) > CHANNELS_PER_RULE:
        raise ArgumentError("to", f"must name 1 to {CHANNELS_PER_RULE} channels, got {echo(to)}")
    return tuple(dict.fromkeys(checked_name("to", name) for name in names))


def _quiet(given: Any) -> tuple[QuietHours, ...]:
    several = (
        [given] if isinstance(given, str | QuietHours) else list(given) if isinstance(given, Iterable) else [given]
    )
    if len(several) > QUIET_STRETCHES_LIMIT:
        raise ArgumentError("quiet", f"may name at most {QUIET_STRETCHES_LIMIT} stretches, got {len(several)}")
    return tuple(read_quiet("quiet", one) for one in several)


def _word(field: str, words: type[Word], given: str) -> Word:
    try:
        return words(given)
    except ValueError:
        raise ArgumentError(field, f"must be one of {', '.join(words)}, got {echo(given)}") from None


def _whole(field: str, value: int) -> int:
    check_whole(field, value, 1, _LEAST_LIMIT_ATTEMPTS)
    return value


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(field, f"must be True or False, got {echo(value)}")
    return value
