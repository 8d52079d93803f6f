"""Running flows: the jobs that wait, what each waits for, and the progress of its children."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from perdure.domain.flows.approval import approval_asked
from perdure.domain.flows.flow import FamilyView
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.plain_records import plain
from perdure.operate.masking import shown_job
from perdure.storage.checking import check_whole
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

FLOWS_PER_PAGE: Final = 100
_WAITING: Final = JobFilter(states=frozenset({JobState.WAITING}))
_FAMILY, _EVENT = "family:", "event:"


class Waits(Struct, frozen=True):
    """One thing that a job waits for. `what` is "children", "approval", "event", "poll", "sleep" or "other".

    `name` is the family's key, the question or the event; `until`: when the job comes back at the latest.
    """

    what: str
    name: str
    until: datetime | None = None


class FlowView(Struct, frozen=True):
    """A waiting job, what it waits for, and its families of children in the order in which they were made."""

    job: JobView
    waits: tuple[Waits, ...]
    families: tuple[FamilyView, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The flow as JSON types."""
        return {"job": self.job.to_dict(), "waits": plain(self.waits), "families": plain(self.families)}


class FlowPage(Struct, frozen=True):
    """A page of flows, newest first. `next` is the `before` of the following page; None: the end."""

    flows: tuple[FlowView, ...]
    next: JobId | None

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON types."""
        return {"flows": [flow.to_dict() for flow in self.flows], "next": self.next}


async def read_flows(store: Store, limit: int, before: JobId | None) -> FlowPage:
    """One page of waiting jobs; families are read only for those that wait for children."""
    check_whole("limit", limit, 1, FLOWS_PER_PAGE)
    found = await store.jobs(_WAITING, Page(limit + 1, before))
    flows = [await _flow(store, job) for job in found[:limit]]
    return FlowPage(tuple(flows), flows[-1].job.id if len(found) > limit else None)


async def _flow(store: Store, job: JobView) -> FlowView:
    waits = tuple(_waits(job))
    has_children = any(wait.what == "children" for wait in waits)
    families = await store.families(job.id) if has_children else []
    return FlowView(shown_job(job), waits, tuple(families))


def _waits(job: JobView) -> list[Waits]:
    awaited = [each for each in (job.awaits, *job.also_awaits) if each]
    if awaited:
        return [_named(job, each) for each in dict.fromkeys(awaited)]
    what = next((word for reason, word in _WORDS.items() if job.reason.startswith(reason)), "other")
    return [Waits(what, job.reason.partition(": ")[2], job.due_at)]


def _named(job: JobView, awaited: str) -> Waits:
    until = job.due_at if awaited == job.awaits else None
    if awaited.startswith(_FAMILY):
        return Waits("children", awaited.removeprefix(_FAMILY), until)
    event = awaited.removeprefix(_EVENT)
    question = approval_asked(job.id, event)
    return Waits("event", event, until) if question is None else Waits("approval", question, until)


_WORDS: Final = {Reason.SLEEPING: "sleep", Reason.STILL_PENDING: "poll"}
