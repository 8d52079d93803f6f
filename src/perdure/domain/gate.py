"""Gates hold a claimed job before it runs: rates, concurrency, budgets, breakers, pauses. A held job uses no attempt.

`policy.limits.gatekeeping` decides what a gate allows, as a pure function over the state that is loaded here; engines
lock, load and write, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim


class RateCheck(Struct, frozen=True, gc=False):
    """At most `limit` starts of this key in any window of `per`."""

    key: str
    limit: int
    per: timedelta


class ConcurrencyCheck(Struct, frozen=True, gc=False):
    """At most `limit` live leases that hold this key."""

    key: str
    limit: int


class BudgetCheck(Struct, frozen=True):
    """Spending in each sliding window plus `estimate` must stay within its limit.

    Not `refuses`: the attempt was admitted before, and its estimate is only reserved again. `fails`: a refused attempt
    fails instead of waiting.
    """

    name: str
    estimate: float
    limits: tuple[tuple[timedelta, float], ...]
    refuses: bool = True
    fails: bool = False


class BreakerCheck(Struct, frozen=True):
    """The breaker of an outside system, as this kind of job declares it."""

    name: str
    failures: int
    window: timedelta
    open_for: timedelta
    half_open: int


class GateRequest(Struct, frozen=True, kw_only=True, gc=False):
    """A claim that wants to run, and the gates before it. `borrows`: its worker may keep a loan.

    `named`: the gates as the record of an attempt names them (see `policy.limits.gate_record`).
    """

    claim: Claim
    rates: tuple[RateCheck, ...] = ()
    concurrency: tuple[ConcurrencyCheck, ...] = ()
    budgets: tuple[BudgetCheck, ...] = ()
    breaker: BreakerCheck | None = None
    borrows: bool = True
    named: str = ""

    @property
    def is_any(self) -> bool:
        """Whether the request has any gate."""
        return bool(self.rates or self.concurrency or self.budgets or self.breaker)


LoanKey = tuple[str, timedelta]
"""A gate's key, and how long each start counts; 0: it has slots."""


class Loan(Struct, frozen=True, gc=False):
    """A part of a gate's limit that a worker may use on its own, without asking again (see `policy.limits.lending`).

    Slots of a concurrency key (`per` is 0), each for one job at a time; or starts of a rate's key, each of which
    becomes free again `per` after it was used.
    """

    key: str
    per: timedelta
    number: int

    @property
    def name(self) -> LoanKey:
        """The key of this loan among the worker's loans."""
        return self.key, self.per


class Held(Struct, frozen=True):
    """Why a job must wait: the gate's reason (`rate limited`, …), the details, and the longest wait.

    `fails`: the job fails instead of waiting. `key` is that of the gate.
    """

    reason: str
    note: str
    wait: timedelta
    fails: bool = False
    key: str = ""


class Start(Struct, frozen=True, gc=False):
    """A start under a rate's key, or (not `begun`) a place reserved for one."""

    key: str
    at: datetime
    job_id: JobId
    begun: bool


class Spend(Struct, frozen=True):
    """Money spent under a budget's name; `is_estimate` until the handler reports the real amount."""

    name: str
    at: datetime
    amount: float
    job_id: JobId
    is_estimate: bool


class Cost(Struct, frozen=True):
    """What a job has spent from a budget over all its attempts, and what is still estimated."""

    budget: str
    spent: float
    estimated: float | None = None  # None: the job has reported the amount


OLDEST_SPENDS_SEEN = 1_000
"""The most spends that are read to find when enough of a budget is free again."""


class Spending(Struct, frozen=True, kw_only=True):
    """The state of one budget.

    `totals`: the amount spent within each requested window, estimates included.
    `estimates`: those of the requesting jobs; a job's next estimate replaces its current one.
    `oldest`: where the batch may not fit into a window, the spends that leave the window first, oldest first; all there
    are, or `OLDEST_SPENDS_SEEN` of them.
    `under_way`: where the batch may not fit, the sum of estimates of other running jobs.
    """

    totals: Mapping[timedelta, float] = {}
    estimates: Sequence[Spend] = ()
    oldest: Mapping[timedelta, Sequence[Spend]] = {}
    under_way: float = 0.0


