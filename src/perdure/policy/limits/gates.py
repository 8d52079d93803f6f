"""What users declare to spare the outside world (C11, E8): rates, concurrency, budgets, breakers.

A gate belongs to its kind of job unless it is named: kinds that name the same gate share it. With a `key` there is one
gate for each value: a tenant, a host, an account. Gates of a kind with the same key (6 a minute, 25,000 a day) count
together, those with different ones apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from perdure.domain.duration import Duration, read_spans
from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, RateCheck
from perdure.domain.jobs.job import Claim
from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.grouping import KeyFunction, as_json, check_parameters, told_by

KEY_LIMIT: Final = 200

_LONGEST_NAME: Final = 100
_WINDOWS: Final = {"daily": timedelta(days=1), "weekly": timedelta(days=7), "monthly": timedelta(days=30)}

Key = str | tuple[str, ...] | KeyFunction
Estimate = float | Callable[[Mapping[str, Any]], float]
"""What a job is expected to spend: a number, or a function of its arguments that gives one."""

Counts = Literal["attempts", "runs"]
"""What passes a gate: each attempt once, however often it is parked; or each run, those after a park as well."""

WhenSpent = Literal["pause", "fail"]
"""What becomes of a job for which a budget has no room: it waits, or it fails for good."""

_COUNTS: Final = ("attempts", "runs")
_WHEN_SPENT: Final = ("pause", "fail")


class Rate(Struct, frozen=True):
    """At most `n` starts in any stretch of `per`, over the whole fleet; the rest wait for their turn.

    `key` names one argument or several, or is a function of all of them. An attempt that was parked (it slept, polled,
    waited) and comes back is no new start, unless the rate `counts` "runs".

    All `n` may start at the same moment. With `spread` they are spaced evenly, `per / n` apart: for outside systems
    that count by their own clock, or that dislike bursts.
    """

    n: int
    per: timedelta
    key: tuple[str, ...] | KeyFunction | None = None
    name: str | None = None
    counts: Counts = "attempts"
    spread: bool = False

    if TYPE_CHECKING:  # what may be given; what is kept stands above

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
        """How many starts in which stretch: one in each part of it, if they are spread."""
        return (1, self.per / self.n) if self.spread else (self.n, self.per)

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `key` that names something which is not a parameter of the handler."""
        check_parameters("rate.key", self.key, parameters)


