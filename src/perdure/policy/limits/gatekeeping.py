"""Which job may run now, and what the others wait for: the one decision behind all gates (C11, G8).

A batch is decided in order, each request as if those before it were already written. A request passes all of its gates
or none: while one holds it, it consumes nothing except its place in a rate's line. The order of the gates is: the
breaker, which costs nothing to ask; rates; budgets; and concurrency last, so that no slot is taken by a job that must
wait for something else. The first gate that holds a job gives the reason.

A rate's starts count from the time of this decision (see `rate_line`). A budget's estimate does too, so that jobs that
start together cannot spend the same money. A job that finds no free slot is woken when there is one; it also checks
again by itself, because a wake-up may be lost. Loans are decided once a request has passed: see `lending`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from perdure.domain.duration import format_duration
from perdure.domain.gate import (
    BreakerView,
    BudgetCheck,
    GateChanges,
    Gatekeeper,
    GateRequest,
    GateState,
    Held,
    Loan,
    LoanKey,
    NearLimit,
    RateCheck,
    Spend,
    Start,
)
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.policy.limits.breaker import admit, by_this_clock, spread
from perdure.policy.limits.budget_window import BudgetSpending, exceeds
from perdure.policy.limits.lending import SLOTS, lent_ahead, may_borrow, may_lend_slot, may_lend_start
from perdure.policy.limits.rate_line import RateLine

RATE_LIMITED: Final = Reason.RATE_LIMITED.value
OVER_BUDGET: Final = Reason.BUDGET_EXCEEDED.value
NO_SLOT: Final = Reason.CONCURRENCY_REACHED.value
CLAIM_LOST: Final = "claim lost"

NEAR_SHARE: Final = 0.8
"""From this share of its limit on, a gate is near it."""

_WARNED_LIMIT_STARTS: Final = 5  # of a rate: below, four fifths of it is the limit itself
_SLOT_RECHECK: Final = timedelta(seconds=30)
_SPEND_RECHECK: Final = timedelta(seconds=30)  # running jobs may spend less than estimated
_SHORTEST_RECHECK: Final = timedelta(seconds=1)
_LONGEST_RECHECK: Final = timedelta(hours=1)
_LENT_RECHECK: Final = timedelta(seconds=1)

Lately = Callable[[LoanKey], int | None]
"""How much of its loan a worker has used lately; None: nothing may be added to it."""


def gatekeeper(requests: Sequence[GateRequest], lately: Lately | None = None) -> Gatekeeper:
    """The decision on these requests, for a store that loads the state and writes the changes.

    With `lately` the worker borrows.
    """

    def decide(state: GateState) -> tuple[list[Held | None], GateChanges]:
        batch = _Batch(state, lately)
        return [batch.answer(request) for request in requests], batch.changes()

    return decide


def is_near(before: float, after: float, limit: float) -> bool:
    """Whether a gate crossed the warning share by this use: only upwards, so that it is reported once."""
    mark = NEAR_SHARE * limit
    return exceeds(mark, before) and not exceeds(mark, after)


class _Batch:
    """The gates while a batch is decided, and their changes."""

    def __init__(self, state: GateState, lately: Lately | None) -> None:
        self.now = state.now
        self.state = state
        self.lately = lately if state.lends else None
        self.lent = Counter[str]()  # of rates; slots are among the holders
        for (key, _), number in state.lent.items():
            self.lent[key] += number
        self.lines = dict[str, RateLine]()
        self.begun = dict[str, int]()  # keys that had no starts at first: how many have begun now
        self.budgets_spent = dict[str, BudgetSpending]()
        self.holders = dict(state.holders)
        self.breakers = dict(state.breakers)
        self.starts = list[Start]()
        self.holds = list[tuple[str, JobId, int]]()
        self.spends = list[Spend]()
        self.waiting = list[tuple[str, JobId]]()
        self.warnings = list[NearLimit]()
        self.loans = Counter[LoanKey]()
        self.borrowers = set[tuple[JobId, int]]()

    def answer(self, request: GateRequest) -> Held | None:
        claim, breaker = request.claim, None
        if (claim.job_id, claim.token) in self.state.lost:
            return Held(CLAIM_LOST, "another worker holds the job by now", timedelta(0))
        if request.breaker:
            met = self.breakers.get(request.breaker.name) or BreakerView(name=request.breaker.name)
            met = self.breakers[met.name] = by_this_clock(met, request.breaker, self.now)
            breaker, held = admit(met, request.breaker, claim.job_id, self.now)
            if held:
                return held
        held = (
            (self._ask_rates(request) if request.rates and not self._is_free(request.rates) else None)
            or (self._ask_budgets(request) if request.budgets else None)
            or (self._ask_concurrency(request) if request.concurrency else None)
        )
        if held:
            return held
        if breaker:
            self.breakers[breaker.name] = breaker
        if self.lately is not None and self._may_borrow(request, self.lately):
            self._borrow(request, self.lately)
        else:
            self._start(request)
        return None

    def changes(self) -> GateChanges:
        before = self.state.breakers
        return GateChanges(
            starts=tuple(self.starts),
            holds=tuple(self.holds),
            spends=tuple(self.spends),
            breakers=tuple(view for name, view in self.breakers.items() if view != before.get(name)),
            waiting=tuple(self.waiting),
            warnings=tuple(self.warnings),
            loans=tuple(Loan(*name, number) for name, number in self.loans.items()),
            borrowers=frozenset(self.borrowers),
        )

    def _is_free(self, rates: Sequence[RateCheck]) -> bool:
        """Whether there is certainly room, because all starts are of this batch or lent: the usual case."""
        if len(rates) > 1:
            return len(_by_key(rates)) == len(rates) and all(self._is_free((rate,)) for rate in rates)
        rate = rates[0]
        if rate.key in self.lines or self.state.starts.get(rate.key):
            return False
        return self.begun.get(rate.key, 0) + self.lent[rate.key] < rate.limit and not self._is_unseen(rate)

    def _ask_rates(self, request: GateRequest) -> Held | None:
        """Every rate without room gives the job a place; the latest one is the answer."""
        job_id, longest = request.claim.job_id, None
        for key, checks in _by_key(request.rates).items():
            line = self._line(key)
            at = line.turn(job_id, checks, self.now)
            if any(map(self._is_unseen, checks)):
                at = max(at, self.now + _LENT_RECHECK)  # nothing is lent any more, and soon everything is returned
            if at <= self.now:
                continue
            if line.places.get(job_id) != at:
                line.reserve(job_id, at)
                self.starts.append(Start(key, at, job_id, begun=False))
            if longest is None or at - self.now > longest.wait:
                used = ", ".join(
                    f"{line.used(check.per, self.now)} of {check.limit} starts in {format_duration(check.per)}"
                    for check in checks
                )
                note = f"{key}: {used}; its turn is at {_shown(at)}"
                longest = Held(RATE_LIMITED, note, at - self.now, key=key)
        return longest

    def _is_unseen(self, rate: RateCheck) -> bool:
        """Whether some of its starts are lent and return sooner than they cease to count here."""
        return bool(self.lent[rate.key]) and any(key == rate.key and per < rate.per for key, per in self.state.lent)

    def _ask_budgets(self, request: GateRequest) -> Held | None:
        longest = None
        for check in request.budgets:
            if not check.refuses:
                continue
            budget_spent = self._budget_spent(check.name)
            for window, limit in check.limits:
                used = budget_spent.used(window, request.claim.job_id)
                if not exceeds(used + check.estimate, limit):
                    continue
                until, is_sure = budget_spent.enough_at(window, limit, check.estimate, request.claim.job_id)
                wait = min(max(until - self.now, _SHORTEST_RECHECK), _LONGEST_RECHECK)
                running = ""
                if budget_spent.may_be_enough(window, limit, check.estimate, request.claim.job_id):
                    wait = min(wait, spread(_SPEND_RECHECK, request.claim.job_id))
                    running = f", {budget_spent.under_way:g} of it by estimates of running jobs"
                if check.fails or longest is None or wait > longest.wait:
                    free = "enough is free at" if is_sure else "enough is free some time after"
                    spent = f"{used:g} of {limit:g} spent in {format_duration(window)}{running}"
                    note = f"{check.name}: {spent}, estimate {check.estimate:g}; {free} {_shown(until)}"
                    longest = Held(OVER_BUDGET, note, wait, fails=check.fails, key=check.name)
                    if check.fails:
                        return longest
        return longest

    def _ask_concurrency(self, request: GateRequest) -> Held | None:
        for check in request.concurrency:
            held = self.holders.get(check.key, 0)
            if held >= check.limit:
                self.waiting.append((check.key, request.claim.job_id))
                wait = spread(_SLOT_RECHECK, request.claim.job_id)
                note = f"{check.key}: {held} of {check.limit} taken; looks again by {_shown(self.now + wait)}"
                return Held(NO_SLOT, note, wait, key=check.key)
        return None

    def _may_borrow(self, request: GateRequest, lately: Lately) -> bool:
        """Whether enough of each gate is left, no job waits there, and the worker's loans are in order."""
        if not may_borrow(request):
            return False
        for rate in request.rates:
            if lately((rate.key, rate.per)) is None:
                return False
            if rate.key in self.state.watched or rate.key in self.lines or self.state.starts.get(rate.key):
                return False
            if not may_lend_start(self.begun.get(rate.key, 0) + self.lent[rate.key], rate.limit):
                return False
        return all(
            check.key not in self.state.awaited
            and may_lend_slot(self.holders.get(check.key, 0), check.limit)
            and lately((check.key, SLOTS)) is not None
            for check in request.concurrency
        )

    def _borrow(self, request: GateRequest, lately: Lately) -> None:
        self.borrowers.add((request.claim.job_id, request.claim.token))
        for rate in request.rates:
            name = rate.key, rate.per
            number = 1
            if name not in self.loans:
                used = self.begun.get(rate.key, 0) + self.lent[rate.key] + 1
                number += lent_ahead(lately(name) or 0, used, rate.limit)
            self.lent[rate.key] += number
            self.loans[name] += number
        for check in request.concurrency:
            self.holders[check.key] = self.holders.get(check.key, 0) + 1
            self.loans[check.key, SLOTS] += 1

    def _start(self, request: GateRequest) -> None:
        job_id, token = request.claim.job_id, request.claim.token
        if request.rates:
            self._begin(request.rates, job_id)
        for budget in request.budgets:
            self._spend(budget, job_id)
        if request.concurrency:
            for key in {check.key: None for check in request.concurrency}:
                self.holders[key] = self.holders.get(key, 0) + 1
                self.holds.append((key, job_id, token))

    def _begin(self, rates: Sequence[RateCheck], job_id: JobId) -> None:
        if self._is_free(rates):
            for rate in rates:
                self.begun[rate.key] = used = self.begun.get(rate.key, 0) + 1
                self.starts.append(Start(rate.key, self.now, job_id, True))
                self._warn(rate, used + self.lent[rate.key])
            return
        for key, checks in _by_key(rates).items():
            line = self._line(key)
            line.begin(job_id, self.now)
            self.starts.append(Start(key, self.now, job_id, begun=True))
            for check in checks:
                self._warn(check, line.used(check.per, self.now))

    def _warn(self, rate: RateCheck, used: int) -> None:
        if used * 2 > rate.limit >= _WARNED_LIMIT_STARTS and is_near(used - 1, used, rate.limit):
            self.warnings.append(NearLimit(rate.key, used, rate.limit, rate.per))

    def _spend(self, check: BudgetCheck, job_id: JobId) -> None:
        budget_spent = self._budget_spent(check.name)
        if not check.estimate and job_id not in budget_spent.estimates:
            return
        before = [budget_spent.totals[window] for window, _ in check.limits]
        estimate = Spend(check.name, self.now, check.estimate, job_id, is_estimate=True)
        budget_spent.add(estimate)
        self.spends.append(estimate)
        for was, (window, limit) in zip(before, check.limits, strict=True):
            if is_near(was, budget_spent.totals[window], limit):
                self.warnings.append(NearLimit(check.name, budget_spent.totals[window], limit, window))

    def _line(self, key: str) -> RateLine:
        if key not in self.lines:
            line = self.lines[key] = RateLine(self.state.starts.get(key, ()))
            for _ in range(self.begun.pop(key, 0) + self.lent[key]):  # a lent start may begin at any moment
                line.count(self.now)
        return self.lines[key]

    def _budget_spent(self, name: str) -> BudgetSpending:
        if name not in self.budgets_spent:
            self.budgets_spent[name] = BudgetSpending(self.state.spending[name], self.now)
        return self.budgets_spent[name]


def _by_key(rates: Sequence[RateCheck]) -> Mapping[str, Sequence[RateCheck]]:
    """Rates under the same key (6 a minute, 25,000 a day) share their starts and are stored together."""
    if len(rates) == 1:
        return {rates[0].key: rates}
    found = dict[str, list[RateCheck]]()
    for check in rates:
        found.setdefault(check.key, []).append(check)
    return found


def _shown(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
