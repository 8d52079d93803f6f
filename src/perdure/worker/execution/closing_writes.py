"""The last writes of an attempt, before its end is recorded and while it holds its claim."""

from __future__ import annotations

from perdure.domain.jobs.outcome import Outcome
from perdure.flows.recorder import Recorder
from perdure.worker.attempt.context.context import Context
from perdure.worker.attempt.running import Running
from perdure.worker.execution.decider import Decider
from perdure.worker.settings import WorkerSettings


class ClosingWrites:
    """Ends the handler's transaction, if it has one, and writes its last progress and log lines."""

    def __init__(self, recorder: Recorder, decider: Decider, settings: WorkerSettings) -> None:
        self._recorder = recorder
        self._decider = decider
        self._audit = settings.audit

    async def write(self, running: Running, context: Context, outcome: Outcome | None) -> Outcome | None:
        """Write, and return the outcome that is still to be recorded; None: the handler's transaction recorded it."""
        if context.effects is not None:
            outcome = await context.effects.end(outcome, lambda done: self._decider.decide(running, done), self._audit)
            if context.effects.answer is not None:
                return outcome
        if context.opened is not None and context.opened.has_new_progress:
            await context.opened.reach(self._recorder.show_now())
        if context.lines is not None:
            await context.lines.write_rest()
        return outcome