class Concurrency(Struct, frozen=True):
    """At most `n` jobs run at the same time, over the whole fleet.

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
    """No job starts while what was spent, plus its `estimate`, is more than a limit.

    The limits hold over any 24 hours, 7 days and 30 days. The estimate counts from the start of an attempt until the
    handler says what it has spent, or the attempt is over. It is a number, or a function of all arguments. An attempt
    that was parked and comes back is not refused, unless the budget `counts` "runs". A job that is refused waits; with
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
        """What a job with these arguments is expected to spend; PayloadError if the function cannot say."""
        if not callable(self.estimate):
            return self.estimate
        setting = f"budget.estimate of {self.name}"
        estimate = told_by(setting, self.estimate, arguments)
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
    """Leave an outside system alone for `open_for` once `failures` jobs have failed at it within `window`.

    Then at most `half_open` jobs at a time try whether it is back. All kinds that name it share it.
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
        """What is asked of the breaker before a job runs, and when it has ended."""
        return BreakerCheck(self.name, self.failures, self.window, self.open_for, self.half_open)


Gate = Rate | Concurrency | Budget

_Keyed = TypeVar("_Keyed", Rate, Concurrency)
_Checks = tuple[tuple[RateCheck, ...], tuple[ConcurrencyCheck, ...]]
_Shared = tuple[type[Rate] | type[Concurrency], str, int]
_Limit = tuple[int, timedelta | None]
_PLAIN: Final = frozenset({int, str})  # 1 is equal to True and to 1.0, which are other keys
_MOST_MET: Final = 10_000


def check_gates(gates: Sequence[Gate], breaker: Breaker | None, parameters: Iterable[str]) -> None:
    """Refuse what cannot be meant when a kind of job is declared: no gates, unknown keys, a budget named twice."""
    known = tuple(parameters)
    budgets = set[str]()
    for gate in gates:
        match gate:
            case Rate() | Concurrency():
                gate.check(known)
            case Budget():
                if gate.name in budgets:
                    raise SettingsError("budget.name", f"{gate.name} is given twice: join their limits in one Budget")
                budgets.add(gate.name)
            case Breaker():
                raise SettingsError("gates", f'cannot hold a breaker: write breaker=Breaker("{gate.name}") beside them')
            case _:
                raise SettingsError("gates", f"must be of Rate, Concurrency and Budget, got {gate!r}")
    if breaker is not None and not isinstance(breaker, Breaker):
        raise SettingsError("breaker", f'must be a Breaker, such as Breaker("digicert"), got {breaker!r}')


def check_step_gates(step: str, gates: object, breaker: Breaker | None, parameters: Iterable[str]) -> None:
    """Refuse what cannot stand before a step: what is no gate, an unknown key, and a slot."""
    if not isinstance(gates, Sequence) or isinstance(gates, str | bytes):
        raise SettingsError(f"gates of step {step!r}", f"must be a list of Rate and Budget, got {gates!r}")
    if any(isinstance(gate, Concurrency) for gate in gates):
        problem = (
            "cannot hold a Concurrency, because a slot lasts as long as the whole run: make the step a job of its own"
            " with gates=[Concurrency(…)], and wait for it with ctx.gather"
        )
        raise SettingsError(f"gates of step {step!r}", problem)
    check_gates(gates, breaker, parameters)


def are_disputed(kind_name: str, gates: Sequence[Gate], others: Iterable[tuple[str, Sequence[Gate]]]) -> bool:
    """Whether another kind of job has declared one of these gates as well, with another limit."""
    limits: dict[_Shared, set[_Limit]] = {}
    for shared, limit in _shared(kind_name, gates):
        limits.setdefault(shared, set()).add(limit)
    return any(
        limits.get(shared, {limit}) != {limit}
        for other, declared in others
        if other != kind_name
        for shared, limit in _shared(other, declared)
    )


def _shared(kind_name: str, gates: Sequence[Gate]) -> Iterator[tuple[_Shared, _Limit]]:
    """The limits of these gates, each by what it has in common with those that share it."""
    for gate in gates:
        if isinstance(gate, Budget):
            continue
        values = 0 if gate.key is None else len(gate.key) if isinstance(gate.key, tuple) else 1
        yield (type(gate), gate.name or kind_name, values), gate.limit if isinstance(gate, Rate) else (gate.n, None)


class GatePlan:
    """How jobs of one kind ask before they run. What does not depend on their arguments is made once.

    `parameters` are those of the handler; the arguments of a job stand in their order. `borrows`: what they are given
    may be kept for the next of them. `of_step`: they stand before a step, and an attempt that has passed those of its
    job has not passed them.
    """

    def __init__(
        self,
        kind_name: str,
        gates: Sequence[Gate],
        breaker: Breaker | None,
        parameters: Sequence[str] = (),
        *,
        borrows: bool = True,
        of_step: bool = False,
    ) -> None:
        self._borrows = borrows
        self._of_step = of_step
        self._parameters = tuple(parameters)
        self._rates = _named(kind_name, [gate for gate in gates if isinstance(gate, Rate)])
        self._slots = _named(kind_name, [gate for gate in gates if isinstance(gate, Concurrency)])
        self._budgets = [gate for gate in gates if isinstance(gate, Budget)]
        has_estimates = any(callable(budget.estimate) for budget in self._budgets)
        self._budget_checks = None if has_estimates else self._new_budget_checks(())
        self._breaker = None if breaker is None else breaker.asked
        keys = [gate.key for gate in gates if not isinstance(gate, Budget) and gate.key is not None]
        self.needs_arguments = bool(keys) or has_estimates
        """Whether the arguments of a job say which gates it has to pass, or how much it takes of them."""
        self._pick = self._picker(keys)
        self._met: dict[Any, _Checks] = {}

    def request(self, claim: Claim, arguments: Sequence[Any] = ()) -> GateRequest:
        """What a claim must ask for; its arguments do not matter unless they are needed.

        An attempt that has passed before needs a slot and a breaker that is closed again, and reserves its estimates.
        """
        rates, slots = self._checks(arguments)
        budgets = self._new_budget_checks(arguments) if self._budget_checks is None else self._budget_checks
        if claim.has_passed and not self._of_step:
            rates = tuple(check for check, (gate, _) in zip(rates, self._rates, strict=True) if gate.counts == "runs")
            budgets = tuple(
                check if gate.counts == "runs" else replace(check, refuses=False)
                for check, gate in zip(budgets, self._budgets, strict=True)
                if check.estimate or gate.counts == "runs"
            )
        return GateRequest(
            claim=claim,
            rates=rates,
            concurrency=slots,
            budgets=budgets,
            breaker=self._breaker,
            borrows=self._borrows,
        )

    def _picker(self, keys: Sequence[tuple[str, ...] | KeyFunction]) -> Callable[[Sequence[Any]], Any] | None:
        """How the values that make a key are found among the arguments; None: a function may look at any of them."""
        names: list[str] = []
        for key in keys:
            if not isinstance(key, tuple):
                return None
            names += key
        return itemgetter(*map(self._parameters.index, names)) if names else _no_values

    def _checks(self, arguments: Sequence[Any]) -> _Checks:
        """The checks for these arguments, kept for those that come again; only plain values are sure to be the same."""
        if self._pick is None:
            return self._new_checks(arguments)
        values = self._pick(arguments)
        is_plain = _PLAIN.issuperset(map(type, values)) if type(values) is tuple else type(values) in _PLAIN
        if not is_plain:
            return self._new_checks(arguments)
        checks = self._met.get(values)
        if checks is None:
            checks = self._new_checks(arguments)
            if len(self._met) >= _MOST_MET:
                self._met.clear()
            self._met[values] = checks
        return checks

    def _new_checks(self, values: Sequence[Any]) -> _Checks:
        arguments = dict(zip(self._parameters, values, strict=False))
        rates = [RateCheck(_key("rate.key", name, gate.key, arguments), *gate.limit) for gate, name in self._rates]
        slots = [
            ConcurrencyCheck(_key("concurrency.key", name, gate.key, arguments), gate.n) for gate, name in self._slots
        ]
        return tuple(rates), tuple(slots)

    def _new_budget_checks(self, values: Sequence[Any]) -> tuple[BudgetCheck, ...]:
        arguments = dict(zip(self._parameters, values, strict=False))
        return tuple(
            BudgetCheck(each.name, each.estimate_for(arguments), each.limits, fails=each.when_spent == "fail")
            for each in self._budgets
        )


def _no_values(_: Sequence[Any]) -> tuple[()]:
    return ()


def _named(kind_name: str, gates: Sequence[_Keyed]) -> list[tuple[_Keyed, str]]:
    """Gates with their names. Those of one kind that go by different arguments are different gates."""
    keys = list({gate.key: None for gate in gates if gate.name is None and gate.key is not None})
    if len(keys) <= 1:
        return [(gate, gate.name or kind_name) for gate in gates]
    by = {key: "+".join(key) if isinstance(key, tuple) else f"key {number}" for number, key in enumerate(keys, 1)}
    own = {key: f"{kind_name} by {which}" for key, which in by.items()}
    return [(gate, gate.name or (own[gate.key] if gate.key is not None else kind_name)) for gate in gates]


def _key(setting: str, name: str, key: tuple[str, ...] | KeyFunction | None, arguments: Mapping[str, Any]) -> str:
    # A colon in a name is doubled, so that no name looks like another one with a value.
    realm = name.replace(":", "::") if ":" in name else name
    whole = realm if key is None else f"{realm}:{_value(setting, name, key, arguments)}"
    if len(whole) <= KEY_LIMIT:
        return whole
    digest = sha256(whole.encode()).hexdigest()
    return f"{whole[: KEY_LIMIT - len(digest) - 1]}:{digest}"


def _value(setting: str, name: str, key: tuple[str, ...] | KeyFunction, arguments: Mapping[str, Any]) -> str:
    """The key's values as JSON, so that 7 and "7" are two keys and no character is out of place."""
    whose = f"{setting} of gate {name}"
    values = [arguments[part] for part in key] if isinstance(key, tuple) else [told_by(whose, key, arguments)]
    return as_json(whose, values).decode()[1:-1]


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
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise SettingsError(setting, f"must be 1 to {_LONGEST_NAME} printable characters, got {name!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
