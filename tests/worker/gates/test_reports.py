"""A breaker leaves a broken system alone, at no cost to the jobs that wait for it, and tries it again by itself."""

from __future__ import annotations

from datetime import timedelta

from tests.conftest import OpenStore
from tests.support.builders.gates import PATIENT, costs, paused, some, standing
from tests.support.builders.jobs import MINUTE, SECOND, enqueue
from tests.support.waiting import until
from tests.support.working import at_work, found, seen

from perdure import App, Backoff, Breaker, JobState, Permanent, Retry, RetryAfter, Snooze
from perdure.clock import ManualClock
from perdure.domain.gate import BreakerState, BreakerView
from perdure.events import BreakerClosed, BreakerHalfOpen, BreakerOpened
from perdure.operate.desk import Desk
from perdure.storage.port import Store

UNUSED = "sqlite:///unused.db"
OFTEN = Retry(attempts=50, backoff=Backoff.fixed("1h"))


class System:
    """An outside system that raises what it is told to."""

    def __init__(self) -> None:
        self.error: Exception | None = ValueError("down")
        self.calls = 0

    def app(self, breaker: Breaker) -> App:
        app = App(UNUSED)

        @app.job(breaker=breaker, retry=OFTEN)
        async def greet(name: str) -> None:
            self.calls += 1
            if self.error is not None:
                raise self.error

        return app


async def in_state(store: Store, state: BreakerState) -> BreakerView:
    """The one breaker, once it is in this state."""

    async def look() -> BreakerView | None:
        views = [view for view in await store.breakers() if view.state is state]
        return views[0] if views else None

    return await found(look)


async def test_c11_a_breaker_opens_holds_at_no_cost_tries_and_drains(store: Store, clock: ManualClock) -> None:
    system = System()
    app = system.app(Breaker("digicert", failures=3, open_for="1m"))
    async with at_work(store, app, **PATIENT) as shift:
        await some(store, 3)
        opened = await in_state(store, BreakerState.OPEN)
        assert opened.until == clock.now() + MINUTE
        await some(store, 10)
        waiting = paused(await standing(store, retrying=3, paused=10))
        assert system.calls == 3
        assert costs(waiting) == {(0, 0)}
        assert {view.due_at for view in waiting} == {opened.until}
        assert waiting[0].reason.startswith("circuit breaker open: digicert: 3 failures within 1m, until ")

        system.error = None
        clock.move(MINUTE)
        await in_state(store, BreakerState.CLOSED)
        assert system.calls < 10
        clock.move(MINUTE)
        await standing(store, retrying=3, succeeded=10)
        assert [(event.breaker, event.because) for event in shift.told(BreakerOpened)] == [
            ("digicert", "3 failures within 1m")
        ]
        assert [event.breaker for event in shift.told(BreakerHalfOpen)] == ["digicert"]
        await until(lambda: shift.told(BreakerClosed))
        assert [event.because for event in shift.told(BreakerClosed)] == ["the trial succeeded"]
    assert system.calls == 13


async def test_once_closed_a_breaker_lets_jobs_through_slowly(store: Store, clock: ManualClock) -> None:
    system = System()
    app = system.app(Breaker("digicert", failures=1))
    async with at_work(store, app, **PATIENT):
        await enqueue(store)
        await in_state(store, BreakerState.OPEN)
        system.error = None
        await some(store, 20)
        await standing(store, retrying=1, paused=20)
        await Desk(store, "ops").holds.close_breaker("digicert")
        await standing(store, retrying=1, succeeded=1, paused=19)
        clock.move(SECOND)
        await standing(store, retrying=1, succeeded=3, paused=17)
        clock.move(SECOND)
        await standing(store, retrying=1, succeeded=7, paused=13)
        clock.move(timedelta(seconds=10))
        await standing(store, retrying=1, succeeded=20)


