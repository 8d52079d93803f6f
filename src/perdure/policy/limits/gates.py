"""What users declare to limit load on outside systems (C11, E8): rates, concurrency, budgets, breakers.

A gate belongs to its kind of job unless it is named: kinds that name the same gate share it. With a `key` there is one
gate for each value: a tenant, a host, an account. Gates of a kind with the same key (6 a minute, 25,000 a day) count
together, those with different keys separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, read_spans
from perdure.domain.gate import BreakerCheck
from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.grouping import KeyFunction, call_with_arguments, check_parameters

_NAME_LIMIT_CHARACTERS: Final = 100
_WINDOWS: Final = {"daily": timedelta(days=1), "weekly": timedelta(days=7), "monthly": timedelta(days=30)}

Key = str | tuple[str, ...] | KeyFunction
Estimate = float | Callable[[Mapping[str, Any]], float]
"""What a job is expected to spend: a number, or a function of its arguments that returns one."""

Counts = Literal["attempts", "runs"]
"""What passes a gate: each attempt once, even if it is parked in between; or each run, also those after a park."""

WhenSpent = Literal["pause", "fail"]
"""What happens to a job for which a budget has no room: it waits, or it fails for good."""

_COUNTS: Final = ("attempts", "runs")
_WHEN_SPENT: Final = ("pause", "fail")


class Rate(Struct, frozen=True):
    """At most `n` starts in any window of `per`, across the whole fleet; further jobs wait for their turn.

    `key` names one argument or several, or is a function of all of them. An attempt that was parked (it slept, polled,
    waited) and comes back is not a new start, unless the rate `counts` "runs".

    All `n` may start at the same moment. With `spread` they are spaced evenly, `per / n` apart: for outside systems
    that count by their own clock, or that dislike bursts.
    """

    n: int
    per: timedelta
    key: tuple[str, ...] | KeyFunction | None = None
    name: str | None = None
    counts: Counts = "attempts"
    spread: bool = False

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            n: int,
            per: Duration,
            key: Key | None = ...,
            name: str | None = ...,
            counts: Counts = ...,
            spread: bool = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_count("rate.n", self.n)
        _check_spans("rate", self, "per")
        _check_name("rate.name", self.name, optional=True)
        _check_word("rate.counts", self.counts, _COUNTS)
        if not isinstance(self.spread, bool):
            raise SettingsError("rate.spread", f"must be True or False, got {self.spread!r}")
        force_setattr(self, "key", _checked_key("rate.key", self.key))

    @property
    def limit(self) -> tuple[int, timedelta]:
        """How many starts in which window: one in each part of it, if they are spread."""
        return (1, self.per / self.n) if self.spread else (self.n, self.per)

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `key` that names something which is not a parameter of the handler."""
        check_parameters("rate.key", self.key, parameters)


