"""The services of a worker's attempts, backed by its store: steps, checkpoints, spending, gates of steps, log lines."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from perdure.domain.jobs.job import Claim
from perdure.flows.journal import Journal
from perdure.flows.recorder import Recorder
from perdure.flows.step_gates import StepGate, gate_before
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import Triage
from perdure.worker.attempt.checkpoints import StoredCheckpoints
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.database_time import database_time
from perdure.worker.attempt.log_lines import AttemptLines, LineKeeper
from perdure.worker.attempt.services import Services
from perdure.worker.attempt.spending import StoredSpending
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.reports import GateReports
from perdure.worker.gates.step_gates import StoredStepGates
from perdure.worker.surroundings import Surroundings


class StoredServices:
    """Makes the services of all attempts of one worker. `on_lost` is called when a claim turns out to be lost."""

    def __init__(
        self,
        around: Surroundings,
        *,
        near: NearLimits,
        reports: GateReports,
        on_lost: Callable[[Claim], None],
        chance: random.Random,
    ) -> None:
        store, emitter, settings = around.store, around.emitter, around.settings
        self._kinds = around.kinds
        self._clock = around.clock
        self._random = chance
        self.checkpoints = StoredCheckpoints(store, emitter, on_lost, settings.outage)
        self.spending = StoredSpending(store, around.kinds, emitter, near, on_lost, settings.outage)
        self.recorder = Recorder(store, emitter, around.clock, on_lost, settings.outage, around.hooks)
        self.step_gates = StoredStepGates(self.recorder, near, reports)
        self._lines = LineKeeper(store, emitter, settings.keep_lines) if settings.keep_lines else None
        self.services = Services(
            effects=store,
            checkpoints=self.checkpoints,
            spending=self.spending,
            open_journal=self._open_journal,
            open_lines=self._open_lines,
            open_gate=self._open_gate,
            hooks=around.hooks,
        )

    async def close(self) -> None:
        """Drop what is in progress."""
        await self.step_gates.close()
        await self.recorder.close()
        if self._lines is not None:
            await self._lines.close()

    def _open_journal(
        self, claim: Claim, flag: StopFlag, *, started: float, triage: Triage | None, blocking: bool
    ) -> Journal:
        return Journal(
            claim, self.recorder, flag, started=started, blocking=blocking, triage=triage, random=self._random
        )

    def _open_lines(self, claim: Claim, *, started: float, blocking: bool) -> AttemptLines | None:
        if self._lines is None:
            return None
        return AttemptLines(claim, self._lines, partial(database_time, self._clock, claim, started), blocking=blocking)

    def _open_gate(self, claim: Claim, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        return gate_before(self.step_gates, self._kinds[claim.kind], claim, key, gates, breaker)
