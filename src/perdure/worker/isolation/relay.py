"""Executes the store calls that isolated attempts request."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from perdure.flows.recorder import Recorder
from perdure.flows.step_gates import StepGates
from perdure.storage.port import Store
from perdure.worker.attempt.running import Running
from perdure.worker.isolation.store_calls import arguments_of
from perdure.worker.isolation.wire import Notice, Report

_TRIED_ONCE: Final = frozenset({"save_lines", "save_progress"})  # best effort: not retried while the database is away


class Relay:
    """Calls the store, retries while it is unreachable, and emits the events of isolated attempts."""

    def __init__(self, recorder: Recorder, gates: StepGates, keep_lines: int) -> None:
        self.keep_lines = keep_lines
        self._recorder = recorder
        self._gates = gates

    def age_of(self, running: Running) -> float:
        """The seconds since this attempt was claimed."""
        return self._recorder.clock.monotonic() - running.started

    def trace_of(self, running: Running) -> dict[str, str] | None:
        """The trace context for the process of this attempt."""
        tracer = self._recorder.hooks.tracer
        return None if tracer is None else tracer.to_process(running.mark)

    async def answer(self, running: Running, report: Report) -> Notice:
        """Execute the requested store call, emit the event, or check the gates."""
        if report.is_event:
            self._recorder.emitter.emit(report.event())
            return Notice(kept=True)
        if report.is_stored:
            for queue, kind, jobs in report.stored():
                self._recorder.hooks.stored(queue, kind, jobs)
            return Notice(kept=True)
        if report.is_gate:
            return Notice(kept=True, answer=Raw(msgspec.json.encode(await self._gates.pass_step(report.gate()))))
        if report.is_gate_news:
            news = report.gate_news()
            await self._gates.note_step(news.request, news.report)
            return Notice(kept=True)
        call = report.call()
        arguments = arguments_of(call)
        running.spawned |= call.name == "spawn"  # before the outcome is known: a commit in doubt may have happened
        answer = await self._ask(call.name, arguments)
        if call.name == "spawn" and answer:
            self._recorder.store.ring({job.queue for job in arguments[1].children})
        return Notice(kept=True, answer=Raw(msgspec.json.encode(answer)))

    async def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        async def call(store: Store) -> Any:
            return await getattr(store, name)(*arguments)

        if name in _TRIED_ONCE:
            return await call(self._recorder.store)
        return await self._recorder.ask(name.replace("_", " "), call)
