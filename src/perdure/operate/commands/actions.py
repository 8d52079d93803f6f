"""Commands on jobs, and the jobs that each applies to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState
from perdure.domain.operate.audit import By
from perdure.domain.stored_words import is_known
from perdure.errors import ArgumentError
from perdure.storage.checking import check_mark, echo
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

Apply = Callable[[Store, JobFilter, By, int], Awaitable[list[JobId]]]


class Action(Struct, frozen=True, kw_only=True):
    """One command: its name, its word, the states that it applies to, and those that a filter without states means.

    `for_good`: no other command can undo it. `regardless`: also applies to a job that was asked to stop.
    `stops`: it asks a running job to stop.
    """

    name: str
    verb: str
    possible: frozenset[JobState]
    meant: frozenset[JobState]
    apply: Apply
    for_good: bool = False
    regardless: bool = False
    stops: bool = True

    def aim(self, which: JobFilter) -> JobFilter:
        """Narrow a filter to jobs that this applies to; a filter with other states is refused."""
        if which.states is None:
            return replace(which, states=self.meant)
        if wrong := which.states - self.possible:
            raise ArgumentError("state", f"{_words(wrong)} cannot be {self.verb}: only {_words(self.possible)} can")
        return which

    def can(self, job: JobView) -> bool:
        """Whether it applies to this job in its current state."""
        return job.state in self.possible and (self.regardless or job.cancel_requested_at is None)

    def why_not(self, job: JobView) -> str:
        """Say why this job was skipped."""
        if not is_known(job.state):
            return f"it is {job.state}, which only a newer release of perdure knows: use the tools of that release"
        if job.state not in self.possible:
            return f"it is {job.state}; only {_words(self.possible)} jobs can be {self.verb}"
        if job.cancel_requested_at is not None:
            return "it was asked to stop before and has not ended yet"
        if job.unique_key is not None:
            return "another job holds its unique key"
        return "its state changed while the command ran: try again"


CANCEL: Final = Action(
    name="cancel",
    verb="cancelled",
    possible=ACTIVE,
    meant=ACTIVE,
    apply=lambda store, which, by, limit: store.cancel(which, by, limit),
)
REQUEUE: Final = Action(
    name="requeue",
    verb="requeued",
    possible=FINAL,
    meant=frozenset({JobState.DEAD}),
    apply=lambda store, which, by, limit: store.requeue(which, by, limit),
)
RUN_NOW: Final = Action(
    name="run_now",
    verb="run now",
    possible=PARKED,
    meant=PARKED,
    apply=lambda store, which, by, limit: store.run_now(which, by, limit),
)
PURGE: Final = Action(
    name="purge",
    verb="purged",
    possible=FINAL,
    meant=frozenset({JobState.DEAD}),
    apply=lambda store, which, by, limit: store.purge(which, by, limit),
    for_good=True,
)
DELETE: Final = Action(
    name="delete",
    verb="deleted",
    possible=frozenset(JobState),
    meant=FINAL,
    apply=lambda store, which, by, limit: store.delete(which, by, limit),
    for_good=True,
    regardless=True,
)


def mark_as(mark: str | None) -> Action:
    """Set a mark on jobs, or remove it."""
    if mark is not None:
        check_mark(mark)
    return Action(
        name="mark",
        verb="marked" if mark is not None else "unmarked",
        possible=frozenset(JobState),
        meant=frozenset(JobState),
        apply=lambda store, which, by, limit: store.mark(which, mark, by, limit),
        regardless=True,
        stops=False,
    )


def reschedule_to(run_at: datetime | timedelta) -> Action:
    """Change when jobs come back; a duration counts from the database's now."""

    async def apply(store: Store, which: JobFilter, by: By, limit: int) -> list[JobId]:
        due_at = await store.now() + run_at if isinstance(run_at, timedelta) else run_at
        return await store.reschedule(which, due_at, by, limit)

    return Action(
        name="reschedule",
        verb="rescheduled",
        possible=PARKED,
        meant=frozenset({JobState.SCHEDULED}),
        apply=apply,
    )


def action_named(name: str, params: BulkParams) -> Action:
    """The action of this name with its parameters; unknown names and values that do not fit are refused."""
    if name == "mark":
        return mark_as(params.mark)
    if name == "reschedule":
        if params.due_at is None:
            raise ArgumentError("run_at", "is missing: give the time at which the jobs come back")
        return reschedule_to(params.due_at)
    if name not in _PLAIN:
        names = ", ".join(sorted([*_PLAIN, "mark", "reschedule"]))
        raise ArgumentError("action", f"must be one of {names}, got {echo(name)}")
    return _PLAIN[name]


def actions_for(states: frozenset[JobState] | None) -> frozenset[str]:
    """The names of the actions that accept a filter of these states: all actions if it names none."""
    every = (*_PLAIN.values(), mark_as(None), reschedule_to(timedelta()))
    return frozenset(action.name for action in every if states is None or states <= action.possible)


_PLAIN: Final = {action.name: action for action in (REQUEUE, CANCEL, RUN_NOW, PURGE, DELETE)}
REQUEUE_DEAD: Final = replace(REQUEUE, possible=REQUEUE.meant)
PURGE_DEAD: Final = replace(PURGE, possible=PURGE.meant)


def _words(states: frozenset[JobState]) -> str:
    words = [state.value for state in JobState if state in states] + sorted(states.difference(JobState))
    return ", ".join(words[:-1]) + " and " + words[-1] if words[1:] else words[0]
