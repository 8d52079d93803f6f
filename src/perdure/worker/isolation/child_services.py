"""The services of a handler in an isolated process: the parent, which has the store, executes every call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol, cast

import msgspec

from perdure.clock import SystemClock
from perdure.domain.gate import BreakerReport, GateRequest
from perdure.domain.jobs.job import Claim
from perdure.events import Emitter, Event
from perdure.flows.journal import Journal
from perdure.flows.recorder import Recorder
from perdure.flows.step_gates import Passing, StepGate, gate_before
from perdure.hooks.hooks import Hooks
from perdure.kinds.kind import Kind
from perdure.lifecycle.bridges.from_thread import result_of
from perdure.lifecycle.bridges.portal import Portal
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import Triage
from perdure.storage.port import Store
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.database_time import database_time
from perdure.worker.attempt.log_lines import AttemptLines, LineKeeper
from perdure.worker.attempt.spending import Expense, budget_for
from perdure.worker.isolation.store_calls import RELAYED, answer_of, call_of
from perdure.worker.isolation.wire import (
    Notice,
    Report,
    checkpoint_of,
    event_of,
    expense_of,
    gate_news_of,
    gate_of,
    store_call_of,
)


class Asks(Protocol):
    """Requests to the parent."""

    def ask(self, request: Report) -> Future[Notice]:
        """Ask the parent to store or find something; its answer arrives later."""


class RelayedCheckpoints:
    """Checkpoints, stored by the parent."""

    def __init__(self, line: Asks) -> None:
        self._line = line

    async def keep(self, claim: Claim, cursor: str | None) -> bool:
        """Durable when it returns."""
        del claim  # the parent knows
        return (await asyncio.wrap_future(self._line.ask(checkpoint_of(cursor)))).kept is True

    def keep_from_thread(self, claim: Claim, cursor: str | None) -> bool:
        """The same, for a handler that blocks."""
        del claim
        return result_of(self._line.ask(checkpoint_of(cursor))).kept is True


class RelayedSpending:
    """Spending, recorded by the parent."""

    def __init__(self, line: Asks, kind: Kind) -> None:
        self._line = line
        self._kind = kind

    async def spend(self, claim: Claim, expense: Expense) -> bool:
        """Recorded when it returns."""
        del claim  # the parent knows
        return (await asyncio.wrap_future(self._ask(expense))).kept is True

    def spend_from_thread(self, claim: Claim, expense: Expense) -> bool:
        """The same, for a handler that blocks."""
        del claim
        return result_of(self._ask(expense)).kept is True

    def _ask(self, expense: Expense) -> Future[Notice]:
        budget_for(self._kind, expense)  # refused here, where the handler sees it
        return self._line.ask(expense_of(expense))


class RelayedGates:
    """The gates before steps, checked by the parent."""

    def __init__(self, line: Asks, kind: Kind) -> None:
        self._line = line
        self._kind = kind

    def open_gate(self, claim: Claim, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        """The gates before a step of this attempt."""
        return gate_before(self, self._kind, claim, key, gates, breaker)

    async def pass_step(self, request: GateRequest) -> Passing:
        """Let a step pass, or return the reason why it is held."""
        notice = await asyncio.wrap_future(self._line.ask(gate_of(request)))
        return msgspec.json.decode(notice.answer, type=Passing)

    async def note_step(self, request: GateRequest, report: BreakerReport) -> None:
        """Report to the breaker of a request how a try has ended."""
        await asyncio.wrap_future(self._line.ask(gate_news_of(request, report)))


class RelayedStore:
    """The store calls that the parent executes, each with all its arguments by position."""

    def __init__(self, line: Asks) -> None:
        self._line = line

    def __getattr__(self, name: str) -> Any:
        if name not in RELAYED:
            raise AttributeError(name)
        return partial(self._call, name)

    def ring(self, queues: object) -> None:
        """Do nothing: the parent wakes the workers when it has spawned the jobs."""

    async def _call(self, name: str, *arguments: Any) -> Any:
        request = store_call_of(call_of(name, arguments))
        return answer_of(name, (await asyncio.wrap_future(self._line.ask(request))).answer)


class RelayedFlows:
    """Opens the journal and the lines of the one attempt of this process.

    Async calls of a sync handler run on an event loop in a separate thread.
    """

    def __init__(self, line: Asks, keep_lines: int, hooks: Hooks) -> None:
        self._line = line
        self._hooks = hooks
        self._store = cast("Store", RelayedStore(line))
        self._keep_lines = keep_lines
        self._clock = SystemClock()
        self._emitter = Emitter()
        self._emitter.subscribe(self._emit)
        self._portal = Portal()

    def open_journal(
        self, claim: Claim, flag: StopFlag, *, started: float, triage: Triage | None, blocking: bool
    ) -> Journal:
        """The journal of this attempt."""

        async def make() -> Recorder:
            return Recorder(self._store, self._emitter, self._clock, _ignore_loss, hooks=self._hooks)

        recorder = self._portal.call(make()) if blocking else run_without_loop(make())
        chance = random.Random()  # noqa: S311 - jitter hides nothing
        return Journal(claim, recorder, flag, started=started, blocking=blocking, triage=triage, random=chance)

    def _emit(self, event: Event) -> None:
        self._line.ask(event_of(event))

    def open_lines(self, claim: Claim, *, started: float, blocking: bool) -> AttemptLines | None:
        """The lines of this attempt; None: no lines are stored."""
        if not self._keep_lines:
            return None

        async def make() -> LineKeeper:
            return LineKeeper(self._store, self._emitter, self._keep_lines)

        keeper = self._portal.call(make()) if blocking else run_without_loop(make())
        return AttemptLines(claim, keeper, partial(database_time, self._clock, claim, started), blocking=blocking)


def _ignore_loss(claim: Claim) -> None:
    """The handler gets an error, and the parent notices the loss itself."""