class Concurrency(Struct, frozen=True):
    """At most `n` jobs run at the same time, across the whole fleet.

    `key` names one argument or several, or is a function of all of them.
    """

    n: int
    key: tuple[str, ...] | KeyFunction | None = None
    name: str | None = None

    if TYPE_CHECKING:  # as above

        def __init__(self, n: int, key: Key | None = ..., name: str | None = ...) -> None: ...

    def __post_init__(self) -> None:
        _check_count("concurrency.n", self.n)
        _check_name("concurrency.name", self.name, optional=True)
        force_setattr(self, "key", _checked_key("concurrency.key", self.key))

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `key` that names something which is not a parameter of the handler."""
        check_parameters("concurrency.key", self.key, parameters)


class Budget(Struct, frozen=True):
    """No job starts while the amount spent, plus its `estimate`, exceeds a limit.

    The limits apply to any 24 hours, 7 days and 30 days. The estimate counts from the start of an attempt until the
    handler reports what it has spent, or the attempt is over. It is a number, or a function of all arguments. An
    attempt that was parked and comes back is not refused, unless the budget `counts` "runs". A refused job waits; with
    `when_spent` "fail" it is dead at once.
    """

    name: str
    daily: float | None = None
    weekly: float | None = None
    monthly: float | None = None
    estimate: Estimate = 0
    counts: Counts = "attempts"
    when_spent: WhenSpent = "pause"

    def __post_init__(self) -> None:
        _check_name("budget.name", self.name)
        _check_word("budget.counts", self.counts, _COUNTS)
        _check_word("budget.when_spent", self.when_spent, _WHEN_SPENT)
        given = {field: getattr(self, field) for field in _WINDOWS if getattr(self, field) is not None}
        if not given:
            raise SettingsError("budget", f"{self.name} needs at least one of: {', '.join(_WINDOWS)}")
        for field, limit in given.items():
            if not _is_number(limit) or limit <= 0:
                raise SettingsError(f"budget.{field}", f"must be a number above 0, got {limit!r}")
        if not callable(self.estimate) and (problem := self._problem_with(self.estimate)):
            raise SettingsError("budget.estimate", problem)

    @property
    def limits(self) -> tuple[tuple[timedelta, float], ...]:
        """Each window that has a limit, the shortest first."""
        found = ((window, getattr(self, field)) for field, window in _WINDOWS.items())
        return tuple((window, limit) for window, limit in found if limit is not None)

    def estimate_for(self, arguments: Mapping[str, Any]) -> float:
        """What a job with these arguments is expected to spend; PayloadError if the function cannot tell."""
        if not callable(self.estimate):
            return self.estimate
        setting = f"budget.estimate of {self.name}"
        estimate = call_with_arguments(setting, self.estimate, arguments)
        if problem := self._problem_with(estimate):
            raise PayloadError(setting, problem)
        return float(estimate)

    def _problem_with(self, estimate: Any) -> str | None:
        if not _is_number(estimate) or estimate < 0:
            return f"must be a number of 0 or more, got {estimate!r}"
        for field in _WINDOWS:
            limit = getattr(self, field)
            if limit is not None and estimate > limit:
                return f"({estimate:g}) is more than budget.{field} ({limit:g}): no job could ever start"
        return None


class Breaker(Struct, frozen=True):
    """Stop calling an outside system for `open_for` once `failures` jobs have failed at it within `window`.

    Then at most `half_open` jobs at a time test whether it is back. All kinds that name it share it.
    """

    name: str
    failures: int = 5
    window: timedelta = timedelta(minutes=1)
    open_for: timedelta = timedelta(minutes=1)
    half_open: int = 1

    if TYPE_CHECKING:  # as above

        def __init__(
            self,
            name: str,
            failures: int = ...,
            window: Duration = ...,
            open_for: Duration = ...,
            half_open: int = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_name("breaker.name", self.name)
        _check_count("breaker.failures", self.failures)
        _check_count("breaker.half_open", self.half_open)
        _check_spans("breaker", self, "window", "open_for")

    @property
    def asked(self) -> BreakerCheck:
        """The breaker's check before a job runs, and when it has ended."""
        return BreakerCheck(self.name, self.failures, self.window, self.open_for, self.half_open)


Gate = Rate | Concurrency | Budget


def _checked_key(setting: str, key: object) -> object:
    if key is None or callable(key):
        return key
    names = (key,) if isinstance(key, str) else key
    if isinstance(names, tuple | list) and names and all(isinstance(name, str) for name in names):
        return tuple(names)
    raise SettingsError(setting, f'must name arguments, such as "tenant", or be a function of them, got {key!r}')


def _check_count(setting: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(setting, f"must be a whole number of at least 1, got {value!r}")


def _check_word(setting: str, value: object, words: tuple[str, str]) -> None:
    if value not in words:
        raise SettingsError(setting, f'must be "{words[0]}" or "{words[1]}", got {value!r}')


def _check_spans(owner: str, gate: Struct, *fields: str) -> None:
    read_spans(owner, gate, fields)
    for field in fields:
        if not getattr(gate, field):
            raise SettingsError(f"{owner}.{field}", 'must be longer than 0, such as "1m"')


def _check_name(setting: str, name: object, *, optional: bool = False) -> None:
    if optional and name is None:
        return
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME_LIMIT_CHARACTERS or not name.isprintable():
        raise SettingsError(setting, f"must be 1 to {_NAME_LIMIT_CHARACTERS} printable characters, got {name!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
