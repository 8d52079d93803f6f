"""How the function of a step is called, from sync and async handlers.

An async function is awaited by an async handler, and runs on the worker's event loop for a sync one. A plain function
runs in the thread of a sync handler, and in a thread of its own for an async one, because it may block.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.domain.jobs.verdicts import Permanent, RetryAfter, Verdict
from perdure.errors import ArgumentError
from perdure.flows.journal import INSIDE, Journal
from perdure.hooks.tracing import CallKind
from perdure.kinds.kind import is_async
from perdure.policy.failures import failure_of
from perdure.policy.secrets.redaction import redact_failure


class Calling:
    """A function with its arguments, called once or repeatedly under the name of a step."""

    def __init__(
        self,
        key: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: Duration | None = None,
        kind: CallKind = CallKind.STEP,
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"function of step {key!r}", f"must be callable, got {function!r}")
        self._is_async = is_async(function)
        if timeout is not None and not self._is_async:
            raise ArgumentError(
                f"timeout of step {key!r}",
                "needs an async function: a plain one cannot be stopped; give the whole job a timeout and isolate=True",
            )
        self._timeout = None if timeout is None else _checked_limit(key, timeout)
        self._key = key
        self._kind = kind
        self.function = function
        self._call = partial(function, *args, **kwargs) if args or kwargs else function

    async def once(self, journal: Journal) -> Any:
        """Call it; returns or raises what it does."""
        tracer = journal.recorder.hooks.tracer
        if tracer is None:
            return await self._once(journal)
        with tracer.call(journal.claim, self._kind, self._key) as traced:
            try:
                return await self._once(journal)
            except Exception as error:
                if isinstance(error, Verdict) and not isinstance(error, Permanent | RetryAfter):
                    traced.pending()
                else:
                    traced.failed(redact_failure(failure_of(error), journal.secrets()))
                raise

    async def _once(self, journal: Journal) -> Any:
        before = INSIDE.set(self._key)
        try:
            in_place = self._is_async or journal.blocking
            result = self._call() if in_place else await _in_thread(self._call)
            if inspect.isawaitable(result):
                waiting = _limited(result, self._timeout, self._key)
                return await journal.reach(waiting)
            return result
        finally:
            INSIDE.reset(before)


def _checked_limit(key: str, timeout: Duration) -> timedelta:
    limit = parse_duration(f"timeout of step {key!r}", timeout)
    if not limit:
        raise ArgumentError(f"timeout of step {key!r}", f"must be longer than 0, got {timeout!r}")
    return limit


async def _limited(result: Awaitable[Any], limit: timedelta | None, key: str) -> Any:
    if limit is None:
        return await result
    scope = asyncio.timeout(limit.total_seconds())
    try:
        async with scope:
            return await result
    except TimeoutError:
        if scope.expired():
            raise TimeoutError(f"step {key} exceeded its time limit of {format_duration(limit)}") from None
        raise


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Call it in a daemon thread: a call that never ends cannot keep the process alive."""
    answer: Future[Any] = Future()
    answer.set_running_or_notify_cancel()  # so that a cancelled caller leaves it behind

    def run() -> None:
        try:
            result = call()
        except StopIteration as error:  # which no future can carry
            answer.set_exception(RuntimeError(f"a step raised StopIteration: {error}"))
        except BaseException as error:  # noqa: BLE001 - it is raised where the step was taken
            answer.set_exception(error)
        else:
            answer.set_result(result)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="perdure-step", daemon=True).start()
    return await asyncio.wrap_future(answer)
