"""A reference to an enqueued job, for the caller that enqueued it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.domain.flows.flow import Progress
from perdure.domain.flows.plan import OWN
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, JobView, Receipt
from perdure.domain.jobs.states import JobState
from perdure.enqueue.gateway import Gateway
from perdure.errors import ConflictError, JobNotSuccessful, NotFoundError
from perdure.kinds.kind import Kind

R_co = TypeVar("R_co", covariant=True)
_LAST_LOOK_TIMEOUT_SECONDS = 0.5  # to fetch the state for the message of a timeout


class Handle(Struct, Generic[R_co], frozen=True, eq=False, gc=False):
    """Reference to an enqueued job: id, state, result."""

    _gateway: Gateway
    _kind: Kind | None  # None: read the kind from the job
    _receipt: Receipt

    def __repr__(self) -> str:
        return f"<{self._kind.name if self._kind else 'job'} {self.id} ({self.intake})>"

    @property
    def id(self) -> JobId:
        """The id of the job: a new one, or the existing one that holds the unique key."""
        return self._receipt.job_id

    @property
    def intake(self) -> Intake:
        """New, existing or replaced."""
        return self._receipt.intake

    @property
    def is_new(self) -> bool:
        """Whether this call created the job."""
        return self._receipt.intake is Intake.NEW

    def _value(self, view: JobView) -> Any:
        if self._kind is None:
            return view.value
        if view.kind != self._kind.name and not view.kind.startswith(OWN):  # a chain gives its last link's
            raise ConflictError(f"job {view.id} is of kind {view.kind}, not {self._kind.name}: use app.handle(id)")
        if view.result is None:
            return None
        return self._kind.signature.decode_result(view.result)

    async def view(self) -> JobView:
        """The job in its current state."""
        view = await self._gateway.view(self.id)
        if view is None:
            raise NotFoundError(
                f"job {self.id} is not in the database: it was pruned or deleted, or is not committed yet"
            )
        return view

    def view_sync(self) -> JobView:
        """Blocking version of `view`."""
        return self._gateway.run_sync(self.view())

    async def progress(self) -> Progress | None:
        """The last progress that the job reported (`ctx.progress`); None: it has reported none."""
        return await self._gateway.progress(self.id)

    def progress_sync(self) -> Progress | None:
        """Blocking version of `progress`."""
        return self._gateway.run_sync(self.progress())

    async def result(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 - a user's word
        """Wait until the job succeeds and return its result; raises JobNotSuccessful if it ends otherwise."""
        limit = None if timeout is None else parse_duration("timeout", timeout)
        try:
            async with asyncio.timeout(None if limit is None else limit.total_seconds()) as patience:
                view = await self._gateway.final(self.id)
        except TimeoutError:
            if limit is None or not patience.expired():
                raise
            problem = f"job {self.id} is not finished after {format_duration(limit)}{await self._seen()}"
            raise TimeoutError(problem) from None
        if view.state is not JobState.SUCCEEDED:
            raise JobNotSuccessful(view.id, view.state, view.last_error or view.reason)
        return cast("R_co", self._value(view))

    def result_sync(self, timeout: Duration | None = None) -> R_co:
        """Blocking version of `result`."""
        return self._gateway.run_sync(self.result(timeout))

    async def _seen(self) -> str:
        """The state of the job for an error message, if the database answers soon."""
        with suppress(Exception):
            async with asyncio.timeout(_LAST_LOOK_TIMEOUT_SECONDS):
                return f": it is {(await self.view()).state}"
        return ""
