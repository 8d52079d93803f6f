"""Counts how attempts end, and writes the counts every few seconds.

Every job is counted, so counting only appends to lists; they become a histogram when they are written, or when they
grow long. The database's clock decides to which minute an attempt belongs: once a minute it is taken from the claim of
an attempt that has just ended, and this machine's monotonic clock measures when that minute is over.

A flush has a number. If it fails it is retried unchanged, and an engine that has stored it already adds nothing: so a
commit whose answer was lost is not counted twice. Later counts wait, by minute, up to a limit: then the oldest minutes
are dropped, and reported. A process that dies loses its counts since the last flush.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from perdure.clock import Clock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.statistics import OTHER, Ending
from perdure.events import Emitter, StatisticsDropped
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.operate.statistics import MINUTE, Counted, Flush, StatisticStore
from perdure.worker.recording.cell import Cell
from perdure.worker.recording.totals import AttemptTotals, Pair

PAIRS_LIMIT: Final = 1_000
"""The most pairs of queue and kind that a worker counts separately; further ones count as the kind `other`."""
TIMES_KEPT: Final = 20_000
"""The most counts that wait while the database is away."""
_TIMES_BEFORE_FOLDING: Final = 4_096  # times kept as a list before they go into a histogram

Ended = tuple[Transition, float | None, float]
"""How an attempt ended, and when it began and ended by the monotonic clock; None: a claim that was not started."""

_Cells = dict[Ending, dict[Pair, Cell]]

_SUCCEEDED: Final = JobState.SUCCEEDED  # members of an enum are slow to look up, and each attempt needs this one
_BY_STATE: Final = {
    JobState.SUCCEEDED: Ending.SUCCEEDED,
    JobState.DEAD: Ending.DIED,
    JobState.CANCELLED: Ending.CANCELLED,
}
_BY_REASON: Final = {
    Reason.FAILED: Ending.RETRIED,
    Reason.TIMED_OUT: Ending.RETRIED,
    Reason.CRASHED: Ending.CRASHED,
    Reason.RELEASED: None,  # not counted, as if it had never been claimed
}


def ending_of(move: Transition) -> Ending | None:
    """The ending that this transition counts as; None: it is not counted."""
    return _BY_STATE.get(move.to) or _BY_REASON.get(move.reason, Ending.HELD)


class AttemptCounts:
    """The counts that are not written yet. Only the worker's event loop uses them."""

    def __init__(self, clock: Clock, most_pairs: int = PAIRS_LIMIT, most_kept: int = TIMES_KEPT) -> None:
        self._clock = clock
        self._most_pairs = most_pairs
        self._most_kept = most_kept
        self._pairs: set[Pair] = set()
        self._cells = _no_cells()
        self._succeeded = self._cells[Ending.SUCCEEDED]
        self._kind: str | None = None  # of the last success, whose cell is kept at hand: the next is likely alike
        self._queue: str | None = None
        self._cell_of_last = Cell()
        self._waits, self._runs = self._cell_of_last.new_waits, self._cell_of_last.new_runs
        self._minute: datetime | None = None
        self._minute_ends = float("-inf")
        self._past: dict[datetime, _Cells] = {}
        self._totals = AttemptTotals()
        self.dropped = 0

    def succeeded(self, claim: Claim, started: float, ended: float) -> None:
        """Count a success: the fast path, because nearly all attempts succeed."""
        if ended >= self._minute_ends:
            self._begin_minute(claim.claimed_at + timedelta(seconds=ended - started), ended)
        if claim.kind != self._kind or claim.queue != self._queue:
            self._keep_at_hand(claim)
        if claim.is_fresh:
            self._waits.append(claim.claimed_at - claim.since)
        elif claim.due_at is not None:
            self._waits.append(claim.claimed_at - claim.due_at)
        runs = self._runs
        runs.append(ended - started)
        if len(runs) >= _TIMES_BEFORE_FOLDING:
            self._cell_of_last.fold()

    def ended(self, move: Transition, started: float, ended: float) -> None:
        """Count an attempt that ran from `started` to `ended`, by the monotonic clock, and how it ended."""
        ending, claim = ending_of(move), move.claim
        if ending is Ending.SUCCEEDED:
            self.succeeded(claim, started, ended)
        elif ending is not None:
            if ended >= self._minute_ends:
                self._begin_minute(claim.claimed_at + timedelta(seconds=ended - started), ended)
            cell = self._cell(claim, ending)
            if (waited := claim.waited) is not None:
                cell.new_waits.append(waited)
            if ending is Ending.HELD:
                cell.jobs += 1
                self._totals.hold(self._pair(claim), move.reason)
            else:
                cell.new_runs.append(ended - started)
            if len(cell.new_waits) + len(cell.new_runs) >= _TIMES_BEFORE_FOLDING:
                cell.fold()

    def recorded(self, ended: Iterable[Ended], stale: Collection[Claim]) -> None:
        """Count attempts whose records were written; those with these claims changed nothing."""
        lost = {(claim.job_id, claim.token) for claim in stale}
        for move, began, at in ended:
            if began is None or (lost and (move.claim.job_id, move.claim.token) in lost):
                continue
            if move.to is _SUCCEEDED:  # nearly all of them
                self.succeeded(move.claim, began, at)
            else:
                self.ended(move, began, at)

    def sent_back(self, move: Transition, now: datetime | None = None) -> None:
        """Count a claim that was not started here; `now` by the database's clock, None: it was claimed just now."""
        ending, claim = ending_of(move), move.claim
        if ending is not None:
            seconds = self._clock.monotonic()
            if seconds >= self._minute_ends:
                self._begin_minute(now or claim.claimed_at, seconds)
            self._cell(claim, ending).jobs += 1
            if ending is Ending.HELD:
                self._totals.hold(self._pair(claim), move.reason)

    def totals(self) -> AttemptTotals:
        """All counts since the start, written or not; they keep growing, so read them at once."""
        self._put_by()
        return self._totals

    def take(self) -> tuple[Counted, ...]:
        """The counts since the last call."""
        self._put_by()
        past, self._past = self._past, {}
        return tuple(
            _counted(minute, pair, ending, cell)
            for minute, cells in sorted(past.items())
            for ending, found in cells.items()
            for pair, cell in sorted(found.items())
        )

    def limit(self) -> int:
        """Drop the oldest minutes beyond the limit; returns the number of dropped counts."""
        dropped = 0
        self._put_by()
        while len(self._past) > 1 and sum(map(_size, self._past.values())) > self._most_kept:
            dropped += _size(self._past.pop(min(self._past)))
        self.dropped += dropped
        return dropped

    def _keep_at_hand(self, claim: Claim) -> None:
        cell = self._succeeded.get((claim.queue, claim.kind)) or self._cell(claim, Ending.SUCCEEDED)
        self._queue, self._kind, self._cell_of_last = claim.queue, claim.kind, cell
        self._waits, self._runs = cell.new_waits, cell.new_runs

    def _cell(self, claim: Claim, ending: Ending) -> Cell:
        """The cell of a claim, or the cell `other` if there are too many cells."""
        pair = self._pair(claim)
        cells = self._cells[ending]
        if pair not in cells:
            cells[pair] = Cell()
        return cells[pair]

    def _pair(self, claim: Claim) -> Pair:
        pair = claim.queue, claim.kind
        if pair not in self._pairs:
            if len(self._pairs) >= self._most_pairs:
                return claim.queue, OTHER
            self._pairs.add(pair)
        return pair

    def _begin_minute(self, now: datetime, seconds: float) -> None:
        """Begin the minute of `now`, which is `seconds` by the monotonic clock."""
        self._put_by()
        self._minute = now.replace(second=0, microsecond=0)
        self._minute_ends = seconds + (self._minute + MINUTE - now).total_seconds()

    def _put_by(self) -> None:
        """Move the current counts to those of earlier minutes."""
        if self._minute is None or not any(self._cells.values()):
            return
        cells, self._cells = self._cells, _no_cells()
        self._succeeded = self._cells[Ending.SUCCEEDED]
        self._queue = self._kind = None
        kept = self._past.setdefault(self._minute, _no_cells())
        for ending, found in cells.items():
            for pair, cell in found.items():
                cell.fold()
                kept[ending].setdefault(pair, Cell()).add(cell)
                cell.add_times_to(self._totals.add(pair, ending, cell.jobs))


