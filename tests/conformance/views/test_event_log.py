"""EventLogStore: what happened, in an order that never changes, for as long as it is kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    DAY,
    HOUR,
    apply,
    claim_one,
    claim_some,
    employ,
    ending_in,
    enqueue,
    job_in,
    only,
)
from tests.support.builders.schedules import make, step

from perdure import ConflictError, JobState
from perdure.clock import ManualClock
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import BEGINNING, Cursor, LoggedEvent, read_cursor
from perdure.domain.schedule import Firing
from perdure.errors import EventsGone
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store

ALICE = By("alice")


async def switch_on(store: Store, keep: timedelta = DAY) -> Cursor:
    return (await store.switch_event_log(keep, ALICE)).end


def behind(event: LoggedEvent) -> Cursor:
    return read_cursor("id", event.id)


async def test_nothing_is_logged_until_the_log_is_switched_on(store: Store) -> None:
    await job_in(JobState.SUCCEEDED, store)
    assert not (await store.event_log()).is_on
    with pytest.raises(ConflictError, match="perdure events on"):
        await store.read_events(BEGINNING, 10)
    begin = await switch_on(store)
    assert await store.read_events(begin, 10) == []


async def test_every_end_of_a_job_is_logged_with_what_it_was(store: Store, clock: ManualClock) -> None:
    begin = await switch_on(store)
    fine = await job_in(JobState.SUCCEEDED, store, kind="mail.send", queue="default", tags=("vip", "eu"))
    dead = await job_in(JobState.DEAD, store)
    waiting = await enqueue(store)
    await store.cancel(only(waiting), by=ALICE, limit=10)
    events = await store.read_events(begin, 10)
    assert [(event.type, event.subject) for event in events] == [
        ("job.succeeded", fine),
        ("job.died", dead),
        ("job.cancelled", waiting),
    ]
    first, died, _ = events
    assert (first.kind, first.queue, first.tags, first.at) == ("mail.send", "default", ("vip", "eu"), clock.now())
    assert first.details["reason"] == "done"
    assert first.details["started_at"].startswith(clock.now().strftime("%Y-%m-%dT%H:%M:%S"))
    assert {"error_type", "error", "failures"} <= died.details.keys()
    assert "args" not in first.details
    assert await store.read_events(behind(first), 1) == [died]
    assert [event.id for event in events] == sorted(event.id for event in events)


async def test_a_retry_is_no_end_and_a_second_end_is_a_second_event(store: Store) -> None:
    begin = await switch_on(store)
    dead = await job_in(JobState.DEAD, store)
    await store.requeue(only(dead), ALICE, 10)
    await apply(store, ending_in(JobState.SUCCEEDED, await claim_one(store, await employ(store))))
    await job_in(JobState.RETRYING, store)
    found = [(event.type, event.subject) for event in await store.read_events(begin, 10)]
    assert found == [("job.died", dead), ("job.succeeded", dead)]


async def test_a_missed_time_of_a_schedule_is_logged(store: Store, clock: ManualClock) -> None:
    begin = await switch_on(store)
    view = await make(store, clock.now())
    clock.move(HOUR)
    await store.fire([step(view, firings=(Firing(nominal_at=view.next_at or clock.now(), job=None),))])
    [event] = await store.read_events(begin, 10)
    assert (event.type, event.subject, event.kind) == ("schedule.missed", view.schedule.name, view.schedule.kind)
    assert "nominal_at" in event.details


async def test_old_events_are_forgotten_and_their_cursors_refused(store: Store, clock: ManualClock) -> None:
    begin = await switch_on(store, HOUR)
    await job_in(JobState.SUCCEEDED, store)
    clock.move(timedelta(minutes=50))
    await job_in(JobState.DEAD, store)
    clock.move(timedelta(minutes=20))
    assert await store.forget_events(100)
    assert await store.forget_events(100) == 0
    with pytest.raises(EventsGone, match="were deleted"):
        await store.read_events(begin, 10)
    state = await store.event_log()
    [kept] = await store.read_events(state.oldest, 10)
    assert kept.type == "job.died"
    clock.move(DAY)
    assert await store.forget_events(100) == 1
    assert await store.read_events(behind(kept), 10) == []


async def test_a_cursor_from_before_a_time_without_log_is_refused(store: Store) -> None:
    begin = await switch_on(store)
    await job_in(JobState.SUCCEEDED, store)
    [seen] = await store.read_events(begin, 10)
    await store.switch_event_log(None, ALICE)
    await job_in(JobState.SUCCEEDED, store)
    begin = await switch_on(store)
    with pytest.raises(EventsGone):
        await store.read_events(behind(seen), 10)
    later = await job_in(JobState.SUCCEEDED, store)
    assert [event.subject for event in await store.read_events(begin, 10)] == [later]


async def test_a_cursor_of_another_database_is_refused(store: Store) -> None:
    await switch_on(store)
    with pytest.raises(EventsGone, match="not a cursor of this database"):
        await store.read_events(Cursor(2**40, 2**40), 10)


async def test_switching_is_audited_once_and_a_new_time_keeps_the_events(store: Store) -> None:
    begin = await switch_on(store)
    await job_in(JobState.SUCCEEDED, store)
    for keep in (DAY, HOUR, None, None):
        await store.switch_event_log(keep, ALICE)
        if keep is not None:
            assert len(await store.read_events(begin, 10)) == 1
    trail = await store.audit(AuditFilter(), 10)
    assert [entry.action for entry in trail] == ["event_log.off", "event_log.on", "event_log.on"]


async def test_followers_lose_and_repeat_nothing_while_many_write(store: Store, other_store: OpenStore) -> None:
    """Four writers commit as they like; a follower that looks all the time gets each event once, in the final order."""
    begin = await switch_on(store)
    others = [await other_store() for _ in range(4)]
    ids = {await enqueue(store) for _ in range(200)}
    seen: list[LoggedEvent] = []

    async def write(other: Store) -> None:
        worker = await employ(other)
        while claims := await claim_some(other, worker, 7):
            await asyncio.gather(*(other.acknowledge([ending_in(JobState.SUCCEEDED, one)]) for one in claims))

    async def follow() -> None:
        cursor = begin
        async with asyncio.timeout(60):
            while len(seen) < len(ids):
                found = await store.read_events(cursor, 50)
                seen.extend(found)
                cursor = behind(found[-1]) if found else cursor
                await asyncio.sleep(0)

    await asyncio.gather(follow(), *(write(other) for other in others))
    assert {event.subject for event in seen} == ids
    assert len(seen) == len(ids)
    assert await store.read_events(begin, 1_000) == seen
