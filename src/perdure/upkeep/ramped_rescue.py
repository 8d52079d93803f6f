"""Brings the jobs of dead workers back one by one, if a queue asks for that (C2).

They come in rounds. A round takes the first orphans of a queue, those with a checkpoint before the others and the
longest held first, and parks each until its own time on the ramp; the promoter of any running worker does the rest. The
others stay orphans until the last of the round is due, by the database's clock.

The lead makes it one ramp for the whole fleet. It is held only while a round is written: from then on the parked jobs
themselves show every process that a round is in progress. If two processes lead at once after all, each orphan is still
written once, because its token fences every write.

An operator may reschedule such a job to next week, which must not hold up the others: a return time beyond any ramp is
ignored, and then a process relies on what it knows itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.errors import StoreError
from perdure.events import Emitter, OrphansReturning, OrphansWaiting
from perdure.policy.decide import return_later
from perdure.policy.opening import Opening
from perdure.storage.port import Store

LEAD: Final = "opening"
_LEAD_LEASE: Final = timedelta(seconds=15)
_MOVES_PER_CALL: Final = 500

Openings = Callable[[str], Opening | None]
Write = Callable[[list[Transition]], Awaitable[list[Transition]]]


class RampedRescue:
    """Collects the orphans of one sweep that return by a ramp, and begins the rounds that may begin."""

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        openings: Openings,
        holder: str,
        rounds: dict[str, datetime],
        write: Write,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._openings = openings
        self._holder = holder
        self._rounds = rounds  # when each queue's round is over, as far as this process knows
        self._write = write
        self._lines: dict[str, _Round] = {}

    async def gather(self, moves: Iterable[Transition]) -> list[Transition]:
        """Keep the crashes that return by a ramp; returns the others, to be written at once."""
        at_once = []
        for move in moves:
            opening = None if move.to is JobState.DEAD else self._openings(move.claim.queue)
            if opening is None:
                at_once.append(move)
            else:
                (await self._line(move.claim.queue, opening)).moves.append(move)
        for line in self._lines.values():
            line.shorten()
        return at_once

    async def let_in(self) -> None:
        """Begin a round in each queue that has orphans and no round in progress, unless another process does."""
        lines = {queue: line for queue, line in self._lines.items() if line.moves}
        if not lines or not (await self._store.lead(LEAD, self._holder, _LEAD_LEASE)).is_ours:
            return
        try:
            for queue, line in lines.items():
                if not await self._is_under_way(queue, line.opening):  # another process may have begun one since
                    await self._begin_round(queue, line)
        finally:
            with suppress(StoreError):  # it lapses by itself
                await self._store.step_down(LEAD, self._holder)

    async def _begin_round(self, queue: str, line: _Round) -> None:
        waits = line.opening.waits(len(line.moves))
        self._rounds[queue] = await self._store.now() + waits[-1]
        moves = [return_later(move, wait) for move, wait in zip(line.moves, waits, strict=True)]
        written: list[Transition] = []
        for begin in range(0, len(moves), _MOVES_PER_CALL):
            written += await self._write(moves[begin : begin + _MOVES_PER_CALL])
        if written:
            over = waits[-1].total_seconds()
            with_checkpoint = sum(move.claim.cursor is not None for move in written)
            self._emitter.emit(OrphansReturning(queue, len(written), with_checkpoint, over))
            if line.has_more:
                self._emitter.emit(OrphansWaiting(queue, over))

    async def _line(self, queue: str, opening: Opening) -> _Round:
        if queue not in self._lines:
            self._lines[queue] = _Round(opening, is_closed=await self._is_under_way(queue, opening))
        return self._lines[queue]

    async def _is_under_way(self, queue: str, opening: Opening) -> bool:
        """Whether jobs of an earlier round are still to come back."""
        last, now = await self._store.last_return(queue), await self._store.now()
        if last is None or last <= now:
            return False
        if last > now + opening.longest:
            last = self._rounds.setdefault(queue, now + opening.longest)
        return last > now


class _Round:
    """The orphans of one queue, as many as one round can take; none while it is closed."""

    def __init__(self, opening: Opening, *, is_closed: bool) -> None:
        self.opening = opening
        self.moves: list[Transition] = []
        self.has_more = False
        self._most = 0 if is_closed else opening.at_most

    def shorten(self) -> None:
        """Keep the first ones of those that stand in line."""
        self.moves.sort(key=_rank)
        self.has_more = self.has_more or len(self.moves) > self._most
        del self.moves[self._most :]


def _rank(move: Transition) -> tuple[bool, datetime, JobId]:
    return move.claim.cursor is None, move.claim.claimed_at, move.claim.job_id
