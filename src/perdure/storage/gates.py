"""What an engine does for gates: it locks, loads and writes; `policy.limits.gatekeeping` decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.gate import (
    BreakerReport,
    BreakerView,
    GateChanges,
    Gatekeeper,
    GateRequest,
    GateState,
    Held,
    Loan,
    LoanKey,
    Pause,
)
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.operate.audit import By

__all__ = ["BreakerReport", "GateChanges", "GateState", "GateStore", "Gatekeeper"]


class GateStore(Protocol):
    """The gates of the fleet. Counting is exact: requests for the same key wait for each other."""

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        """Lock the gates, let `decide` answer, write the changes, all in one transaction.

        A claim that is lost by now is answered as held, and changes nothing. Without a `borrower` nothing is lent.
        """

    async def loans(self, borrower: WorkerId) -> list[Loan]:
        """The loans of a worker."""

    async def return_loans(
        self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
    ) -> set[LoanKey]:
        """Deduct these from a worker's loans; returns those of all its loans for which jobs waited before.

        `left` says what the worker still has, which may be less than is stored. Call it only while nothing can be added
        to the same loans.
        """

    async def recall_loans(self) -> int:
        """Take back the loans of dead workers, and wake the jobs waiting for them; returns how many are ready.

        Slots are taken back as far as that worker holds fewer jobs by now, starts only once their time is over.
        """

    async def release_gates(self, keys: Collection[str]) -> int:
        """Make as many jobs ready that wait for these concurrency keys as there is room for, in turn; returns how many.

        Call it when attempts that held the keys have ended, and once a job that waits for them is parked: a slot freed
        before that did not wake it.
        """

    async def report_breakers(
        self, names: Collection[str], decide: Callable[[datetime, Mapping[str, BreakerView]], Sequence[BreakerView]]
    ) -> list[BreakerView]:
        """Lock breakers, let `decide` say how they change, write that; returns the changed ones."""

    async def breakers(self) -> list[BreakerView]:
        """All breakers that a job has ever reached, by name."""

    async def set_breaker(self, breaker: BreakerView, by: By) -> None:
        """Put a breaker into a state by hand; if it is closed, its jobs check again at once."""

    async def spend(self, claim: Claim, name: str, amount: float) -> bool:
        """Record what an attempt has spent; the first call replaces its estimate. False: the claim is lost."""

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, with recent spending."""

    async def spent(self, name: str, since: datetime) -> float:
        """The amount spent under a name since then."""

    async def sum_spends(self, limit: int) -> int:
        """Add up to `limit` spends to the sums that budgets read; returns their number.

        It only makes reading cheaper: spends that are missing or changed in the sums are read beside them. Several
        processes may do it at the same time.
        """

    async def pause(self, pause: Pause, by: By) -> None:
        """Store a pause, with an entry in the audit trail."""

    async def resume(self, ids: Collection[str], by: By) -> int:
        """Delete these pauses and make the jobs ready that they held; returns how many."""

    async def pauses(self) -> list[Pause]:
        """The current pauses, oldest first. One whose time is over is deleted, and its jobs come back."""

    async def forget_gates(self, limit: int) -> int:
        """Look at `limit` rows of each type, and delete those that no longer count; returns how many in all.

        Types that cannot be found by their time are scanned from call to call.

        Jobs that are held for a deleted pause, because a worker learned of its end too late, come back.
        """
