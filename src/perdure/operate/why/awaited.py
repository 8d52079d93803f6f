"""What a waiting job waits for besides a time: events, answers, children, or several at once.

The first thing to arrive wakes a job that waits for several. Its steps hold the time limit of each.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from shlex import quote
from typing import Final

from perdure.domain.flows.approval import APPROVAL, approval_asked
from perdure.domain.flows.flow import StepKind, StepRecord
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.operate.commands.approvals import waits_of
from perdure.operate.records import Remedy, Why
from perdure.operate.wording import listed, utc_text
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

_EVENT: Final = "event:"
_FAMILY: Final = "family:"
_CHILDREN_NAMED: Final = 5
_CHILDREN_SEEN: Final = 500
_FAILED: Final = (JobState.DEAD, JobState.CANCELLED)


async def awaits_event(store: Store, job: JobView) -> Why:
    """A job that waits for an event, or for an answer, which is an event too."""
    event = (job.awaits or "").removeprefix(_EVENT)
    name, remedy = approval_asked(job.id, event), None
    if name is not None:
        key, answer = f"{APPROVAL}{name}", f"It waits for an answer to {name!r}."
        advice = f"perdure approve {job.id} {quote(name)}, with --deny to say no"
        remedy = Remedy("answer", name, "Answer")
    elif await store.emitted(event) is not None:
        key, answer, advice = f"{_EVENT}{event}", f"Event {event!r} was emitted: it resumes in a moment.", "look again"
    else:
        key, answer = f"{_EVENT}{event}", f"It waits for event {event!r}, which was not emitted yet."
        advice = f"app.emit({event!r}, …), or perdure emit {quote(event)}"
        remedy = Remedy("emit", event, "Emit the event")
    until, others = await _waits(store, job, lambda step: _is(step, key))
    gives_up = f"It gives up waiting at {utc_text(until)}." if until else "Its wait has no time limit."
    return Why(job=job, answer=answer, facts=(gives_up, *others), until=until, what_to_do=advice, remedy=remedy)


async def awaits_children(store: Store, job: JobView) -> Why:
    """A job that waits for the children of one key."""
    key = (job.awaits or "").removeprefix(_FAMILY)
    family = await store.family(job.id, key)
    if family is None:
        return Why(job=job, answer="It waits for children that are gone.", until=job.due_at)
    until, others = await _waits(store, job, lambda step: step.kind is StepKind.FAMILY and key.startswith(step.key))
    facts = [f"{family.succeeded:,} succeeded, {family.failed:,} died or were cancelled."]
    if family.quorum is not None:
        facts.append(f"It resumes once {family.quorum:,} have succeeded, or no longer can.")
    facts += await _unfinished(store, job, key)
    if until is not None:
        facts.append(f"It waits for them until {utc_text(until)} at the latest.")
    final = family.succeeded + family.failed
    return Why(
        job=job,
        answer=f"It waits for its children {key!r}: {final:,} of {family.total:,} are final.",
        facts=(*facts, *others),
        until=until,
        what_to_do="see why a child is not final: perdure jobs why ID",
    )


async def _waits(store: Store, job: JobView, is_own: Callable[[StepRecord], bool]) -> tuple[datetime | None, list[str]]:
    """The time limit of the job's wait, by its step; and what it also waits for."""
    steps = (await waits_of(store, [job.id])).get(job.id, [])
    own = [step for step in steps if is_own(step)]
    others = [_also(step) for step in steps if step not in own and step.kind is StepKind.EVENT]
    families = [thing.removeprefix(_FAMILY) for thing in job.also_awaits if thing.startswith(_FAMILY)]
    others += [f"It also waits for its children {key!r}." for key in families]
    return (own[0].due_at if own else job.due_at), others


def _is(step: StepRecord, key: str) -> bool:
    """Whether a step has this name; a repeated name has a number behind it."""
    return step.key == key or step.key.startswith(f"{key}#")


def _also(step: StepRecord) -> str:
    if step.key.startswith(APPROVAL):
        return f"It also waits for an answer to {step.key.removeprefix(APPROVAL)!r}."
    return f"It also waits for event {step.key.removeprefix(_EVENT)!r}."


async def failed_children(store: Store, parent: JobId) -> list[str]:
    """The first few children that are dead or cancelled now, among the first thousand of each family."""
    keys = [family.key for family in await store.families(parent) if family.failed]
    failed = [child.job_id for key in keys for child in await store.children(parent, key) if child.fate in _FAILED]
    still = JobFilter(ids=tuple(failed[:_CHILDREN_SEEN]), states=frozenset(_FAILED))
    return [f"{job.id} ({job.state})" for job in await store.jobs(still, Page(_CHILDREN_NAMED))] if failed else []


async def _unfinished(store: Store, job: JobView, key: str) -> list[str]:
    """The first few children that are not final, among the first thousand."""
    children = [child for child in await store.children(job.id, key) if child.fate is None][:_CHILDREN_NAMED]
    if not children:
        return []
    ids = tuple(child.job_id for child in children)
    views = {view.id: view for view in await store.jobs(JobFilter(ids=ids), Page(len(ids)))}
    named = listed(f"{i} ({views[i].kind}, {views[i].state})" if i in views else i for i in ids)
    return [f"Not final are, among others, {named}."]
