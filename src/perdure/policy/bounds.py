"""Limits on what a kind and its callers may set for a job (B8)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.errors import SettingsError
from perdure.policy.retries.retry import Retry, RetrySource, read_policy


class Bounds(Struct, frozen=True, kw_only=True):
    """The smallest and the largest value that may be set for a job of one kind, inclusive; None: any.

    ``Bounds(attempts=(1, 11))`` applies to the kind's own policy, also where a function reads it, and to
    ``using(retry=...)``. "No limit" is outside of any bounds.
    """

    attempts: tuple[int, int] | None = None
    timeout: tuple[timedelta, timedelta] | None = None
    crash_limit: tuple[int, int] | None = None

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            *,
            attempts: tuple[int, int] | None = ...,
            timeout: tuple[Duration, Duration] | None = ...,
            crash_limit: tuple[int, int] | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        for field in ("attempts", "crash_limit"):
            if (pair := getattr(self, field)) is not None:
                _check_counts(f"bounds.{field}", pair)
        if self.timeout is not None:
            force_setattr(self, "timeout", _spans("bounds.timeout", self.timeout))

    def check_retry(self, policy: Retry, job: str) -> Retry:
        """The same policy; refused if one of its limits is out of bounds."""
        if self.attempts is not None:
            for limit in _limits(policy):
                _check("retry.attempts", job, limit, *self.attempts)
        return policy

    def bounded(self, source: RetrySource, job: str) -> RetrySource:
        """The same policy source; one that is read from a function is checked each time."""
        if self.attempts is None:
            return source
        if isinstance(source, Retry):
            return self.check_retry(source, job)
        return lambda: self.check_retry(read_policy(source), job)

    def check_timeout(self, timeout: timedelta | None, job: str) -> None:
        """Refuse a time limit that is out of bounds."""
        if self.timeout is not None:
            low, high = self.timeout
            if timeout is None or not low <= timeout <= high:
                given = "no limit" if timeout is None else format_duration(timeout)
                span = f"{format_duration(low)} to {format_duration(high)}"
                raise SettingsError("timeout", f"of job {job} must be from {span}, got {given}")

    def check_crash_limit(self, limit: int, job: str) -> None:
        """Refuse a crash limit that is out of bounds."""
        if self.crash_limit is not None:
            _check("crash_limit", job, limit, *self.crash_limit)


NO_BOUNDS: Final = Bounds()


def checked_bounds(setting: str, value: object) -> Bounds:
    """Bounds; anything else is refused."""
    if not isinstance(value, Bounds):
        raise SettingsError(setting, f"must be Bounds, such as Bounds(attempts=(1, 11)), got {value!r}")
    return value


def _limits(policy: Retry) -> Iterator[int | None]:
    yield policy.attempts
    yield from (rule.attempts for rule in policy.rules.values() if rule is not None)


def _check(field: str, job: str, value: int | None, low: int, high: int) -> None:
    if value is None or not low <= value <= high:
        given = "no limit" if value is None else value
        raise SettingsError(field, f"of job {job} must be from {low} to {high}, got {given}")


def _check_counts(field: str, pair: Any) -> None:
    is_pair = isinstance(pair, tuple) and [type(value) for value in pair] == [int, int]
    if not is_pair or not 1 <= pair[0] <= pair[1]:
        raise SettingsError(field, f"must be two whole numbers, the smaller first and at least 1, got {pair!r}")


def _spans(field: str, pair: Any) -> tuple[timedelta, timedelta]:
    if not isinstance(pair, tuple) or len(pair) != 2:  # noqa: PLR2004 - it is a pair
        raise SettingsError(field, f'must be two spans such as ("1s", "10m"), got {pair!r}')
    low, high = (parse_duration(field, value, error=SettingsError) for value in pair)
    if not timedelta(0) < low <= high:
        raise SettingsError(field, f"must be two spans, the shorter first and more than 0, got {pair!r}")
    return low, high
