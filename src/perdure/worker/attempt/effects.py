"""The transaction of one attempt (G5): begun at the handler's first `ctx.transaction()`, ended with the attempt.

When the handler is done, its acknowledgement is written in the same transaction, fenced by the token, and both are
committed. In any other case the transaction is rolled back, and the outcome is recorded in the ordinary way. If the
connection is lost during the commit, it is unknown whether it has happened; the attempt is then acknowledged as failed
in the ordinary way, and if the commit has happened, that acknowledgement finds no claim and changes nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any, Final

from perdure.domain.flows.flow import StepWrite
from perdure.domain.jobs.outcome import Done, Outcome
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.errors import ConflictError
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.storage.effects import Effects, EffectStore
from perdure.storage.records import Acknowledged, Alongside
from perdure.worker.attempt.log_lines import AttemptLines
from perdure.worker.attempt.outcomes import broken

_ABANDONING: Final[set[asyncio.Task[None]]] = set()


class AttemptEffects:
    """The transaction of one attempt and its acknowledgement. `blocking`: its handler runs in a thread."""

    def __init__(self, store: EffectStore, lines: AttemptLines | None = None, *, blocking: bool) -> None:
        self._store = store
        self._effects: Effects | None = None
        self._beginning = False
        self._abandoned = False
        self._steps: list[StepWrite] = []
        self._lines = lines
        self.blocking = blocking
        self.answer: Acknowledged | None = None

    @property
    def is_open(self) -> bool:
        """Whether the transaction was begun."""
        return self._effects is not None

    def keep(self, write: StepWrite) -> None:
        """Commit this step with everything else, or not at all."""
        self._steps.append(write)

    async def enter(self) -> AbstractAsyncContextManager[Any]:
        """Begin the transaction, unless it is open, and return a block of it to the handler."""
        if self._effects is None:
            if self._beginning:
                raise ConflictError(
                    "ctx.transaction() is being opened by another task of this handler: use one at a time"
                )
            self._beginning = True
            try:
                if self._lines is not None:
                    await self._lines.hold()
                self._effects = await self._store.begin_effects(blocking=self.blocking)
            finally:
                self._beginning = False
            if self._abandoned:
                await self.undo()
        return self._effects.block()

    async def end(
        self, outcome: Outcome | None, decide: Callable[[Outcome], Transition], audit: frozenset[Audited] = frozenset()
    ) -> Outcome | None:
        """End the transaction according to the outcome; returns the outcome that must still be recorded.

        If it was committed with its acknowledgement, or the claim turned out to be lost, `answer` says so, and nothing
        is left to be recorded.
        """
        if self._effects is None:
            return outcome
        if not isinstance(outcome, Done):
            await self.undo()
            return outcome
        try:
            self.answer = await self._effects.commit_with(decide(outcome), self._alongside(audit))
        except Exception as error:  # noqa: BLE001 - after any error the attempt is not known to have succeeded
            return broken(error)
        return None

    def _alongside(self, audit: frozenset[Audited]) -> Alongside:
        if self._lines is None:
            return Alongside(tuple(self._steps), audit=audit)
        return Alongside(tuple(self._steps), tuple(self._lines.take_all()), self._lines.keep, audit)

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back, unless it is over. Never raises: if the rollback fails, nothing is committed either."""
        if self._effects is not None:
            with suppress(Exception):
                await self._effects.undo(forced=forced)

    def abandon(self) -> None:
        """Roll back while the handler still runs: it was abandoned, and must not hold locks any longer."""
        self._abandoned = True
        if self.blocking:
            threading.Thread(
                target=lambda: run_without_loop(self.undo(forced=True)), name="perdure-undo", daemon=True
            ).start()
        else:
            task = asyncio.get_running_loop().create_task(self.undo(forced=True))
            _ABANDONING.add(task)
            task.add_done_callback(_ABANDONING.discard)


class EffectBlock:
    """What `ctx.transaction()` returns: for `async with` in async handlers, for `with` in sync ones."""

    def __init__(self, effects: AttemptEffects) -> None:
        self._effects = effects
        self._block: AbstractAsyncContextManager[Any] | None = None

    async def __aenter__(self) -> Any:
        if self._effects.blocking:
            raise ConflictError("ctx.transaction() in a sync handler: write `with`, not `async with`")
        return await self._enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit(kind, error, trace)

    def __enter__(self) -> Any:
        if not self._effects.blocking:
            raise ConflictError("ctx.transaction() in an async handler: write `async with`, not `with`")
        return run_without_loop(self._enter())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_without_loop(self._exit(kind, error, trace))

    async def _enter(self) -> Any:
        self._block = await self._effects.enter()
        return await self._block.__aenter__()

    async def _exit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            await block.__aexit__(kind, error, trace)


async def to_the_end(coroutine: Coroutine[Any, Any, Outcome | None]) -> Outcome | None:
    """Await a coroutine that must run to its end, even if this task is cancelled meanwhile."""
    task = asyncio.get_running_loop().create_task(coroutine)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()
