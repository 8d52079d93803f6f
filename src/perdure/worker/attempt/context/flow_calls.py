"""The part of the context whose calls are stored: finished work is not repeated, and a wait occupies no worker.

Each call is a coroutine over the attempt's journal (`perdure.flows`). An async handler gets it as an `Answer` to be
awaited; for a sync handler it runs at once, and the call returns the value itself: `SyncContext` declares that for type
checkers.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, cast, overload

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.approval import Approval, approval_event
from perdure.domain.gate import BudgetCheck
from perdure.domain.jobs.ids import JobId
from perdure.errors import ArgumentError, ConflictError
from perdure.flows import polling, waiting
from perdure.flows.calling import Calling
from perdure.flows.journal import NOTE_LIMIT_CHARACTERS, Journal
from perdure.flows.step_gates import StepGate
from perdure.flows.steps import take_step
from perdure.flows.throttle import throttle
from perdure.hooks.tracing import CallKind
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.policy.failures import storable
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import RetrySource, checked_retry
from perdure.worker.attempt.context.answers import Answer
from perdure.worker.attempt.effects import AttemptEffects
from perdure.worker.attempt.log_lines import AttemptLines

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class FlowCalls:
    """Calls of a handler whose results are stored for the next attempt."""

    __slots__ = ("_blocking", "effects", "lines", "opened", "step_budgets")

    _blocking: bool
    opened: Journal | None  # the journal, once the handler has done something that is kept
    effects: AttemptEffects | None
    step_budgets: dict[str, BudgetCheck] | None  # by name, once a step has one before it
    lines: AttemptLines | None  # once the handler has logged something, or has a transaction

    @property
    def job_id(self) -> JobId:
        """The job's id."""
        raise NotImplementedError

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Answer[T]: ...
    @overload
    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Answer[T]: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*Ts], Awaitable[T]],
        /,
        *args: *Ts,
        optional: Literal[False] = False,
        retry: RetrySource | None = None,
        timeout: Duration | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> Answer[T]: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*Ts], T],
        /,
        *args: *Ts,
        optional: Literal[False] = False,
        retry: RetrySource | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> Answer[T]: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*Ts], Awaitable[T]],
        /,
        *args: *Ts,
        optional: bool,
        retry: RetrySource | None = None,
        timeout: Duration | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> Answer[T | None]: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*Ts], T],
        /,
        *args: *Ts,
        optional: bool,
        retry: RetrySource | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> Answer[T | None]: ...
    def step(  # type: ignore[misc] # mypy does not see that *args: Any takes *Ts
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        optional: bool = False,
        retry: RetrySource | None = None,
        timeout: Duration | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
        **kwargs: Any,
    ) -> Answer[Any]:
        """Call a function once: its result is stored before this returns, and returned by every later attempt.

        `await ctx.step("fetch", fetch, url)` in an async handler, without `await` in a sync one. The function may be
        async or plain. Its result, up to 1 MiB as JSON, comes back as the type in the function's annotation. A repeated
        name is numbered in the order of calls: `fetch`, `fetch#2`.

        `retry` is the step's own policy: its tries use no attempt of the job, and long waits between them occupy no
        worker. After the last try the error is raised here. With `optional` the step returns None instead,
        `ctx.step_error(name)` says why, and the job ends "done with warnings". `timeout` limits each try of an async
        function. `gates` (Rates and Budgets) and `breaker` stand before each try: while they are closed the job is
        parked at no cost, and comes back by itself. If the function itself has a parameter of one of these names, pass
        it with `functools.partial`.

        After `ctx.transaction()` was opened, the result is stored in that transaction: it commits with the handler's
        writes and the acknowledgement, or not at all, and then the step runs again. Such a step has one try.
        """
        if self.effects is not None and (optional or retry is not None or gates or breaker is not None):
            raise ConflictError(
                "ctx.step() with retry, optional or gates after ctx.transaction(): what fails or waits there undoes the"
                " transaction; do it first"
            )
        journal = self.opened or self._open("ctx.step()")
        key = journal.key(name, "ctx.step")
        calling = Calling(key, function, args, kwargs, timeout)
        if retry is not None:
            checked_retry(f"retry of step {key!r}", retry)
        gate = None
        if gates or breaker is not None:
            gate = self._new_gate(key, gates, breaker)
            self.step_budgets = (self.step_budgets or {}) | {check.name: check for check in gate.budgets}
        step = take_step(journal, key, calling, optional=optional, retry=retry, gate=gate)
        return self._answer("ctx.step()", step)

    def step_error(self, name: str) -> str | None:
        """The error of an optional step that failed, such as "OSError: no such host"; None: it has succeeded.

        It is stored with the step, so a later attempt gets the same text. Never awaited. A repeated name has its
        number: `fetch#2`. Raises an error for a step that this attempt has not reached yet.
        """
        return self.journal.error_of(name)

    def warn(self, text: str) -> None:
        """Make the job end "done with warnings": the text is stored beside its result. Never awaited.

        It counts if this attempt succeeds. Inside the function of a step it is refused, because a completed step does
        not run again.
        """
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError("text", f"of a warning must not be empty, got {text!r}")
        journal = self.opened or self._open("ctx.warn()")
        journal.refuse_inside("ctx.warn", "would not say it again: return it from the step, and warn after that")
        journal.warn(f"said {text}", storable(text, NOTE_LIMIT_CHARACTERS))

    def sleep(self, span: Duration) -> Answer[None]:
        """Continue after this time: `await ctx.sleep("10m")`. A long sleep occupies no worker and survives restarts."""
        wait = parse_duration("span", span)
        journal = self._journal_for("ctx.sleep()")
        return self._answer("ctx.sleep()", waiting.sleep(journal, journal.key("sleep", "ctx.sleep"), wait))

    @overload
    def wait_for(self, event: str, timeout: Duration | None = None) -> Answer[Any]: ...
    @overload
    def wait_for(self, event: str, timeout: Duration | None = None, *, as_type: type[T]) -> Answer[T]: ...
    def wait_for(self, event: str, timeout: Duration | None = None, *, as_type: type[Any] | None = None) -> Answer[Any]:
        """Wait until this event is emitted (`app.emit`), and return its payload, as a value of `as_type`.

        Returns at once if the event was emitted before. Raises EventTimeout if it does not arrive in time.
        """
        limit = None if timeout is None else parse_duration("timeout", timeout)
        journal = self._journal_for("ctx.wait_for()")
        key = journal.key(event, "ctx.wait_for", prefix="event:", field="event")
        return self._answer("ctx.wait_for()", waiting.wait_for(journal, key, event, limit, as_type))

    def approval(self, name: str, timeout: Duration | None = None) -> Answer[Approval]:
        """Wait until an operator has answered (`desk.answer`), and return the answer, which may be no.

        EventTimeout is raised if there is no answer in time.
        """
        limit = None if timeout is None else parse_duration("timeout", timeout)
        journal = self._journal_for("ctx.approval()")
        key = journal.key(name, "ctx.approval", prefix="approval:")
        event = approval_event(self.job_id, key.removeprefix("approval:"))
        return self._answer("ctx.approval()", waiting.wait_for(journal, key, event, limit, Approval))

    @overload
    def poll(
        self,
        name: str,
        function: Callable[[*Ts], Awaitable[T]],
        /,
        *args: *Ts,
        every: Backoff = ...,
        jitter: Jitter = ...,
        within: Duration = ...,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: Literal["round", "raise"] = "round",
    ) -> Answer[T]: ...
    @overload
    def poll(
        self,
        name: str,
        function: Callable[[*Ts], T],
        /,
        *args: *Ts,
        every: Backoff = ...,
        jitter: Jitter = ...,
        within: Duration = ...,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: Literal["round", "raise"] = "round",
    ) -> Answer[T]: ...
    def poll(  # type: ignore[misc] # as above
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        every: Backoff = polling.EVERY,
        jitter: Jitter = polling.JITTER,
        within: Duration = polling.DEFAULT_WITHIN,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: str = "round",
        **kwargs: Any,
    ) -> Answer[Any]:
        """Call a function repeatedly until it returns; its result is stored as by `step`.

        The function raises `Pending()` while there is no result, or `Pending("2m")` to set the next wait. Errors that
        the job's triage treats as temporary, and "busy" or "unreachable" errors of HTTP clients, mean the same; their
        Retry-After can only lengthen a wait. Any other error is raised here. The waits follow `every` with `jitter`;
        the last one of a round is clipped to `within`, and one last poll follows. Then the job rests for `rest` (the
        next wait of `every`), and a new round begins; with then="raise" PollTimeout is raised instead, as it is when
        `deadline` over all rounds has passed.
        """
        plan = polling.Plan(every, jitter, within, rest, deadline, then)
        journal = self._journal_for("ctx.poll()")
        key = journal.key(name, "ctx.poll")
        calling = Calling(key, function, args, kwargs, kind=CallKind.POLL)
        return self._answer("ctx.poll()", polling.poll(journal, key, calling, plan))

    def once_per(self, period: Duration, *, key: str) -> Answer[bool]:
        """Claim the right to act at most once per period, across the whole fleet.

        `if await ctx.once_per("1h", key=f"alert:{audit}"): …`. The first caller gets True; all others get False until
        the period ends. The key stays taken if this attempt fails later: the action happens once, or not at all.
        """
        asked = throttle(period, key)
        journal = self._journal_for("ctx.once_per()")
        return self._answer("ctx.once_per()", journal.ask("once per period", asked.ask))

    def progress(self, current: float, total: float | None = None, note: str | None = None) -> None:
        """Report progress: `ctx.progress(3, 10, "pages")`. Never awaited, and cheap enough for any loop."""
        if not _is_number(current):
            raise ArgumentError("current", f"must be a number, got {current!r}")
        if total is not None and not _is_number(total):
            raise ArgumentError("total", f"must be a number or None, got {total!r}")
        if note is not None and not isinstance(note, str):
            raise ArgumentError("note", f"must be text or None, got {note!r}")
        journal = self.opened or self._open("ctx.progress()")
        journal.show(current, total, note)

    @property
    def journal(self) -> Journal:
        """The stored steps and waits of this job, for calls that build on them."""
        return self.opened or self._open("the journal of an attempt")

    def _journal_for(self, call: str) -> Journal:
        """The journal for a stored call; refused where a rollback would contradict it."""
        if self.effects is not None:
            raise ConflictError(
                f"{call} after ctx.transaction(): it would be kept even if the transaction is undone;"
                " do it first, or let the transaction be the record"
            )
        return self.opened or self._open(call)

    def _open(self, call: str) -> Journal:
        journal = self._new_journal()
        if journal is None:
            raise ConflictError(f"{call} needs a worker")
        journal.effects = self.effects
        self.opened = journal
        return journal

    def _new_journal(self) -> Journal | None:
        """A journal for this attempt; None: there is no worker to store it."""
        raise NotImplementedError

    def _new_gate(self, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        """The gates before a step; refused if there is no worker to check them."""
        raise NotImplementedError

    def _answer(self, call: str, coroutine: Coroutine[Any, Any, T]) -> Answer[T]:
        """An answer to be awaited; in a sync handler the value itself."""
        if self._blocking:
            return cast("Answer[T]", run_without_loop(coroutine))
        return Answer(call, coming=coroutine)


def _is_number(value: object) -> bool:
    """Whether every database can store this number."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False
