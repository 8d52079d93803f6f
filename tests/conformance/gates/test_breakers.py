"""GateStore: breakers, shared by the fleet and kept over restarts (C11)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.gate_requests import ask, breaker, claims_of, park, passed
from tests.support.builders.jobs import (
    HOSTILE,
    HOUR,
    MINUTE,
    SECOND,
    a_key,
    apply,
    claim_some,
    employ,
    show,
    start,
    state_of,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.gate import BreakerReport, BreakerState, BreakerView
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.policy.limits.breaker import close_by_hand, note_reports, open_by_hand
from perdure.storage.port import Store

CHECK = breaker("ca")


async def report(store: Store, claim: Claim, *, succeeded: bool, name: str = "ca") -> list[BreakerView]:
    """An attempt has ended."""
    told = BreakerReport(name, claim.job_id, succeeded)
    return await store.report_breakers({name}, note_reports([(breaker(name), told)]))


async def test_failures_open_a_breaker_for_all_that_share_it(store: Store, other_store: OpenStore) -> None:
    first, second, third = await claims_of(store, 3)
    assert await passed(store, [first, second], breaker=CHECK) == [first, second]
    [counting] = await report(store, first, succeeded=False)
    assert counting.state is BreakerState.CLOSED
    [opened] = await report(store, second, succeeded=False)
    assert opened.state is BreakerState.OPEN
    other = await other_store()
    [held] = await ask(other, [third], breaker=CHECK)
    assert held is not None
    assert held.reason == "circuit breaker open"
    assert await other.breakers() == [opened]


async def test_a_trial_closes_it_or_opens_it_again(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 6)
    for claim in claims[:2]:
        await report(store, claim, succeeded=False)
    clock.move(MINUTE)
    assert await passed(store, claims[:3], breaker=CHECK) == claims[:1]
    [opened] = await report(store, claims[0], succeeded=False)
    assert opened.state is BreakerState.OPEN
    clock.move(MINUTE)
    assert await passed(store, claims[3:], breaker=CHECK) == claims[3:4]
    [closed] = await report(store, claims[3], succeeded=True)
    assert closed.state is BreakerState.CLOSED
    clock.move(11 * SECOND)
    assert await passed(store, claims[4:], breaker=CHECK) == claims[4:]


async def test_no_news_changes_nothing(store: Store) -> None:
    [claim] = await claims_of(store, 1)
    assert await report(store, claim, succeeded=True) == []
    assert await store.breakers() == []


async def test_what_is_decided_upon_is_what_was_kept(store: Store, clock: ManualClock) -> None:
    view = BreakerView(
        name="ca",
        state=BreakerState.HALF_OPEN,
        failures=(clock.now() - SECOND, clock.now()),
        changed_at=clock.now(),
        until=clock.now() + HOUR,
        trials=(new_job_id(),),
        started=7,
        by_hand=True,
        note="said the operator",
    )
    await store.set_breaker(view, By("ann"))
    shown: list[Mapping[str, BreakerView]] = []

    def look(now: datetime, views: Mapping[str, BreakerView]) -> Sequence[BreakerView]:
        assert now == clock.now()
        shown.append(views)
        return ()

    assert await store.report_breakers({"ca", "unheard of"}, look) == []
    assert shown == [{"ca": view}]
    assert await store.breakers() == [view]


async def test_reports_at_the_same_time_are_all_counted(store: Store, other_store: OpenStore) -> None:
    stores = [store, *[await other_store() for _ in range(3)]]
    told = BreakerReport("ca", new_job_id(), succeeded=False)
    patient = replace(CHECK, failures=1_000)
    await asyncio.gather(
        *(stores[at % 4].report_breakers({"ca", "b"}, note_reports([(patient, told)])) for at in range(20))
    )
    [view] = await store.breakers()
    assert len(view.failures) == 20


async def test_a_breaker_opened_by_hand_stays_open(store: Store, clock: ManualClock, engine_url: str) -> None:
    claims = await claims_of(store, 3)
    await store.set_breaker(open_by_hand(BreakerView(name="ca"), clock.now(), "they asked us to"), By("ann"))
    clock.move(HOUR)
    assert await passed(store, claims, breaker=CHECK) == []
    [view] = await store.breakers()
    assert view.by_hand
    assert query(engine_url, "SELECT actor, action FROM {audit}") == [("ann", "breaker")]


async def test_closing_by_hand_lets_its_jobs_look_again_at_once(store: Store, clock: ManualClock) -> None:
    mine, others = await claims_of(store, 3), await claims_of(store, 2, "other")
    for name in ("ca", "ca 2"):
        await store.set_breaker(open_by_hand(BreakerView(name=name), clock.now()), By("ann"))
    await park(store, mine, await ask(store, mine, breaker=CHECK))
    await park(store, others, await ask(store, others, breaker=breaker("ca 2")))
    assert {await state_of(store, claim.job_id) for claim in mine} == {JobState.PAUSED}
    await store.set_breaker(close_by_hand(BreakerView(name="ca"), clock.now()), By("ann"))
    for claim in mine:
        view = await show(store, claim.job_id)
        assert (view.state, view.reason) == (JobState.READY, "resumed")
    assert {await state_of(store, claim.job_id) for claim in others} == {JobState.PAUSED}
    assert len(await claim_some(store, await employ(store))) == len(mine)


async def test_jobs_of_a_breaker_that_opened_by_itself_are_found_too(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 3)
    for claim in claims[:2]:
        await report(store, claim, succeeded=False)
    await park(store, claims[2:], await ask(store, claims[2:], breaker=CHECK))
    await store.set_breaker(close_by_hand(BreakerView(name="ca"), clock.now()), By("ann"))
    assert await state_of(store, claims[2].job_id) is JobState.READY


async def test_a_job_that_cannot_have_its_unique_key_back_waits_for_it(store: Store, clock: ManualClock) -> None:
    """It holds its key only while it is ready or running, and another has taken it since."""
    key = a_key(states=(JobState.READY, JobState.RUNNING))
    claim = await start(store, unique=key)
    await store.set_breaker(open_by_hand(BreakerView(name="ca"), clock.now()), By("ann"))
    await park(store, [claim], await ask(store, [claim], breaker=CHECK))
    second = await start(store, unique=key)
    await store.set_breaker(close_by_hand(BreakerView(name="ca"), clock.now()), By("ann"))
    view = await show(store, claim.job_id)
    assert (view.state, view.due_at) == (JobState.PAUSED, clock.now() + 30 * SECOND)
    await apply(store, transition.succeeded(second, None, ()))
    clock.move(30 * SECOND)
    await store.promote(10)
    assert await state_of(store, claim.job_id) is JobState.READY


async def test_any_number_of_jobs_is_set_free(store: Store, clock: ManualClock) -> None:
    """They come back in batches; more than one of them are needed here."""
    claims = await claims_of(store, 2_050)
    await apply(store, *(transition.paused(claim, Reason.BREAKER_OPEN, HOUR, "ca: open") for claim in claims))
    await store.set_breaker(close_by_hand(BreakerView(name="ca"), clock.now()), By("ann"))
    [count] = await store.counts()
    assert (count.state, count.jobs) == (JobState.READY, 2_050)


async def test_names_with_any_text_are_kept_apart(store: Store, clock: ManualClock) -> None:
    for name in HOSTILE:
        await store.set_breaker(open_by_hand(BreakerView(name=name), clock.now()), By("ann"))
    assert [view.name for view in await store.breakers()] == sorted(HOSTILE, key=str.encode)
    for at, name in enumerate(HOSTILE):
        [claim] = await claims_of(store, 1, f"queue {at}")
        await park(store, [claim], await ask(store, [claim], breaker=breaker(name)))
        await store.set_breaker(close_by_hand(BreakerView(name=name), clock.now()), By("ann"))
        assert await state_of(store, claim.job_id) is JobState.READY
