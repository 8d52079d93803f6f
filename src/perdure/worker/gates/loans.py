"""The loans of a worker, and which of its claims use them (see `policy.lending`).

The database knows how much is lent to a worker; only the worker knows how much of it is in use. The database may count
more as lent than the worker, never less:

- a loan is added in the transaction that admits jobs, and entered here when that has committed;
- returned slots are subtracted here first, then in the database;
- if an answer was lost, its write may still arrive late. So the loan is in doubt for a minute: it is used and
  returned, but not added to. Then the worker writes how much it has.

A loan is good until the worker is declared dead: no other worker may use it before that. `is_sure` says whether the
last heartbeat is recent enough to know that. Otherwise every job asks. So do jobs that may have a place in a gate's
line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from perdure.clock import Clock
from perdure.domain.gate import ConcurrencyCheck, GateRequest, Loan, LoanKey, RateCheck
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.lending import SLOTS, may_borrow

_IN_DOUBT_SECONDS: Final = 60.0  # seconds after which a write with a lost answer cannot arrive any more
_MIXED: Final = -1  # a limit that no gate can have
_CLOCK_RATE_SLACK: Final = 1.01  # a start is free again this much later, so that `per` is over by a slower clock too


class Account:
    """One loan: its size, and how much of it is used."""

    __slots__ = ("limit", "name", "number", "peak", "per", "taken", "used", "uses", "wanted")

    def __init__(self, name: LoanKey, limit: int) -> None:
        self.name = name
        self.limit = limit  # the gate's limit when it was lent: a job with another limit has to ask
        self.per = name[1].total_seconds() * _CLOCK_RATE_SLACK
        self.number = 0
        self.used = 0
        self.peak = 0  # the most that were used at once since the last look
        self.taken = 0  # how often one was used since the last look
        self.uses: deque[float] = deque()  # of starts: when each of them is free again
        self.wanted = False  # another worker waits: free parts go back at once

    def has_room(self, limit: int, now: float) -> bool:
        """Whether one more job of a gate with this limit may use it."""
        if self.uses:
            self.forget_old_starts(now)
        return self.used < self.number and self.limit == limit and not self.wanted

    def use(self, now: float) -> None:
        """Count one more use."""
        self.used = used = self.used + 1
        self.taken += 1
        if self.per:
            self.uses.append(now + self.per)
        self.peak = max(self.peak, used)

    def forget_old_starts(self, now: float) -> None:
        """Starts whose time is over may be used again."""
        uses = self.uses
        while uses and uses[0] <= now:
            uses.popleft()
            self.used -= 1

    def spare(self, now: float, *, all_free: bool) -> int:
        """How much of it was never used since the last look, or is not used now."""
        self.forget_old_starts(now)
        keep = self.used if all_free or self.wanted else self.peak
        self.peak, self.taken = self.used, 0
        return max(self.number - keep, 0)


class Spare(NamedTuple):
    """What is returned of some loans, and, where the database may count more, what is left of them."""

    back: list[Loan]
    left: list[Loan]


class Difference(NamedTuple):
    """A loan that differs: its size in the database, and in the worker's books."""

    name: LoanKey
    lent: int
    own: int


