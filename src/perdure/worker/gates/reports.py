"""Reports to gates after an attempt: free slots for waiting jobs, and outcomes for breakers.

A slot is free as soon as the acknowledgement is written, because the lease is gone then; jobs that wait for it must be
woken. This is best effort: a job that is not woken checks again by itself. A job that was held because no slot was free
is woken in the same way once it is parked, because a slot that became free a moment before has not woken it.

A breaker needs every failure, and the success of a trial; other successes do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.gate import BreakerCheck, BreakerReport, BreakerState, BreakerView, ConcurrencyCheck
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Crashed, Done, Failed, Outcome
from perdure.domain.jobs.transition import Transition
from perdure.errors import StoreError
from perdure.events import BreakerClosed, BreakerHalfOpen, BreakerOpened, Emitter, StoreTrouble
from perdure.policy.limits.breaker import note_reports
from perdure.policy.limits.lending import SLOTS
from perdure.storage.gates import GateStore
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.operator_breakers import OperatorBreakers
from perdure.worker.recording.collector import Collector

_REPORTS_PER_CALL: Final = 1_000


class Passage(Struct, frozen=True, gc=False):
    """How an attempt passed a breaker, to which its end must be reported."""

    breaker: BreakerCheck
    is_trial: bool


class GateReports:
    """Remembers the reports that attempts owe to gates, and sends them when the attempts have ended."""

    def __init__(self, store: GateStore, emitter: Emitter, keeper: LoanKeeper) -> None:
        self._store = store
        self._keeper = keeper
        self._loans = keeper.loans
        self._emitter = emitter
        self._by_hand = OperatorBreakers(emitter)
        self._owed_slots: dict[tuple[JobId, int], tuple[ConcurrencyCheck, ...]] = {}
        self._owed_news: dict[tuple[JobId, int], Passage] = {}
        self._slots: Collector[str] = Collector(self._release, _REPORTS_PER_CALL)
        self._news: Collector[tuple[BreakerCheck, BreakerReport]] = Collector(self._report, _REPORTS_PER_CALL)

    def owe_slots(self, claim: Claim, slots: tuple[ConcurrencyCheck, ...]) -> None:
        """Remember the slots that this claim frees at its end."""
        self._owed_slots[claim.job_id, claim.token] = slots

    def owe_news(self, claim: Claim, passage: Passage) -> None:
        """Remember the gates and breakers to report the end of this claim to."""
        self._owed_news[claim.job_id, claim.token] = passage

    def note(self, breaker: BreakerCheck, report: BreakerReport) -> None:
        """Report to a breaker how a step ended."""
        self._news.add([(breaker, report)])

    def ended(self, claim: Claim, outcome: Outcome | None) -> None:
        """An attempt is over; None: the store has recorded it already, or its claim is lost."""
        if outcome is None:
            self._owed_news.pop((claim.job_id, claim.token), None)
            self._free(self._owed_slots.pop((claim.job_id, claim.token), ()))
            self._slots.add(self._loans.ended((claim.job_id, claim.token)))
        elif self._owed_news and (passage := self._owed_news.pop((claim.job_id, claim.token), None)):
            self._report_to_breaker(passage, claim, outcome)

    def recorded(self, moves: Sequence[Transition]) -> None:
        """These transitions are written: their leases are gone."""
        if self._owed_slots:
            free: list[ConcurrencyCheck] = []
            for move in moves:
                free += self._owed_slots.pop((move.claim.job_id, move.claim.token), ())
            self._free(free)
        if self._loans.are_used:
            wanted: list[str] = []
            for move in moves:
                wanted += self._loans.ended((move.claim.job_id, move.claim.token))
            self._slots.add(wanted)

    async def drain(self) -> None:
        """Wait until all reports so far were sent or dropped."""
        await self._news.drain()
        await self._slots.drain()

    async def close(self) -> None:
        """Send nothing more."""
        await self._news.close()
        await self._slots.close()

    def emit_changes(self, before: Mapping[str, BreakerView], after: Sequence[BreakerView]) -> None:
        """Emit events for breakers that have changed their state."""
        self._by_hand.notice(before.values())
        for view in after:
            was = before[view.name].state if view.name in before else BreakerState.CLOSED
            if view.state is was:
                continue
            match view.state:
                case BreakerState.OPEN:
                    until = None if view.until is None else view.until.isoformat(timespec="seconds")
                    self._emitter.emit(BreakerOpened(view.name, until, view.note or ""))
                case BreakerState.HALF_OPEN:
                    self._emitter.emit(BreakerHalfOpen(view.name))
                case BreakerState.CLOSED:
                    self._emitter.emit(BreakerClosed(view.name, view.note or ""))

    def _free(self, slots: Sequence[ConcurrencyCheck]) -> None:
        self._slots.add([slot.key for slot in slots])

    def _report_to_breaker(self, passage: Passage, claim: Claim, outcome: Outcome) -> None:
        breaker = passage.breaker
        match outcome:
            case Failed():
                report = BreakerReport(breaker.name, claim.job_id, succeeded=False, retry_after=outcome.retry_after)
            case Crashed():
                report = BreakerReport(breaker.name, claim.job_id, succeeded=False)
            case Done() if passage.is_trial:
                report = BreakerReport(breaker.name, claim.job_id, succeeded=True)
            case _:
                return
        self._news.add([(breaker, report)])

    async def _release(self, keys: list[str]) -> None:
        try:
            await self._keeper.give_back({(key, SLOTS) for key in keys})
        except Exception as error:  # noqa: BLE001 - waiting jobs check again by themselves
            self._trouble("release gates", error)

    async def _report(self, news: list[tuple[BreakerCheck, BreakerReport]]) -> None:
        before: dict[str, BreakerView] = {}
        note = note_reports(news)

        def decide(now: datetime, views: Mapping[str, BreakerView]) -> list[BreakerView]:
            before.update(views)
            return note(now, views)

        try:
            changed = await self._store.report_breakers({report.name for _, report in news}, decide)
        except StoreError as error:  # a breaker that misses a failure opens a little later
            self._trouble("report to breakers", error)
        except Exception as error:  # noqa: BLE001 - an error for one breaker must not stop the reports to others
            if len(news) == 1:
                self._trouble("report to breakers", error)
                return
            for one in news:
                await self._report([one])
        else:
            self.emit_changes(before, changed)

    def _trouble(self, what: str, error: Exception) -> None:
        self._emitter.emit(StoreTrouble(what, f"{type(error).__name__}: {error}", 0.0))
