"""FailureGroupStore: failures by their fingerprints."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import DAY, HOUR, MINUTE, apply, claim_one, employ, enqueue, numbered_id, only, show
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.operate.desk import Desk
from perdure.policy.fingerprints import fingerprint
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page, Tally

KEEP_ALL = Keep(succeeded=None, cancelled=None, dead=None)


def failed(number: int, message: str = "gateway {} did not answer") -> Failure:
    return Failure("TimeoutError", message.format(number), None)


async def die(store: Store, number: int = 1, message: str = "gateway {} did not answer", **changes: object) -> JobId:
    job_id = await enqueue(store, **changes)
    claim = await claim_one(store, await employ(store), str(changes.get("queue", "default")))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, failed(number, message)))
    return job_id


async def test_dead_letters_of_one_error_are_one_group(store: Store, clock: ManualClock) -> None:
    first_at = clock.now()
    ids = []
    for number in range(3):
        ids.append(await die(store, number, kind="charge", id=numbered_id(number)))
        clock.move(MINUTE)
    other = await die(store, 0, "no such card", kind="charge")
    [newest, group] = await store.failure_groups(JobFilter(), 10)
    assert (newest.message, newest.jobs, newest.newest) == ("no such card", 1, other)
    assert (group.kind, group.error_type, group.message) == ("charge", "TimeoutError", "gateway … did not answer")
    assert (group.jobs, group.capped, group.newest) == (3, False, ids[-1])
    assert (group.first_at, group.last_at) == (first_at, first_at + 2 * MINUTE)
    assert group.fingerprint == fingerprint("charge", "TimeoutError", "gateway 7 did not answer").hash
    assert (await show(store, ids[0])).fingerprint == group.fingerprint


async def test_groups_come_page_by_page_and_by_filter(store: Store, clock: ManualClock) -> None:
    for word in ("one", "two", "three"):
        await die(store, 0, f"{word} is wrong", kind=f"kind_{word}", queue=word, tags=(word,))
        clock.move(MINUTE)
    everything = await store.failure_groups(JobFilter(), 10)
    assert [group.kind for group in everything] == ["kind_three", "kind_two", "kind_one"]
    place = everything[1].last_at, everything[1].fingerprint
    assert await store.failure_groups(JobFilter(), 1, place) == everything[2:]
    for which in (JobFilter(kind="kind_two"), JobFilter(queue="two"), JobFilter(tag="two"), JobFilter(error="TWO is")):
        assert await store.failure_groups(which, 10) == everything[1:2]
    assert await store.failure_groups(JobFilter(kind="kind_four"), 10) == []
    assert await store.failure_groups(JobFilter(queue="four"), 10) == []


async def test_groups_among_the_newest_dead_letters_say_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older ones may have other groups: a list that ends there must not look complete."""
    for word in ("one", "two", "three"):
        await die(store, 0, f"{word} is wrong", kind=word, tags=("all",))
    everything = await store.failure_groups(JobFilter(tag="all"), 10)
    assert [group.only_newest for group in everything] == [None] * 3
    monkeypatch.setattr("perdure.engines.shared.operate.failure_groups.JOBS_COUNTED_PER_GROUP", 2)
    newest = await store.failure_groups(JobFilter(tag="all"), 10)
    assert {group.kind: group.only_newest for group in newest} == {"two": 2, "three": 2}
    page = await Desk(store, "ada").failure_groups(JobFilter(tag="all"), limit=1)
    assert (len(page.groups), page.only_newest) == (1, 2)


async def test_a_requeued_or_purged_job_leaves_its_group_which_stays_known(store: Store, clock: ManualClock) -> None:
    a, b = [await die(store, number) for number in range(2)]
    [group] = await store.failure_groups(JobFilter(), 10)
    await store.requeue(only(a), By("ada"), 10)
    assert [each.jobs for each in await store.failure_groups(JobFilter(), 10)] == [1]
    await store.purge(only(b), By("ada"), 10)
    assert await store.failure_groups(JobFilter(), 10) == []
    [known] = await store.failure_groups(JobFilter(fingerprint=group.fingerprint), 10)
    assert (known.jobs, known.newest, known.first_at) == (0, None, group.first_at)
    clock.move(6 * DAY)
    await store.prune(KEEP_ALL, 100)
    assert await store.failure_groups(JobFilter(fingerprint=group.fingerprint), 10) == [known]
    clock.move(2 * DAY)
    await store.prune(KEEP_ALL, 100)
    await store.prune(KEEP_ALL, 100)
    assert await store.failure_groups(JobFilter(fingerprint=group.fingerprint), 10) == []


