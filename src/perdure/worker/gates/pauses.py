"""Knows which jobs operators have paused.

A queue that is paused as a whole is not claimed from, and its jobs stay ready. Jobs of a kind, or with certain
arguments, are only known once they are claimed: they are put on hold, at no cost, until the pause ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from perdure.domain.gate import Pause
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Gated
from perdure.domain.jobs.states import Reason
from perdure.events import Emitter, JobsPaused, JobsResumed
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.failures import MESSAGE_LIMIT, storable
from perdure.policy.limits.pausing import covers
from perdure.storage.gates import GateStore
from perdure.worker.gates.refusals import Refusals


class Pauses:
    """The pauses as of the last look."""

    def __init__(self) -> None:
        self.queues: frozenset[str] = frozenset()
        """Queues of which nothing is to be claimed."""
        self.rules: tuple[Pause, ...] = ()
        """The others, which are looked at claim by claim."""
        self.are_known = False

    def learn(self, pauses: list[Pause]) -> bool:
        """Take note of the pauses that hold now; whether one of those before has ended."""
        before = {pause.id for pause in self.rules}
        self.queues = frozenset(pause.queue for pause in pauses if pause.queue is not None and _is_whole_queue(pause))
        self.rules = tuple(pause for pause in pauses if not _is_whole_queue(pause))
        self.are_known = True
        return not before <= {pause.id for pause in self.rules}

    def holding(self, claim: Claim) -> Gated | None:
        """Why a claim must not run; None: it may."""
        for pause in self.rules:
            wait = None if pause.until is None else pause.until - claim.claimed_at
            if (wait is None or wait > timedelta(0)) and covers(pause, claim.queue, claim.kind, claim.args):
                note = f"pause {pause.id}: {pause.why or f'by {pause.actor}'}"
                return Gated(Reason.ON_HOLD.value, storable(note, MESSAGE_LIMIT), wait)
        return None


class PauseStage:
    """Lets claims through to `start` that no pause holds, and sends the others back."""

    def __init__(self, pauses: Pauses, refusals: Refusals, start: Callable[[Sequence[Claim]], None]) -> None:
        self._pauses = pauses
        self._refusals = refusals
        self._start = start

    def start(self, claims: Sequence[Claim]) -> None:
        """Check each claim, if there are pauses that need it."""
        if self._pauses.rules:
            claims = [claim for claim in claims if not self._holds(claim)]
        self._start(claims)

    def _holds(self, claim: Claim) -> bool:
        why = self._pauses.holding(claim)
        if why is not None:
            self._refusals.send_back(claim, why)
        return why is not None


class Pauser(Loop[int]):
    """Checks every second. `on_change`: queues may be claimed from again; `on_end`: jobs on hold may resume."""

    name = "pauser"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: GateStore,
        emitter: Emitter,
        pauses: Pauses,
        on_change: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._pauses = pauses
        self._on_change = on_change
        self._on_end = on_end
        self._told: dict[str, Pause] = {}

    async def tick(self) -> int:
        """Take note of all pauses; how many there are."""
        found = await self._store.pauses()
        self._tell(found)
        queues, were_known = self._pauses.queues, self._pauses.are_known
        if self._pauses.learn(found):
            self._on_end()
        if queues != self._pauses.queues or not were_known:
            self._on_change()
        return len(found)

    def _tell(self, found: list[Pause]) -> None:
        now = {pause.id: pause for pause in found}
        for pause in found:
            if pause.id not in self._told:
                until = None if pause.until is None else pause.until.isoformat(timespec="seconds")
                told = (pause.id, pause.queue, pause.kind, pause.args, until, pause.actor, pause.why or "")
                self.emitter.emit(JobsPaused(*told))
        for pause in self._told.values():
            if pause.id not in now:
                self.emitter.emit(JobsResumed(pause.id, pause.queue, pause.kind))
        self._told = now


def _is_whole_queue(pause: Pause) -> bool:
    return pause.queue is not None and pause.kind is None and pause.args is None
