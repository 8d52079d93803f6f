"""What an engine does for gates: it locks, loads and writes; `policy.gatekeeping` decides."""

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

__all__ = ["BreakerReport", "GateChanges", "GateState", "GateStore", "Gatekeeper"]


class GateStore(Protocol):
    """The gates of the fleet. Counting is exact: all that ask for the same key wait for each other."""

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        """Lock the gates, let `decide` answer, write what it says, all in one transaction.

        A claim that is lost by now is answered as held, and changes nothing. Without a `borrower` nothing is lent.
        """

    async def loans(self, borrower: WorkerId) -> list[Loan]:
        """What a worker was lent."""

    async def return_loans(
        self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
    ) -> set[LoanKey]:
        """Take these off what a worker was lent; which of all its loans others wait for, as it was before.

        Of `left` it is said what the worker has, which may be less than is known here. That is for times when nothing
        can be added to the same loans.
        """

    async def recall_loans(self) -> int:
        """Take back what dead workers have been lent, and wake who waits for it; how many are ready.

        Slots as far as that worker holds fewer jobs by now, starts only once their time is over.
        """

    async def release_gates(self, keys: Collection[str]) -> int:
        """Make as many jobs ready that wait for these concurrency keys as there is room for, in turn; how many.

        To be called when attempts that held the keys have ended, and once a job that waits for them is parked: what was
        freed before that has not woken it.
        """

    async def report_breakers(
        self, names: Collection[str], decide: Callable[[datetime, Mapping[str, BreakerView]], Sequence[BreakerView]]
    ) -> list[BreakerView]:
        """Lock breakers, let `decide` say how they change, write that; the changed ones come back."""

    async def breakers(self) -> list[BreakerView]:
        """All breakers that were ever met, by name."""

    async def set_breaker(self, breaker: BreakerView, actor: str) -> None:
        """Put a breaker into a state by hand, and let its jobs look again at once if it is closed."""

    async def spend(self, claim: Claim, name: str, amount: float) -> bool:
        """Record what an attempt has spent: the first time in place of its estimate. False: the claim is lost."""

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, under which anything was spent lately."""

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent under a name since then."""

    async def sum_spends(self, limit: int) -> int:
        """Add up to `limit` spends to the sums from which budgets are read; how many.

        It changes nothing but what reading costs: whatever is not in the sums, or not as it stands, is read beside
        them. Several may do it at the same time.
        """

    async def pause(self, pause: Pause) -> None:
        """Keep a pause; it is recorded in the audit trail."""

    async def resume(self, ids: Collection[str], actor: str) -> int:
        """Forget these pauses and make the jobs ready that were held by them; how many."""

    async def pauses(self) -> list[Pause]:
        """The pauses that hold now, oldest first. One whose time is over is forgotten, and its jobs come back."""

    async def forget_gates(self, limit: int) -> int:
        """Look at `limit` rows of each sort, and delete those that count for nothing any more; how many in all.

        Sorts that cannot be found by their time are gone through from call to call.

        Jobs that are on hold for a pause that is gone, because a worker heard of its end too late, come back.
        """