class BreakerState(StrEnum):
    """The state of a circuit breaker."""

    CLOSED = "closed"  # jobs run
    OPEN = "open"  # jobs are held
    HALF_OPEN = "half open"  # a few trials run


class BreakerView(Struct, frozen=True, kw_only=True):
    """The current state of a breaker. `by_hand`: an operator opened it, and only an operator closes it."""

    name: str
    state: BreakerState = BreakerState.CLOSED
    failures: tuple[datetime, ...] = ()  # within the window, oldest first
    changed_at: datetime | None = None
    until: datetime | None = None  # open: when trials begin
    trials: tuple[JobId, ...] = ()  # half open: trials in progress
    started: int = 0  # jobs let through since it closed, while they are let through slowly
    by_hand: bool = False
    by: str | None = None  # the operator who put it into this state, if any
    note: str | None = None


class Pause(Struct, frozen=True, kw_only=True):
    """Jobs that must not run for now: of a queue, a kind, or whose arguments have these values (a JSON object)."""

    id: str
    queue: str | None = None
    kind: str | None = None
    args: str | None = None
    until: datetime | None = None
    why: str | None = None
    actor: str
    at: datetime


class GateState(Struct, frozen=True, kw_only=True):
    """The state of the gates in a batch of requests, at one instant, under lock.

    `starts`, for each rate's key, in any order, each once: the latest places, as many as its largest limit plus the
    requests that name it; all starts and places less than its longest `per` before or after now; and the place of a
    requesting job, unless it is late by more than a day. Without the second group, a long line of places would hide the
    starts that count now. Where there are no places, and starts and requests together use less than half of any limit,
    the starts are left out: every request passes. The job of a begun start is unknown, and where there are more than
    128 starts one may be reported later than it was.
    `holders`: for each concurrency key, how many live leases hold it, without those of the requesting claims, and how
    many of its slots are lent.
    `awaited`: the concurrency keys for which jobs wait in line.
    `lent`: how many starts of the rates' keys are lent; they count as starts everywhere.
    `watched`: the rates' keys whose starts some kind counts over a longer window than the requests do.
    `lends`: whether the requesting worker is alive and can borrow.
    `spending`: the state of each budget. A breaker that no job has reached is left out.
    `lost`: job and token of each requesting claim that is no longer held; it passes nothing and changes nothing.
    """

    now: datetime
    starts: Mapping[str, Sequence[Start]]
    holders: Mapping[str, int]
    spending: Mapping[str, Spending]
    breakers: Mapping[str, BreakerView]
    lost: frozenset[tuple[JobId, int]] = frozenset()
    awaited: Collection[str] = ()
    lent: Mapping[LoanKey, int] = {}
    watched: Collection[str] = ()
    lends: bool = False


class NearLimit(Struct, frozen=True):
    """A gate that crossed four fifths of its limit in a window of `per`."""

    gate: str
    used: float
    limit: float
    per: timedelta


class GateChanges(Struct, frozen=True, kw_only=True):
    """The changes to write.

    A start, begun or not, replaces the place that its job has under the same key. Begun starts stay, even several of
    one job, because each attempt counts. An estimate replaces the job's estimate under the same name.
    `loans` are added to those of the requesting worker; they include what `borrowers` start and hold.
    `warnings` are for the caller and are not written.
    """

    starts: tuple[Start, ...] = ()
    holds: tuple[tuple[str, JobId, int], ...] = ()  # key, job, token
    spends: tuple[Spend, ...] = ()
    breakers: tuple[BreakerView, ...] = ()
    waiting: tuple[tuple[str, JobId], ...] = ()  # concurrency key, job: in the order in which to wake them
    warnings: tuple[NearLimit, ...] = ()
    loans: tuple[Loan, ...] = ()
    borrowers: frozenset[tuple[JobId, int]] = frozenset()  # job, token


Gatekeeper = Callable[[GateState], tuple[list[Held | None], GateChanges]]
"""Answers each request (None: it may run), and lists the changes to write."""


class BreakerReport(Struct, frozen=True):
    """How an attempt that passed a breaker ended."""

    name: str
    job_id: JobId
    succeeded: bool
    retry_after: timedelta | None = None