async def test_a_trial_that_fails_opens_it_again_and_all_workers_know(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    system = System()
    app = system.app(Breaker("digicert", failures=2, open_for="1m"))
    async with at_work(store, app, **PATIENT) as one, at_work(await other_store(), app, **PATIENT) as two:
        await some(store, 2)
        first = await in_state(store, BreakerState.OPEN)
        await some(store, 4)
        await standing(store, retrying=2, paused=4)
        clock.move(MINUTE)
        await standing(store, retrying=3, paused=3)
        again = await in_state(store, BreakerState.OPEN)
        await until(lambda: len(one.told(BreakerOpened)) + len(two.told(BreakerOpened)) == 2)
        told = {event.because for shift in (one, two) for event in shift.told(BreakerOpened)}
    assert system.calls == 3
    assert first.until is not None
    assert again.until == first.until + MINUTE
    assert told == {"2 failures within 1m", "the trial failed"}


async def test_a_breaker_is_kept_over_restarts(store: Store) -> None:
    system = System()
    app = system.app(Breaker("digicert", failures=1))
    async with at_work(store, app, **PATIENT):
        await enqueue(store)
        await in_state(store, BreakerState.OPEN)
    async with at_work(store, app, **PATIENT):
        await enqueue(store)
        await standing(store, retrying=1, paused=1)
    assert system.calls == 1


async def test_a_system_that_says_when_to_come_back_is_left_alone_until_then(store: Store, clock: ManualClock) -> None:
    system = System()
    system.error = RetryAfter("10m")
    app = system.app(Breaker("digicert", failures=1, open_for="1m"))
    async with at_work(store, app, **PATIENT):
        await enqueue(store)
        opened = await in_state(store, BreakerState.OPEN)
    assert opened.until == clock.now() + 10 * MINUTE


async def test_what_is_not_the_systems_fault_does_not_count(store: Store) -> None:
    system = System()
    app = system.app(Breaker("digicert", failures=1))
    async with at_work(store, app, **PATIENT):
        for error, state in ((Permanent("no such account"), JobState.DEAD), (Snooze("1h"), JobState.WAITING)):
            system.error = error
            await seen(store, await enqueue(store), state)
        await seen(store, await enqueue(store, args='{"nom":1}'), JobState.DEAD)
        system.error = None
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert {view.state for view in await store.breakers()} <= {BreakerState.CLOSED}
    assert system.calls == 3


async def test_an_attempt_that_takes_too_long_counts_as_a_failure(store: Store) -> None:
    app = App(UNUSED)

    @app.job(breaker=Breaker("slow", failures=1), timeout="20ms", retry=OFTEN)
    def greet(name: str) -> None:
        while True:
            pass

    async with at_work(store, app, **PATIENT):
        await enqueue(store)
        opened = await in_state(store, BreakerState.OPEN)
    assert opened.note == "1 failure within 1m"


async def test_a_breaker_that_is_opened_by_hand_is_closed_by_hand(store: Store, clock: ManualClock) -> None:
    system = System()
    system.error = None
    app = system.app(Breaker("digicert"))
    async with at_work(store, app, **PATIENT) as shift:
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
        await Desk(store, "ops").holds.open_breaker("digicert", why="maintenance")
        job_id = await enqueue(store)
        held = await seen(store, job_id, JobState.PAUSED)
        assert "opened by hand: maintenance" in held.reason
        clock.move(timedelta(hours=12))
        await found(lambda: held_again(store, clock))
        await Desk(store, "ops").holds.close_breaker("digicert")
        assert costs([await seen(store, job_id, JobState.SUCCEEDED)]) == {(0, 0)}
    assert system.calls == 2
    assert [event for event in shift.events if isinstance(event, BreakerOpened | BreakerClosed)] == [
        BreakerOpened("digicert", None, "by ops: maintenance"),
        BreakerClosed("digicert", "by ops"),
    ]


async def test_what_was_done_by_hand_before_is_reported_only_if_it_still_holds(store: Store) -> None:
    system = System()
    system.error = None
    app = system.app(Breaker("digicert"))
    holds = Desk(store, "ops").holds
    await holds.open_breaker("digicert")
    await holds.close_breaker("digicert")
    async with at_work(store, app, **PATIENT) as shift:
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert not [event for event in shift.events if isinstance(event, BreakerOpened | BreakerClosed)]


async def held_again(store: Store, clock: ManualClock) -> bool:
    """Whether what is held has looked again, and is held until a time to come."""
    jobs = paused(await standing(store, succeeded=1, paused=1))
    return all(view.due_at is not None and view.due_at > clock.now() for view in jobs)
