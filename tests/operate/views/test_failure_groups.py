"""Dead letters by group, as the desk shows them."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import DAY, HOUR, apply, claim_one, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import Reason
from perdure.errors import ArgumentError, NotFoundError
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter


async def die(store: Store, message: str, **changes: object) -> JobId:
    job_id = await enqueue(store, **changes)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("TimeoutError", message), 1))
    return job_id


async def test_a_group_shows_since_when_and_how_it_grows(store: Store, clock: ManualClock) -> None:
    desk = Desk(store, "ada")
    old = await die(store, "gateway 1 is away", kind="charge")
    first_at = clock.now()
    clock.move(2 * DAY)
    for hours, deaths in ((1, 2), (3, 1)):
        for number in range(deaths):
            newest = await die(store, f"gateway {number} is away", kind="charge")
        clock.move(hours * HOUR)
    [group] = (await desk.failure_groups()).groups
    assert (group.kind, group.error_type, group.message) == ("charge", "TimeoutError", "gateway … is away")
    assert (group.jobs, group.jobs_capped, group.newest, group.attempts) == (4, False, newest, "1/1")
    assert (group.first_at, group.is_new, group.failures) == (first_at, False, 3)
    assert group.trend == (0,) * 19 + (2, 1, 0, 0, 0)
    assert await desk.failure_group(group.fingerprint) == group
    await desk.requeue(JobFilter(fingerprint=group.fingerprint))
    assert (await desk.failure_groups()).groups == ()
    after = await desk.failure_group(group.fingerprint)
    assert (after.jobs, after.newest, after.attempts, after.trend) == (0, None, "", group.trend)
    assert (await desk.job(old)).job.fingerprint is None


async def test_groups_come_in_pages(store: Store, clock: ManualClock) -> None:
    desk = Desk(store, "ada")
    for word in "abcde":
        await die(store, f"{word} is wrong")
        clock.move(HOUR)
    messages, before = [], None
    while True:
        page = await desk.failure_groups(limit=2, before=before)
        messages += [group.message[0] for group in page.groups]
        before = page.next
        if before is None:
            break
    assert messages == list("edcba")
    assert all(group.is_new for group in page.groups)


async def test_bad_questions_are_refused(store: Store) -> None:
    desk = Desk(store, "ada")
    with pytest.raises(NotFoundError, match="no group of failures 'abc'"):
        await desk.failure_group("abc")
    for before in ("abc", "2026-01-01/abc", "2026-01-01T00:00Z", str(JobId("x"))):
        with pytest.raises(ArgumentError, match="must be the `next` of a page of groups"):
            await desk.failure_groups(before=before)
    for limit in (0, 201):
        with pytest.raises(ArgumentError, match="limit must be a whole number from 1 to 200"):
            await desk.failure_groups(limit=limit)
