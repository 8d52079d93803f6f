"""Knows which jobs operators have paused.

A worker does not claim from a paused queue, and its jobs stay ready. If a kind or certain arguments are paused, the
worker finds out after the claim: such a job is put on hold, at no cost, until the pause ends.
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
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, storable
from perdure.policy.limits.gate_record import let_go
from perdure.policy.limits.pausing import covers, note_of
from perdure.storage.gates import GateStore
from perdure.worker.gates.refusals import Refusals


class Pauses:
    """The current pauses, as of the last tick."""

    def __init__(self) -> None:
        self.queues: frozenset[str] = frozenset()
        """Paused queues: the worker does not claim from them."""
        self.rules: tuple[Pause, ...] = ()
        """All other pauses, which are checked for each claim."""
        self.are_known = False

    def learn(self, pauses: list[Pause]) -> bool:
        """Store the current pauses; returns whether an earlier one has ended."""
        before = {pause.id for pause in self.rules}
        self.queues = frozenset(pause.queue for pause in pauses if pause.queue is not None and _is_whole_queue(pause))
        self.rules = tuple(pause for pause in pauses if not _is_whole_queue(pause))
        self.are_known = True
        return not before <= {pause.id for pause in self.rules}

    def holding(self, claim: Claim) -> Gated | None:
        """The pause that holds this claim; None: it may run."""
        for pause in self.rules:
            wait = None if pause.until is None else pause.until - claim.claimed_at
            if (wait is None or wait > timedelta(0)) and covers(pause, claim.queue, claim.kind, claim.args):
                return Gated(Reason.ON_HOLD.value, storable(note_of(pause), MESSAGE_LIMIT_CHARACTERS), wait)
        return None


class PauseStage:
    """Passes claims on to `start` unless a pause holds them; sends the others back."""

    def __init__(self, pauses: Pauses, refusals: Refusals, start: Callable[[Sequence[Claim]], None]) -> None:
        self._pauses = pauses
        self._refusals = refusals
        self._start = start

    def start(self, claims: Sequence[Claim]) -> None:
        """Check each claim, if any pause concerns single claims."""
        if self._pauses.rules:
            claims = [claim for claim in claims if not self._holds(claim)]
        self._start(claims)

    def _holds(self, claim: Claim) -> bool:
        why = self._pauses.holding(claim)
        if why is not None:
            self._refusals.send_back(let_go(claim), why)
        return why is not None


class Pauser(Loop[int]):
    """Checks every second. `on_change`: queues may be claimed from again; `on_end`: jobs on hold may resume.

    After the end of a pause `on_end` is called in the next tick as well: a claim that met the pause before this worker
    learned of its end may be put on hold only now.
    """

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
        self._reported: dict[str, Pause] = {}
        self._had_ended = False

    async def tick(self) -> int:
        """Read all pauses; returns their number."""
        found = await self._store.pauses()
        self._emit_changes(found)
        queues, were_known = self._pauses.queues, self._pauses.are_known
        has_ended = self._pauses.learn(found)
        if has_ended or self._had_ended:
            self._on_end()
        self._had_ended = has_ended
        if queues != self._pauses.queues or not were_known:
            self._on_change()
        return len(found)

    def _emit_changes(self, found: list[Pause]) -> None:
        now = {pause.id: pause for pause in found}
        for pause in found:
            if pause.id not in self._reported:
                until = None if pause.until is None else pause.until.isoformat(timespec="seconds")
                fields = (pause.id, pause.queue, pause.kind, pause.args, until, pause.actor, pause.why or "")
                self.emitter.emit(JobsPaused(*fields))
        for pause in self._reported.values():
            if pause.id not in now:
                self.emitter.emit(JobsResumed(pause.id, pause.queue, pause.kind))
        self._reported = now


def _is_whole_queue(pause: Pause) -> bool:
    return pause.queue is not None and pause.kind is None and pause.args is None
