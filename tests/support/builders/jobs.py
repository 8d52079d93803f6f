"""Builders: jobs, workers and claims in a few words, and a job in any state that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, WorkerId, new_job_id
from perdure.domain.jobs.job import Claim, Intake, JobView, NewJob, OnConflict, UniqueKey
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import ACTIVE, JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.worker import NewWorker, ProcessIdentity
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Wanted

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
INSTANT: Final = timedelta(microseconds=1)

A_FAILURE: Final = Failure("builtins.ValueError", "no such host", "Traceback (most recent call last): …")
HOSTILE: Final = (
    'it\'s "quoted"',
    "'; DROP TABLE job; --",
    "{curly} {} {0} %s %(name)s :name ? $1 @x",
    "back\\slash \\u0000 \\N",
    "naïve 漢字 🦩 \u202e\u200b",
    "<script>alert(1)</script> \x1b[31m\r\n\t",
    " ",
)


def a_job(**changes: Any) -> NewJob:
    """A job that says hello; change what the test is about."""
    plain = NewJob(id=new_job_id(), kind="greet", args='{"name":"Ada"}')
    return replace(plain, **changes)


def a_worker(**changes: Any) -> NewWorker:
    """A worker of this world; change what the test is about."""
    process = ProcessIdentity("host-1:boot-1", 4711, 123_456_789)
    plain = NewWorker(name="worker-1", process=process, queues=("default",), concurrency=10, version="0.1.0")
    return replace(plain, **changes)


def a_key(
    key: str = "site:example.org",
    states: Iterable[JobState] = ACTIVE,
    dead_for: timedelta | None = None,
    on_conflict: OnConflict = OnConflict.RETURN,
) -> UniqueKey:
    """A unique key, by default held while the job is not final."""
    return UniqueKey(key, frozenset(states), dead_for, on_conflict)


def numbered_id(number: int) -> JobId:
    """An id that sorts by its number, whenever it was made."""
    return JobId(f"00000000-0000-7000-8000-{number:012x}")


def only(job_id: JobId) -> JobFilter:
    """The filter that means this one job."""
    return JobFilter(ids=(job_id,))


async def enqueue(store: Store, **changes: Any) -> JobId:
    """Hand in one job and tell its id."""
    [receipt] = await store.insert([a_job(**changes)])
    return receipt.job_id


async def second_comer(store: Store, on_conflict: OnConflict = OnConflict.RETURN) -> tuple[JobId, Intake]:
    """Hand in another job with the key that `a_key` gives; which job stands for it, and how."""
    [receipt] = await store.insert([a_job(args='{"name":"Eve"}', unique=a_key(on_conflict=on_conflict))])
    return receipt.job_id, receipt.intake


async def employ(store: Store, **changes: Any) -> WorkerId:
    """Register one worker."""
    return await store.register(a_worker(**changes))


async def claim_some(store: Store, worker_id: WorkerId, limit: int = 100, queue: str = "default") -> list[Claim]:
    """Claim from one queue."""
    return await store.claim(worker_id, [Wanted(queue, limit)])


async def claim_one(store: Store, worker_id: WorkerId, queue: str = "default") -> Claim:
    """Claim the one job that must be there."""
    [claim] = await claim_some(store, worker_id, 1, queue)
    return claim


async def start(store: Store, **changes: Any) -> Claim:
    """Hand in a job and claim it, with a worker of its own; the queue must be empty."""
    job_id = await enqueue(store, **changes)
    claim = await claim_one(store, await employ(store), changes.get("queue", "default"))
    assert claim.job_id == job_id
    return claim


async def apply(store: Store, *transitions: Transition) -> None:
    """Write transitions, all of which must hold."""
    written = await store.acknowledge(transitions)
    assert written.applied == len(transitions)
    assert written.stale == ()


async def show(store: Store, job_id: JobId) -> JobView:
    """Look at a job that must be there."""
    view = await store.job(job_id)
    assert view is not None
    return view


async def state_of(store: Store, job_id: JobId) -> JobState:
    """Where a job stands."""
    return (await show(store, job_id)).state


def ending_in(state: JobState, claim: Claim) -> Transition:
    """Some transition that takes a running job to this state; parked ones come back in an hour."""
    return {
        JobState.READY: transition.released(claim),
        JobState.RETRYING: transition.retrying(claim, Reason.FAILED, A_FAILURE, HOUR),
        JobState.WAITING: transition.waiting(claim, Reason.SNOOZED, HOUR),
        JobState.PAUSED: transition.paused(claim, Reason.PAUSED, HOUR),
        JobState.SUCCEEDED: transition.succeeded(claim, "42", ()),
        JobState.DEAD: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
        JobState.CANCELLED: transition.cancelled(claim, "not wanted any more"),
    }[state]


async def job_in(state: JobState, store: Store, **changes: Any) -> JobId:
    """A job in the state asked for. Its queue must be empty before."""
    if state is JobState.SCHEDULED:
        return await enqueue(store, delay=HOUR, **changes)
    if state is JobState.READY:
        return await enqueue(store, **changes)
    claim = await start(store, **changes)
    if state is not JobState.RUNNING:
        await apply(store, ending_in(state, claim))
    return claim.job_id
