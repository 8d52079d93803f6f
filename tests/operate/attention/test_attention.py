"""What needs a person: each trouble is told in a sentence with a way on, and nothing else is."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND, apply, employ, enqueue, job_in, start
from tests.support.builders.schedules import make

from perdure.clock import ManualClock
from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits
from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.worker import Phase
from perdure.errors import ArgumentError, StoreUnavailable
from perdure.operate.attention.attention import examine_database
from perdure.operate.attention.need import Need
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import Checkup
from perdure.storage.operate.diagnosis import Finding, Severity, fine
from perdure.storage.port import Store


async def needs(store: Store) -> dict[str, list[Need]]:
    found: dict[str, list[Need]] = {}
    for need in await Desk(store, "ada").attention():
        found.setdefault(need.about, []).append(need)
    return found


async def test_a_healthy_system_lists_no_need(store: Store) -> None:
    await employ(store)
    for state in set(JobState) - {JobState.DEAD, JobState.READY}:
        await job_in(state, store)
    await enqueue(store)
    assert await needs(store) == {}


async def test_every_need_says_where_to_look_and_what_to_type(store: Store, clock: ManualClock) -> None:
    now = await store.now()
    await job_in(JobState.DEAD, store, kind="charge_card")
    await apply(store, transition.paused(await start(store, kind="pdf"), Reason.UNKNOWN_KIND, DAY))
    await apply(store, transition.paused(await start(store, kind="ask"), Reason.BUDGET_EXCEEDED, DAY, note="openai"))
    claim = await start(store, kind="deploy")
    event = approval_event(claim.job_id, "go")
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=event), None))
    await enqueue(store, queue="reports")
    await store.set_breaker(BreakerView(name="gateway", state=BreakerState.OPEN, changed_at=now), By("ada"))
    await make(store, now + MINUTE, name="nightly")
    clock.move(HOUR)
    found = await needs(store)
    said = {about: [need.sentence for need in every] for about, every in found.items()}
    [lost] = said.pop("worker")
    assert said == {
        "dead letters": ["1 charge_card died: ValueError: no such host"],
        "queue": ["Queue reports has 1 job and no worker"],
        "schedule": ["Schedule nightly is overdue by 59m"],
        "breaker": ["Breaker gateway is open"],
        "unknown kind": ["Kind pdf has no handler in any worker: 1 job waits"],
        "budget": ["A budget is spent: 1 ask job waits"],
        "approval": ["1 approval waits: go of deploy"],
    }
    assert lost.startswith("4 workers were lost: ")
    every = [need for group in found.values() for need in group]
    assert all(need.path.startswith("/") and need.label and need.cli.startswith("perdure ") for need in every)
    severities = [need.severity for need in await Desk(store, "ada").attention()]
    assert severities == sorted(severities)  # problems before warnings


async def test_the_group_of_dead_letters_with_the_most_failures_comes_first(store: Store, clock: ManualClock) -> None:
    for kind in ("charge_card", "charge_card", "charge_card", "heartbeat"):
        await job_in(JobState.DEAD, store, kind=kind)
        clock.move(MINUTE)
    assert [need.subject for need in (await needs(store))["dead letters"]] == ["3 charge_card", "1 heartbeat"]


async def test_a_queue_is_a_need_if_it_is_not_served_or_does_not_keep_up(store: Store, clock: ManualClock) -> None:
    worker = await employ(store, queues=("mail",))
    await enqueue(store, queue="mail")
    assert await needs(store) == {}
    clock.move(10 * MINUTE)
    await store.beat(worker)
    [slow] = (await needs(store))["queue"]
    assert slow.severity is Severity.WARNING
    assert slow.what == "does not keep up: its oldest ready job waits for 10m"
    await store.report(worker, Phase.CLOSED)
    await store.retire(worker)
    [unserved] = (await needs(store))["queue"]
    assert unserved.severity is Severity.PROBLEM
    assert "closed ❀ cleanly" in unserved.detail
    await Desk(store, "ada").holds.pause(queue="mail")
    assert "queue" not in await needs(store)


async def test_more_than_three_queues_without_a_worker_or_lost_workers_are_one_need_each(
    store: Store, clock: ManualClock
) -> None:
    for number in range(3):
        await employ(store, name=f"worker-{number}")
        await enqueue(store, queue=f"queue-{number}")
    clock.move(HOUR)
    found = await needs(store)
    assert [len(found["queue"]), len(found["worker"])] == [3, 3]
    assert all("is lost: its last heartbeat was 1h ago" in one.sentence for one in found["worker"])
    await employ(store, name="worker-3")
    clock.move(HOUR)
    for number in range(3, 7):
        await enqueue(store, queue=f"queue-{number}")
    found = await needs(store)
    [queues], [workers] = found["queue"], found["worker"]
    assert queues.sentence == "7 queues have jobs and no worker: queue-0, queue-1, queue-2 and 4 more"
    assert (queues.path, queues.since) == ("/queues", clock.now() - 2 * HOUR)
    assert workers.sentence.startswith("4 workers were lost: ")
    assert workers.sentence.endswith(" and 1 more")
    assert (workers.severity, workers.path) == (Severity.PROBLEM, "/workers")


async def test_a_look_that_fails_is_reported_and_one_at_a_database_that_is_away_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def odd() -> None:
        raise ArgumentError("breaker", "cannot be read")

    async def away() -> None:
        raise StoreUnavailable("nobody answers")

    monkeypatch.setattr(store, "breakers", odd)
    [unseen] = (await needs(store))["unseen"]
    assert unseen.sentence == "Breakers could not be checked: breaker cannot be read"
    monkeypatch.setattr(store, "breakers", away)
    with pytest.raises(StoreUnavailable):
        await needs(store)


async def test_problems_of_the_database_itself(store: Store, clock: ManualClock) -> None:
    assert "clock" not in {need.name for need in await examine_database(store, clock)}
    ahead = ManualClock(clock.now() + 90 * SECOND)
    [clocks] = [need for need in await examine_database(store, ahead) if need.name == "clock"]
    assert "behind this machine" in clocks.what


async def test_problems_of_the_database_come_with_the_rest_where_they_are_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def examined(_: object) -> list[Finding]:
        return [Finding("durability", Severity.PROBLEM, "synchronous is off", "switch it on"), fine("version", "18")]

    monkeypatch.setattr(Checkup, "examine_database", examined)
    desk = Desk(store, "ada")
    assert await desk.attention() == []
    [need] = await desk.attention(database=True)
    assert (need.name, need.detail, need.cli) == ("durability", "switch it on", "perdure doctor")