async def test_a_group_with_dead_letters_is_kept(store: Store, clock: ManualClock) -> None:
    await die(store)
    clock.move(30 * DAY)
    for _ in range(2):
        await store.prune(KEEP_ALL, 100)
    [group] = await store.failure_groups(JobFilter(), 10)
    assert (group.jobs, group.last_at) == (1, clock.now() - 30 * DAY)
    assert await store.failure_hours([group.fingerprint], clock.now() - 60 * DAY) == []


async def test_failures_and_deaths_are_counted_by_hours(store: Store, clock: ManualClock) -> None:
    clock.move(clock.now().replace(minute=30, second=0, microsecond=0) - clock.now())
    job_id, worker_id = await enqueue(store), await employ(store)
    for number in range(3):
        claim = await claim_one(store, worker_id)
        await apply(store, transition.retrying(claim, Reason.FAILED, failed(number), timedelta(0)))
    clock.move(HOUR)
    await apply(store, transition.died(await claim_one(store, worker_id), Reason.EXHAUSTED, failed(9)))
    group = (await show(store, job_id)).fingerprint or ""
    hour = clock.now().replace(minute=0)
    found = await store.failure_hours([group, "unknown"], hour - DAY)
    assert sorted((each.hour, each.deaths, each.failures) for each in found) == [(hour - HOUR, 0, 3), (hour, 1, 1)]
    assert [each.hour for each in await store.failure_hours([group], hour)] == [hour]


async def test_a_lost_claim_counts_for_no_group(store: Store) -> None:
    await enqueue(store)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.released(claim))
    answer = await store.acknowledge([transition.died(claim, Reason.EXHAUSTED, failed(1))])
    assert answer.stale == (claim,)
    group = fingerprint(claim.kind, "TimeoutError", failed(1).message).hash
    assert await store.failure_groups(JobFilter(fingerprint=group), 10) == []


async def test_jobs_are_found_listed_and_counted_by_their_fingerprint(store: Store, clock: ManualClock) -> None:
    """By the last error of this life, whatever their state."""
    worker_id = await employ(store)
    dead = await die(store, 1, id=numbered_id(1))
    other = await die(store, 1, "no such card", id=numbered_id(2))
    retrying = await enqueue(store, id=numbered_id(3))
    await apply(store, transition.retrying(await claim_one(store, worker_id), Reason.FAILED, failed(2), HOUR))
    mended = await enqueue(store, id=numbered_id(4))
    claim = await claim_one(store, worker_id)
    await apply(store, transition.retrying(claim, Reason.FAILED, failed(3), timedelta(0)))
    await apply(store, transition.succeeded(await claim_one(store, worker_id), None, ()))
    group = (await show(store, dead)).fingerprint
    assert group is not None
    which = JobFilter(fingerprint=group)
    assert [job.id for job in await store.jobs(which, Page())] == [mended, retrying, dead]
    assert [job.id for job in await store.jobs(which, Page(1, before=mended))] == [retrying]
    for state, job_id in ((JobState.DEAD, dead), (JobState.RETRYING, retrying), (JobState.SUCCEEDED, mended)):
        one = JobFilter(fingerprint=group, states=(state,))
        assert [job.id for job in await store.jobs(one, Page())] == [job_id]
        assert await store.count(one) == [Tally(jobs=1)]
    assert await store.count(which) == [Tally(jobs=3)]
    assert await store.requeue(JobFilter(fingerprint=group, states="dead"), By("ada"), 10) == [dead]
    assert (await show(store, other)).state is JobState.DEAD
    assert await store.count(JobFilter(fingerprint=group, states="dead")) == [Tally(jobs=0)]


async def test_crashes_are_a_group_too(store: Store) -> None:
    """What the rescuer writes is a failure like others."""
    await enqueue(store)
    claim = await claim_one(store, await employ(store))
    crash = Failure("ProcessCrashed", "worker host-1:77 died while it held the job (silent for 31s)")
    await apply(store, transition.crashed_for_good(claim, crash))
    [group] = await store.failure_groups(JobFilter(), 10)
    assert group.message == "worker … died while it held the job (silent for …s)"


async def test_dead_letters_from_before_get_their_fingerprint(store: Store, engine_url: str) -> None:
    """As if they had died in the hands of a release that knows of none."""
    ids = [await die(store, number) for number in range(3)]
    [group] = await store.failure_groups(JobFilter(), 10)
    for statement in (
        "UPDATE {attempt} SET fingerprint = NULL",
        "UPDATE {finished} SET fingerprint = NULL",
        "DELETE FROM {failure_group}",
        "DELETE FROM {failure_count}",
    ):
        query(engine_url, statement)
    assert await store.failure_groups(JobFilter(), 10) == []
    assert [await store.fingerprint_dead(2) for _ in range(3)] == [2, 1, 0]
    assert await store.failure_groups(JobFilter(), 10) == [group]
    assert {job.id for job in await store.jobs(JobFilter(fingerprint=group.fingerprint), Page())} == set(ids)