class StatisticsWriter(Loop[int]):
    """Writes the counts; as every loop, it retries through database outages."""

    name = "statistics"
    interval = timedelta(seconds=3)

    def __init__(self, store: StatisticStore, emitter: Emitter, counts: AttemptCounts, interval: timedelta) -> None:
        super().__init__(emitter)
        self.interval = interval
        self._store = store
        self._counts = counts
        self._writer = uuid4().hex
        self._number = 0
        self._under_way: Flush | None = None

    async def tick(self) -> int:
        """Write the counts; returns the number of rows."""
        written = 0
        while flush := self._next():
            await self._store.add_statistics(flush)
            self._under_way = None
            written += len(flush.counts)
        return written

    def _next(self) -> Flush | None:
        if self._under_way is not None:  # it failed, or its answer was lost
            if dropped := self._counts.limit():
                self.emitter.emit(StatisticsDropped(dropped))
            return self._under_way
        counts = self._counts.take()
        if counts:
            self._number += 1
            self._under_way = Flush(self._writer, self._number, counts)
        return self._under_way


def _no_cells() -> _Cells:
    return {ending: {} for ending in Ending}


def _size(cells: _Cells) -> int:
    return sum(map(len, cells.values()))


def _counted(minute: datetime, pair: Pair, ending: Ending, cell: Cell) -> Counted:
    queue, kind = pair
    return Counted(
        minute=minute,
        queue=queue,
        kind=kind,
        ending=ending,
        jobs=cell.jobs,
        waited=cell.waited,
        ran=cell.ran,
        waits=cell.waits,
        runs=cell.runs,
    )
