"""How often, how soon and for how long a failed job is retried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from perdure.domain.duration import LONGEST_DURATION, Duration, parse_duration
from perdure.domain.jobs.job import PRIORITIES
from perdure.domain.jobs.states import Reason
from perdure.errors import ArgumentError, SettingsError
from perdure.policy.failures import lineage, type_name
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter, Randomness

ErrorTypes = type[BaseException] | tuple[type[BaseException], ...]

DEFAULT_ATTEMPTS: Final = 5
DEFAULT_BACKOFF: Final = Backoff.exponential("15s", factor=4, cap="1h")
DEFAULT_JITTER: Final = Jitter.ratio(0.1)


class Planned(Struct, frozen=True):
    """One attempt of a preview: its number, and when it begins at the earliest and at the latest.

    `then` is why the job is dead if this attempt fails too; None: it is retried.
    """

    attempt: int
    earliest: timedelta
    latest: timedelta
    then: Reason | None = None


def wait_after(
    failures_before: int, backoff: Backoff, jitter: Jitter, random: Randomness, left: timedelta | None = None
) -> timedelta | None:
    """F1: the wait after a failure, clipped to the time `left`; None when no time is left.

    A clipped wait ends at the deadline, so that one last attempt happens there.
    """
    return _clipped(jitter.apply(backoff.wait(failures_before), random), left)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Retry:
    """The retry policy for failures of one kind of job.

    `attempts` counts the first run too; None sets no limit. `within` limits the time over all attempts: the last wait
    is clipped so that one more attempt happens at the deadline, and a failure at or after it is final. Errors of the
    types in `permanent` are final at once. `by_error` names another backoff, or a whole other policy, for some types of
    error; of several that match, the most specific type wins, over both lists. `priority` is the job's priority from
    its first failure on, so that retries can go before new jobs; None keeps it.

    By default a job gets 5 attempts, with waits of 15 s, 1 min, 4 min and 16 min, each ±10 %: the first retry is quick,
    because most faults are short; the last comes after 21 minutes, so that a job survives a deploy or an outage of a
    quarter of an hour; and jobs that failed together come back apart.
    """

    attempts: int | None
    backoff: Backoff
    jitter: Jitter
    within: timedelta | None
    permanent: tuple[type[BaseException], ...]
    by_error: Mapping[type[BaseException], Retry | Backoff] = field(hash=False)
    priority: int | None
    _rules: dict[str, Retry | None] = field(init=False, repr=False, compare=False)
    _most: int | None = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        attempts: int | None = DEFAULT_ATTEMPTS,
        backoff: Backoff = DEFAULT_BACKOFF,
        jitter: Jitter = DEFAULT_JITTER,
        within: Duration | None = None,
        permanent: ErrorTypes = (),
        by_error: Mapping[type[BaseException], Retry | Backoff] = MappingProxyType({}),
        priority: int | None = None,
    ) -> None:
        set_field = object.__setattr__  # how to set a field of a frozen dataclass
        set_field(self, "attempts", _checked_attempts(attempts))
        set_field(self, "backoff", _checked("retry.backoff", backoff, Backoff))
        set_field(self, "jitter", _checked("retry.jitter", jitter, Jitter))
        set_field(self, "within", _checked_within(within))
        set_field(self, "permanent", permanent if isinstance(permanent, tuple) else (permanent,))
        set_field(self, "by_error", dict(by_error))
        set_field(self, "priority", _checked_priority(priority))
        set_field(self, "_rules", self._named_rules())
        set_field(self, "_most", _most_of(self.attempts, self._rules))

    @classmethod
    def none(cls) -> Retry:
        """One attempt, and its failure is final."""
        return cls(attempts=1)

    @property
    def most_attempts(self) -> int | None:
        """The largest number of attempts that a job can have, for any error; None: no limit."""
        return self._most

    @property
    def rules(self) -> Mapping[str, Retry | None]:
        """The rules by error, under the names of the types; None: such an error is permanent."""
        return MappingProxyType(self._rules)

    def with_rules(self, rules: Mapping[str, Retry | None]) -> Retry:
        """The same policy with these rules by error, under the names of the types: for a stored policy."""
        copy, named = replace(self), dict(rules)
        object.__setattr__(copy, "_rules", named)
        object.__setattr__(copy, "_most", _most_of(self.attempts, named))
        return copy

    def limited_to(self, attempts: int | None) -> Retry:
        """The same policy with another number of attempts; None keeps it (a job's own limit, B8)."""
        return self if attempts is None else replace(self, attempts=attempts)

    def for_error(self, kinds: Iterable[str]) -> Retry | None:
        """The policy for an error of these types, the most specific first (see `lineage`); None: it is permanent."""
        for name in kinds:
            if name in self._rules:
                return self._rules[name]
        return self

    def is_last(self, failures_before: int) -> bool:
        """Whether the attempt after so many failures is the last one allowed."""
        return self.attempts is not None and failures_before + 1 >= self.attempts

    def wait(
        self, failures_before: int, elapsed: timedelta, random: Randomness, asked: timedelta | None = None
    ) -> timedelta | None:
        """The wait before the next attempt, `elapsed` after the first was due; None: the time limit has passed.

        A wait that was `asked` for replaces backoff and jitter; the time limit applies to it as well.
        """
        left = None if self.within is None else self.within - elapsed
        if asked is None:
            return wait_after(failures_before, self.backoff, self.jitter, random, left)
        return _clipped(asked, left)

    def preview(
        self,
        most: int = 20,
        *,
        failures: int = 0,
        elapsed: timedelta | None = None,
        error: type[BaseException] | None = None,
    ) -> list[Planned]:
        """When each attempt would begin if all failed at once, counted from the first; at most so many.

        After `failures` the next attempt begins `elapsed` after the first was due, or, if that is not given, as if the
        earlier attempts had failed at once too. With an `error` its own rule applies.
        """
        if most < 1:
            raise ArgumentError("most", f"must be at least 1, got {most}")
        if failures < 0:
            raise ArgumentError("failures", f"must not be negative, got {failures}")
        rule = self if error is None else self.for_error(lineage(error))
        if rule is not None and rule is not self:
            return rule.preview(most, failures=failures, elapsed=elapsed)
        earliest, latest = self._begins(failures, elapsed)
        plan = list[Planned]()
        while len(plan) < most:
            then = Reason.PERMANENT if rule is None else self._end_after(failures, earliest)
            plan.append(Planned(failures + 1, earliest, latest, then))
            if then is not None:
                break
            earliest, latest = self._next(failures, earliest, latest)
            failures += 1
        return plan

    def _begins(self, failures: int, elapsed: timedelta | None) -> tuple[timedelta, timedelta]:
        if elapsed is not None:
            return elapsed, elapsed
        earliest = latest = timedelta(0)
        for before in range(failures):
            earliest, latest = self._next(before, earliest, latest)
        return earliest, latest

    def _next(self, failures_before: int, earliest: timedelta, latest: timedelta) -> tuple[timedelta, timedelta]:
        shortest, longest = self.jitter.bounds(self.backoff.wait(failures_before))
        limit = LONGEST_DURATION if self.within is None else self.within
        return min(earliest + shortest, limit), min(latest + longest, limit)

    def _end_after(self, failures_before: int, begins: timedelta) -> Reason | None:
        """Why an attempt that begins then, after so many failures, is certainly the last."""
        if self.is_last(failures_before):
            return Reason.EXHAUSTED
        return Reason.OUT_OF_TIME if self.within is not None and begins >= self.within else None

    def _named_rules(self) -> dict[str, Retry | None]:
        rules: dict[str, Retry | None] = {}
        for error in self.permanent:
            rules[_error_name("retry.permanent", error)] = None
        for error, rule in self.by_error.items():
            name = _error_name("retry.by_error", error)
            if name in rules:
                raise SettingsError("retry.by_error", f"names {name}, which retry.permanent names too: choose one")
            rules[name] = self._rule("retry.by_error", name, rule)
        return rules

    def _rule(self, setting: str, name: str, rule: object) -> Retry:
        match rule:
            case Backoff():
                return replace(self, backoff=rule, permanent=(), by_error={})
            case Retry() if rule.permanent or rule.by_error:
                raise SettingsError(setting, f"for {name} must not have rules by error of its own")
            case Retry():
                return rule
            case _:
                raise SettingsError(setting, f"for {name} must be a Backoff or a Retry, got {rule!r}")


def _most_of(attempts: int | None, rules: Mapping[str, Retry | None]) -> int | None:
    most = attempts
    for rule in rules.values():
        if rule is not None:
            most = None if most is None or rule.attempts is None else max(most, rule.attempts)
    return most


def _clipped(wait: timedelta, left: timedelta | None) -> timedelta | None:
    if left is None:
        return wait
    return min(wait, left) if left > timedelta(0) else None


def _checked(setting: str, value: object, wanted: type) -> object:
    if not isinstance(value, wanted):
        raise SettingsError(setting, f"must be a {wanted.__name__}, got {value!r}")
    return value


def _checked_attempts(attempts: object) -> object:
    if attempts is None or (isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 1):
        return attempts
    raise SettingsError(
        "retry.attempts", f"must be 1 or more (it counts the first run too) or None for no limit, got {attempts!r}"
    )


def _checked_priority(priority: object) -> object:
    if priority is None or (isinstance(priority, int) and not isinstance(priority, bool) and priority in PRIORITIES):
        return priority
    raise SettingsError(
        "retry.priority", f"must be from {PRIORITIES[0]} (first) to {PRIORITIES[-1]} (last) or None, got {priority!r}"
    )


def _checked_within(within: Duration | None) -> timedelta | None:
    if within is None:
        return None
    span = parse_duration("retry.within", within, error=SettingsError)
    if not span:
        raise SettingsError("retry.within", "must be longer than 0; None sets no limit, Retry.none() one attempt")
    return span


def _error_name(setting: str, error: object) -> str:
    if isinstance(error, type) and issubclass(error, BaseException):
        return type_name(error)
    raise SettingsError(setting, f"must name types of exceptions, got {error!r}")


DEFAULT_RETRY: Final = Retry()

RetrySource = Retry | Callable[[], Retry]
"""A policy, or a function that reads it from the settings on each use."""


def checked_retry(setting: str, source: object) -> RetrySource:
    """A policy, or a function that reads it; anything else is refused, such as a bare number of attempts."""
    if isinstance(source, Retry) or callable(source):
        return source
    raise SettingsError(
        setting, f"must be a Retry, such as Retry(attempts=3), or a function that gives one, got {source!r}"
    )


def read_policy(source: RetrySource) -> Retry:
    """The current policy. A function of the user may raise anything; a value that is not a Retry is a TypeError."""
    policy: object = source if isinstance(source, Retry) else source()
    if isinstance(policy, Retry):
        return policy
    raise TypeError(f"not a Retry: {policy!r}")
