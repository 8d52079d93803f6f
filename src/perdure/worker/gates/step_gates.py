"""Checks the gates for the steps of one worker's attempts.

Requests of steps are batched: the first two are sent at once, and those that arrive meanwhile are sent together. While
the database is unreachable the handler waits.
"""

from __future__ import annotations

import asyncio
from typing import Final

from perdure.domain.gate import BreakerReport, GateRequest
from perdure.flows.recorder import Recorder
from perdure.flows.step_gates import Passing
from perdure.storage.port import Store
from perdure.worker.gates.look import GateLook
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.reports import GateReports
from perdure.worker.recording.collector import Collector

_REQUESTS_PER_CALL: Final = 500
_CALLS_AT_ONCE: Final = 2

_Asked = tuple[GateRequest, asyncio.Future[Passing]]


class StoredStepGates:
    """The gates of the fleet, for steps."""

    def __init__(self, recorder: Recorder, near: NearLimits, reports: GateReports | None) -> None:
        self._recorder = recorder
        self._near = near
        self._reports = reports
        self._asking: Collector[_Asked] = Collector(self._ask, _REQUESTS_PER_CALL, _CALLS_AT_ONCE)
        self._waiting: set[asyncio.Future[Passing]] = set()

    async def pass_step(self, request: GateRequest) -> Passing:
        """Let a step pass, or return the reason why it is held."""
        answer: asyncio.Future[Passing] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        self._asking.add([(request, answer)])
        try:
            return await answer
        finally:
            self._waiting.discard(answer)

    async def note_step(self, request: GateRequest, report: BreakerReport) -> None:
        """Report soon to the breaker of a request how a try has ended."""
        if request.breaker is not None and self._reports is not None:
            self._reports.note(request.breaker, report)

    async def close(self) -> None:
        """Drop open requests: the attempts that wait for them were abandoned."""
        for answer in list(self._waiting):
            answer.cancel()
        await self._asking.close()

    async def _ask(self, batch: list[_Asked]) -> None:
        try:
            passings = await self._recorder.ask("step gates", lambda store: self._pass(store, batch))
        except Exception as error:  # noqa: BLE001 - it is raised where the step was taken
            if len(batch) > 1:
                for one in batch:  # a bad one must not fail the others
                    await self._ask([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, answer), passing in zip(batch, passings, strict=True):
            if not answer.done():
                answer.set_result(passing)

    async def _pass(self, store: Store, batch: list[_Asked]) -> list[Passing]:
        requests = [request for request, _ in batch]
        look = GateLook(requests)
        answers = await store.pass_gates(requests, look.decide)
        self._near.warn(look.changes.warnings)
        if look.state is not None and self._reports is not None:
            self._reports.emit_changes(look.state.breakers, look.changes.breakers)
        return [
            Passing(
                held,
                held is None and request.breaker is not None and look.is_trial(request.breaker.name, request.claim),
            )
            for request, held in zip(requests, answers, strict=True)
        ]
