"""Captures what handlers raise, so that a test gets the original exception and not only its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from msgspec import structs

from perdure.domain.jobs.ids import JobId
from perdure.flows.park import parked_in
from perdure.kinds.kind import Kind, Mode, is_async
from perdure.worker.attempt.context.context import current_context
from perdure.worker.attempt.outcomes import AttemptInterrupted


class HandlerEscaped(Exception):  # noqa: N818 - reads as what happened
    """Replaces, in the job's record, an exception that must reach the test itself: `pytest.fail`, ctrl-C."""


class Witness:
    """The exceptions of one run, by job."""

    def __init__(self) -> None:
        self.raised: dict[JobId, BaseException] = {}
        self.escaped: BaseException | None = None

    def watch(self, kind: Kind, *, isolate: bool) -> Kind:
        """The same kind with its handler watched; unless `isolate`, an isolated kind runs in this process.

        In this process the test's patches and fakes apply, and the app is the one in the sandbox. Exceptions in a
        separate process cannot be captured.
        """
        handler = kind.handler
        if kind.mode is Mode.PROCESS and isolate:
            return kind
        if is_async(handler):

            @wraps(handler)
            async def watched(*args: Any, **kwargs: Any) -> Any:
                with self._watching():
                    return await handler(*args, **kwargs)

            return structs.replace(kind, handler=watched, mode=Mode.TASK)

        @wraps(handler)
        def watched_sync(*args: Any, **kwargs: Any) -> Any:
            with self._watching():
                return handler(*args, **kwargs)

        return structs.replace(kind, handler=watched_sync, mode=Mode.THREAD)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        context = current_context()
        job_id = JobId("") if context is None else context.job_id
        self.raised.pop(job_id, None)
        try:
            yield
        except (asyncio.CancelledError, AttemptInterrupted):
            raise
        except (Exception, SystemExit) as error:
            self.raised[job_id] = error
            raise
        except BaseException as error:
            if parked_in(error) is not None:
                raise
            self.escaped = error
            raise HandlerEscaped(f"{type(error).__name__}: {error}") from error
