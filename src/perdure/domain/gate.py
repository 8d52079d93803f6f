"""Gates: what holds a claimed job back before it runs, at no cost: rates, concurrency, budgets, breakers, pauses.

What a gate allows is decided by `policy.gatekeeping`, a pure function over the state that is loaded here; engines lock,
load and write, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim


class RateCheck(Struct, frozen=True, gc=False):
    """At most `limit` starts of this key in any stretch of `per`."""

    key: str
    limit: int
    per: timedelta


class ConcurrencyCheck(Struct, frozen=True, gc=False):
    """At most `limit` live leases that hold this key."""

    key: str
    limit: int


class BudgetCheck(Struct, frozen=True):
    """Spend over each sliding window plus `estimate` must stay within its limit.

    Not `refuses`: the attempt was let in before, and its estimate is only reserved again. `fails`: one that is refused
    does not wait.
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
    """A claim that wants to run, and the gates before it. `borrows`: its worker may keep what it is given."""

    claim: Claim
    rates: tuple[RateCheck, ...] = ()
    concurrency: tuple[ConcurrencyCheck, ...] = ()
    budgets: tuple[BudgetCheck, ...] = ()
    breaker: BreakerCheck | None = None
    borrows: bool = True

    @property
    def is_any(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.rates or self.concurrency or self.budgets or self.breaker)


LoanKey = tuple[str, timedelta]
"""A gate's key, and how long each start of it counts; 0: it has slots."""


class Loan(Struct, frozen=True, gc=False):
    """A part of a gate's limit that a worker may use on its own, without asking again (see `policy.lending`).

    Slots of a concurrency key (`per` is 0), each for one of its jobs at a time; or starts of a rate's key, of which
    each comes back `per` after it was used.
    """

    key: str
    per: timedelta
    number: int

    @property
    def name(self) -> LoanKey:
        """Which of a worker's loans this is."""
        return self.key, self.per


class Held(Struct, frozen=True):
    """Why a job must wait: the gate's word (`rate limited`, …), what it is about, and for how long at most.

    `fails`: it shall not wait, but fail.
    """

    reason: str
    note: str
    wait: timedelta
    fails: bool = False


class Start(Struct, frozen=True, gc=False):
    """A start under a rate's key, or (not `begun`) a place reserved for one."""

    key: str
    at: datetime
    job_id: JobId
    begun: bool


class Spend(Struct, frozen=True):
    """Money spent under a budget's name; `is_estimate` until the handler says what it was."""

    name: str
    at: datetime
    amount: float
    job_id: JobId
    is_estimate: bool


class Cost(Struct, frozen=True):
    """What a job has spent from a budget over all its attempts, and what is estimated of it beside that."""

    budget: str
    spent: float
    estimated: float | None = None  # None: it has said what it was


OLDEST_SEEN = 1_000
"""So many spends are looked at, at most, for when enough of a budget is free again."""


class Spending(Struct, frozen=True, kw_only=True):
    """What is known of one budget.

    `totals`: what was spent within each window that is asked for, estimates included.
    `estimates`: those of the requesting jobs, each of which the job's next one replaces.
    `oldest`: where the batch may not fit into a window, the spends that leave that one first, oldest first; all there
    are, or `OLDEST_SEEN` of them.
    `under_way`: where the batch may not fit, how much is only estimated of other jobs that run now.
    """

    totals: Mapping[timedelta, float] = {}
    estimates: Sequence[Spend] = ()
    oldest: Mapping[timedelta, Sequence[Spend]] = {}
    under_way: float = 0.0


class BreakerState(StrEnum):
    """Whether an outside system is called."""

    CLOSED = "closed"  # it is
    OPEN = "open"  # it is left alone
    HALF_OPEN = "half open"  # a few trials


class BreakerView(Struct, frozen=True, kw_only=True):
    """A breaker as it stands. `by_hand`: an operator opened it, and only an operator closes it."""

    name: str
    state: BreakerState = BreakerState.CLOSED
    failures: tuple[datetime, ...] = ()  # within the window, oldest first
    changed_at: datetime | None = None
    until: datetime | None = None  # open: when trials begin
    trials: tuple[JobId, ...] = ()  # half open: under way
    started: int = 0  # jobs let through since it closed, while they are let through slowly
    by_hand: bool = False
    by: str | None = None  # who put it into this state, if somebody did
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
    """What is known of the gates that a batch of requests asks for, at one instant, under lock.

    `starts`, for each rate's key, in any order, each once: of the places the latest ones, as many as its largest limit
    plus the requests that name it; all starts and places that lie less than its longest `per` before now or after it;
    and the place of a requesting job, unless it is late by more than a day. Without the second, a long line of places
    would hide the starts that count now. Where there are no places, and the starts and requests together use not even
    half of any limit, the starts are left out: everybody passes. Whose start it was that has begun is not known, and
    where there are more than 128 one may be said to have been later than it was.
    `holders`: for each concurrency key how many live leases hold it, those of the requesting claims left out, and how
    many of its slots are lent.
    `awaited`: the concurrency keys for which jobs stand in line.
    `lent`: how many starts of the rates' keys are lent; they count as starts wherever these do.
    `watched`: the rates' keys whose starts somebody counts over a longer time than those who ask.
    `lends`: whether there is a worker to whom something can be lent, and it lives.
    `spending`: for each budget. A breaker nobody has met is left out.
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
    """A gate of which four fifths are now used, and were not before: of what it allows in a stretch of `per`."""

    gate: str
    used: float
    limit: float
    per: timedelta


class GateChanges(Struct, frozen=True, kw_only=True):
    """What is to be written.

    A start, begun or not, takes the place that its job has under the same key; starts that have begun stay, also
    several of one job, for each attempt counts. An estimate replaces the one that its job has under the same name.
    `loans` are added to what the worker that asks has already; what `borrowers` start and hold is in them.
    `warnings` are for the caller: nothing of them is written.
    """

    starts: tuple[Start, ...] = ()
    holds: tuple[tuple[str, JobId, int], ...] = ()  # key, job, token
    spends: tuple[Spend, ...] = ()
    breakers: tuple[BreakerView, ...] = ()
    waiting: tuple[tuple[str, JobId], ...] = ()  # concurrency key, job: in the order in which they shall be woken
    warnings: tuple[NearLimit, ...] = ()
    loans: tuple[Loan, ...] = ()
    borrowers: frozenset[tuple[JobId, int]] = frozenset()  # job, token


Gatekeeper = Callable[[GateState], tuple[list[Held | None], GateChanges]]
"""Answers each request, None: it may run; and says what is to be written."""


class BreakerReport(Struct, frozen=True):
    """How an attempt that passed a breaker has ended."""

    name: str
    job_id: JobId
    succeeded: bool
    retry_after: timedelta | None = None
