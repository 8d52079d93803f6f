"""Builders: parents and their children in a few words. Children have a queue of their own."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from tests.support.builders.jobs import a_job, apply, claim_some, employ, show, start

from perdure.domain.flows.flow import Awaits, FamilyView, NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, NewJob
from perdure.domain.jobs.states import FINAL, Reason
from perdure.domain.jobs.transition import Transition
from perdure.storage.port import Store

CHILDREN: Final = "children"
KEY: Final = "parts"


def offspring(count: int, **changes: Any) -> tuple[NewJob, ...]:
    """Children that are not born yet."""
    return tuple(a_job(**{"queue": CHILDREN, "kind": "load"} | changes) for _ in range(count))


async def spawn(store: Store, claim: Claim, *children: NewJob, **terms: Any) -> NewFamily:
    """Give a running job children; it must be alive."""
    family = NewFamily(**{"key": KEY, "children": children} | terms)
    assert await store.spawn(claim, family)
    return family


async def start_parent(store: Store, count: int = 3, **terms: Any) -> tuple[Claim, list[JobId]]:
    """A running job with so many children; the queue must be empty."""
    claim = await start(store, kind="ingest")
    family = await spawn(store, claim, *offspring(count), **terms)
    return claim, [child.id for child in family.children]


async def claim_children(store: Store, limit: int = 100) -> dict[JobId, Claim]:
    """Claim children, with a worker of their own."""
    claims = await claim_some(store, await employ(store, name="nurse"), limit, CHILDREN)
    return {claim.job_id: claim for claim in claims}


def awaiting(claim: Claim, key: str = KEY) -> Transition:
    """The parent parks until its children are there."""
    return transition.parked(claim, Reason.AWAITING_CHILDREN, None, Awaits(family=key), None)


def as_parent(move: Transition) -> Transition:
    """The same move, of an attempt that has spawned children."""
    return replace(move, is_parent=True)


async def end_parent(store: Store, move: Transition) -> None:
    """The attempt that has spawned children is over for good."""
    assert move.to in FINAL
    await apply(store, as_parent(move))


async def family_of(store: Store, parent: JobId, key: str = KEY) -> FamilyView:
    """Look at a family that must be there."""
    view = await store.family(parent, key)
    assert view is not None
    return view


async def tally(store: Store, parent: JobId, key: str = KEY) -> tuple[int, int, int]:
    """How many children there are, how many have succeeded, and how many have not."""
    view = await family_of(store, parent, key)
    return view.total, view.succeeded, view.failed


async def standing(store: Store, job_id: JobId) -> tuple[str, str]:
    """A job's state and why it is in it."""
    view = await show(store, job_id)
    return view.state.value, view.reason
