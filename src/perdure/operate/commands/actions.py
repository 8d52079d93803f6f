"""What an operator can do to jobs, and to which jobs each can be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState
from perdure.domain.stored_words import is_known
from perdure.errors import ArgumentError
from perdure.storage.checking import check_mark
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

Apply = Callable[[Store, JobFilter, str, str, int], Awaitable[list[JobId]]]


class Action(Struct, frozen=True, kw_only=True):
    """One command: its word, the states from which it is possible, and those a filter means that names none.

    `for_good`: it cannot be undone, not even by another command. `regardless`: also done to one that was asked to stop.
    `stops`: a running job is asked to stop by it.
    """

    verb: str
    possible: frozenset[JobState]
    meant: frozenset[JobState]
    apply: Apply
    for_good: bool = False
    regardless: bool = False
    stops: bool = True

    def aim(self, which: JobFilter) -> JobFilter:
        """Narrow a filter to jobs that this can be done to; refuse one that asks for others by name."""
        if which.states is None:
            return replace(which, states=self.meant)
        if wrong := which.states - self.possible:
            raise ArgumentError("state", f"{_words(wrong)} cannot be {self.verb}: only {_words(self.possible)} can")
        return which

    def can(self, job: JobView) -> bool:
        """Whether it can be done to this job, as it stands."""
        return job.state in self.possible and (self.regardless or job.cancel_requested_at is None)

    def why_not(self, job: JobView) -> str:
        """Say why nothing could be done to this job."""
        if not is_known(job.state):
            return f"it is {job.state}, which only a newer release of perdure knows: use the tools of that one"
        if job.state not in self.possible:
            return f"it is {job.state}; only {_words(self.possible)} jobs can be {self.verb}"
        if job.cancel_requested_at is not None:
            return "it was asked to stop before and has not ended yet"
        if job.unique_key is not None:
            return "another job holds its unique key"
        return "it moved while the command was under way: look again"


CANCEL: Final = Action(
    verb="cancelled",
    possible=ACTIVE,
    meant=ACTIVE,
    apply=lambda store, which, actor, why, limit: store.cancel(which, actor, why, limit),
)
REQUEUE: Final = Action(
    verb="requeued",
    possible=FINAL,
    meant=frozenset({JobState.DEAD}),
    apply=lambda store, which, actor, _, limit: store.requeue(which, actor, limit),
)
RUN_NOW: Final = Action(
    verb="run now",
    possible=PARKED,
    meant=PARKED,
    apply=lambda store, which, actor, _, limit: store.run_now(which, actor, limit),
)
PURGE: Final = Action(
    verb="purged",
    possible=FINAL,
    meant=frozenset({JobState.DEAD}),
    apply=lambda store, which, actor, _, limit: store.purge(which, actor, limit),
    for_good=True,
)
DELETE: Final = Action(
    verb="deleted",
    possible=frozenset(JobState),
    meant=FINAL,
    apply=lambda store, which, actor, _, limit: store.delete(which, actor, limit),
    for_good=True,
    regardless=True,
)


def mark_as(mark: str | None) -> Action:
    """Put a mark on jobs, or take theirs away."""
    if mark is not None:
        check_mark(mark)
    return Action(
        verb="marked" if mark is not None else "unmarked",
        possible=frozenset(JobState),
        meant=frozenset(JobState),
        apply=lambda store, which, actor, _, limit: store.mark(which, mark, actor, limit),
        regardless=True,
        stops=False,
    )


def reschedule_to(run_at: datetime | timedelta) -> Action:
    """Give jobs another time to come back at; a span counts from the database's now."""

    async def apply(store: Store, which: JobFilter, actor: str, _: str, limit: int) -> list[JobId]:
        due_at = await store.now() + run_at if isinstance(run_at, timedelta) else run_at
        return await store.reschedule(which, due_at, actor, limit)

    return Action(
        verb="rescheduled",
        possible=PARKED,
        meant=frozenset({JobState.SCHEDULED}),
        apply=apply,
    )


REQUEUE_DEAD: Final = replace(REQUEUE, possible=REQUEUE.meant)
PURGE_DEAD: Final = replace(PURGE, possible=PURGE.meant)


def _words(states: frozenset[JobState]) -> str:
    words = [state.value for state in JobState if state in states] + sorted(states.difference(JobState))
    return ", ".join(words[:-1]) + " and " + words[-1] if words[1:] else words[0]