class Loans:
    """The loans of one worker id, and the claims that use them."""

    def __init__(self, clock: Clock, is_sure: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_sure = is_sure
        self._accounts: dict[LoanKey, Account] = {}
        self._users: dict[tuple[JobId, int], tuple[Account, ...]] = {}
        self._doubtful: dict[LoanKey, float] = {}  # until when
        self.borrower: WorkerId | None = None
        """The id of the worker that holds these loans; None: it has no id now."""

    @property
    def names(self) -> list[LoanKey]:
        """The keys of all loans, including those in doubt."""
        return [*self._accounts, *(name for name in self._doubtful if name not in self._accounts)]

    @property
    def are_any(self) -> bool:
        """Whether something is lent, as far as the worker knows."""
        return bool(self._accounts)

    @property
    def are_used(self) -> bool:
        """Whether any claim runs in a lent slot."""
        return bool(self._users)

    def belong_to(self, borrower: WorkerId | None) -> None:
        """Start again under another id; the loans of the old one are lost."""
        self.borrower = borrower
        self._accounts = {}
        self._doubtful = {}

    def passes(self, requests: Sequence[GateRequest]) -> list[bool]:
        """Which of these need not ask, because a loan has room for them."""
        if not self._accounts or not self._is_sure():
            return [False] * len(requests)
        now = self._clock.monotonic()
        return [request.claim.is_fresh and self._take(request, now) for request in requests]

    def used_lately(self, name: LoanKey) -> int | None:
        """How much of a loan was used since the last look; None: it is in doubt, or may not be used."""
        if name in self._doubtful:
            return None
        account = self._accounts.get(name)
        if account is None:
            return 0
        return None if account.limit == _MIXED else account.taken

    def add(self, loans: Iterable[Loan], users: Sequence[GateRequest]) -> None:
        """Add loans, which these claims already use."""
        now = self._clock.monotonic()
        for request in users:
            self._use(request.claim, [self._account(*each) for each in _limits(request).items()], now)
        for loan in loans:
            self._accounts[loan.name].number += loan.number

    def doubt(self, requests: Iterable[GateRequest]) -> None:
        """Mark loans as in doubt: the answer to these requests was lost."""
        self._doubt(name for request in requests if may_borrow(request) for name in _limits(request))

    def ended(self, claim: tuple[JobId, int]) -> list[str]:
        """A claim is over: its slots are free again; returns the keys that another worker waits for."""
        accounts = self._users.pop(claim, ())
        for account in accounts:
            account.used -= 1
        return [account.name[0] for account in accounts if account.wanted]

    def wanted_among(self, names: Iterable[LoanKey]) -> list[LoanKey]:
        """The loans among these that other workers wait for."""
        return [name for name in names if name in self._accounts and self._accounts[name].wanted]

    def spare(self, names: Iterable[LoanKey], *, all_free: bool = False) -> Spare:
        """Take out the part of these loans to return; it is no longer used."""
        now, back, left = self._clock.monotonic(), list[Loan](), list[Loan]()
        for name in names:
            account = self._accounts.get(name)
            spare = account.spare(now, all_free=all_free) if account is not None else 0
            number = 0
            if account is not None:
                account.number = number = account.number - spare
                if not number:
                    del self._accounts[name]
            if self._doubtful.get(name, now) < now:
                left.append(Loan(*name, number))
            elif spare:
                back.append(Loan(*name, spare))
        return Spare(back, left)

    def failed(self, spare: Spare) -> None:
        """The answer was lost: mark these loans as in doubt."""
        self._doubt(loan.name for loan in (*spare.back, *spare.left))

    def went(self, spare: Spare, names: Collection[LoanKey], wanted: Collection[LoanKey]) -> None:
        """They were returned; note which of these loans other workers wait for."""
        for loan in spare.left:
            self._doubtful.pop(loan.name, None)
        for name in names:
            if name in self._accounts:
                self._accounts[name].wanted = name in wanted

    def differences(self, lent: Iterable[Loan]) -> frozenset[Difference]:
        """Where the database and the books differ; loans in doubt are left out."""
        theirs = {loan.name: loan.number for loan in lent}
        ours = {name: account.number for name, account in self._accounts.items()}
        names = {name for name in (*theirs, *ours) if name not in self._doubtful}
        both = [Difference(name, theirs.get(name, 0), ours.get(name, 0)) for name in names]
        return frozenset(each for each in both if each.lent != each.own)

    def agree(self, differences: Iterable[Difference]) -> None:
        """Reduce loans that are smaller in the database; for larger ones, write the true size in a minute."""
        for name, lent, own in differences:
            if lent < own:
                self._accounts[name].number = lent
            else:
                self._doubt([name])

    def _account(self, name: LoanKey, limit: int) -> Account:
        """The account for what was borrowed under this limit."""
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name, limit)
        elif account.limit != limit:
            account.limit = _MIXED
        return account

    def _doubt(self, names: Iterable[LoanKey]) -> None:
        until = self._clock.monotonic() + _IN_DOUBT_SECONDS
        self._doubtful.update((name, until) for name in names)

    def _take(self, request: GateRequest, now: float) -> bool:
        if request.budgets or request.breaker is not None:
            return False
        slots, rates = request.concurrency, request.rates
        if len(slots) + len(rates) == 1:  # by far the most
            return self._take_slot(request.claim, slots[0], now) if slots else self._take_start(rates[0], now)
        accounts = list[Account]()
        for name, limit in _limits(request).items():
            account = self._accounts.get(name)
            if account is None or not account.has_room(limit, now):
                return False
            accounts.append(account)
        if len(accounts) < len(slots) + len(rates):  # a gate that is named twice needs two
            return False
        self._use(request.claim, accounts, now)
        return True

    def _take_slot(self, claim: Claim, check: ConcurrencyCheck, now: float) -> bool:
        account = self._accounts.get((check.key, SLOTS))
        if account is None or not account.has_room(check.limit, now):
            return False
        account.use(now)
        self._users[claim.job_id, claim.token] = (account,)
        return True

    def _take_start(self, rate: RateCheck, now: float) -> bool:
        account = self._accounts.get((rate.key, rate.per))
        if account is None or not account.has_room(rate.limit, now):
            return False
        account.use(now)
        return True

    def _use(self, claim: Claim, accounts: Iterable[Account], now: float) -> None:
        slots = list[Account]()
        for account in accounts:
            account.use(now)
            if not account.per:
                slots.append(account)
        if slots:
            self._users[claim.job_id, claim.token] = tuple(slots)


def _limits(request: GateRequest) -> Mapping[LoanKey, int]:
    slots = {(check.key, SLOTS): check.limit for check in request.concurrency}
    return slots | {(rate.key, rate.per): rate.limit for rate in request.rates}
