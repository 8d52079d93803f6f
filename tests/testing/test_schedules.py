"""Schedules in a sandbox fire when time travels: at their own times, and never without end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure import App, Backoff, ConflictError, Context, Jitter, Release, Retry
from perdure.domain.schedule import Fate
from perdure.events import Event, ScheduleMissed
from perdure.testing import Sandbox

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def box(app: App) -> Sandbox:
    """A sandbox that is opened by the test, once the app has declared what it has."""
    return Sandbox(app, start=NEW_YEAR)


async def test_g6_each_time_on_the_way_makes_its_job_and_runs_it_then(app: App, box: Sandbox) -> None:
    ran: list[datetime] = []

    @app.cron("0 */6 * * *")
    async def clean_up(ctx: Context) -> None:
        assert ctx.meta["nominal_at"] == box.now.isoformat().replace("+00:00", "Z")
        ran.append(box.now)

    async with box:
        drained = await box.drain(travel="1d")

        assert ran == [NEW_YEAR + hours * HOUR for hours in (6, 12, 18, 24)]
        assert (drained.succeeded, drained.left) == (4, 0)
        assert box.now == NEW_YEAR + DAY


async def test_g6_a_second_journey_goes_on_where_the_first_ended(app: App, box: Sandbox) -> None:
    ran: list[datetime] = []

    @app.cron("@every 45m")
    def sweep() -> None:
        ran.append(box.now)

    async with box:
        for _ in range(6):
            await box.drain(travel="30m")
        assert ran == [NEW_YEAR + minutes * timedelta(minutes=1) for minutes in (45, 90, 135, 180)]


async def test_schedules_made_at_run_time_fire_too_with_their_arguments(app: App, box: Sandbox) -> None:
    told: list[int] = []

    @app.job
    async def digest(account: int) -> None:
        told.append(account)

    async with box:
        await app.schedule("digest-7", digest.call(7), cron="@daily")
        await box.drain(travel="3d")
        await (await app.desk("me")).calendar.pause("digest-7")
        await box.drain(travel="3d")
        assert told == [7, 7, 7]
        box.assert_enqueued_times(3, digest, 7)


async def test_what_a_schedule_makes_counts_as_enqueued(app: App, box: Sandbox) -> None:
    @app.cron("@daily", jitter="1h")
    async def report() -> None: ...

    async with box:
        box.assert_not_enqueued(report)
        assert (await box.drain(travel="25h")).succeeded == 1
        (made,) = box.enqueued(report)
        assert made.at == NEW_YEAR + DAY
        assert timedelta(0) < made.delay <= HOUR

        await (await app.desk("me")).calendar.trigger("report")
        box.assert_enqueued_times(2, report)


async def test_without_a_horizon_a_schedule_never_draws_the_clock_forward(app: App, box: Sandbox) -> None:
    """Jobs that always fail, by a schedule that always comes: a journey until all is final has an end all the same."""

    @app.cron("@every 1m", overlap="allow", retry=Retry(attempts=3, backoff=Backoff.fixed("5m"), jitter=Jitter.none()))
    async def flaky() -> None:
        raise ConnectionError

    async with box:
        assert (await box.drain(travel=True)).attempts == 0
        assert box.now == NEW_YEAR
        box.travel("1m")
        drained = await box.drain(travel=True)
        assert (drained.dead, drained.attempts, drained.left) == (1, 3, 0)
        assert box.now == NEW_YEAR + timedelta(minutes=11)


async def test_a_jump_over_several_times_is_what_a_worker_finds_that_was_away(app: App, box: Sandbox) -> None:
    ran: dict[str, int] = {"skipped": 0, "one": 0, "each": 0}
    missed: dict[str, int] = {}

    def note(event: Event) -> None:
        if isinstance(event, ScheduleMissed):
            missed[event.schedule] = event.missed

    @app.cron("@hourly")
    async def skipped() -> None:
        ran["skipped"] += 1

    @app.cron("@hourly", missed="once")
    async def one() -> None:
        ran["one"] += 1

    @app.cron("@hourly", missed="all", overlap="queue")
    async def each() -> None:
        ran["each"] += 1

    app.subscribe(note)
    async with box:
        box.travel(5 * HOUR + HOUR / 2)
        await box.drain()
        assert ran == {"skipped": 0, "one": 1, "each": 5}
        assert missed == {"skipped": 5, "one": 4}


async def test_an_overlap_is_let_go_as_in_a_worker(app: App, box: Sandbox) -> None:
    @app.cron("@hourly")
    async def stubborn() -> None:
        raise Release("90m")

    async with box:
        await box.drain(travel="4h")
        detail = await (await app.desk("me")).calendar.schedule("stubborn")
        assert [fire.fate for fire in detail.fires] == [Fate.OVERLAPPED] * 3 + [Fate.FIRED]


async def test_a_drain_of_one_queue_lets_the_jobs_of_others_wait(app: App, box: Sandbox) -> None:
    @app.cron("@hourly", queue="mail")
    async def letters() -> None: ...

    @app.cron("@hourly", queue="reports", overlap="allow")
    async def figures() -> None: ...

    async with box:
        drained = await box.drain("mail", travel="2h")
        assert (drained.succeeded, drained.left) == (2, 0)
        assert (await box.drain("reports")).succeeded == 2


async def test_one_declared_after_the_sandbox_was_opened_begins_with_the_next_drain(app: App, box: Sandbox) -> None:
    async with box:
        box.travel("90m")

        @app.cron("@hourly")
        async def late() -> None: ...

        assert (await box.drain()).attempts == 0
        assert (await box.drain(travel="1h")).succeeded == 1


async def test_a_journey_with_more_times_than_jumps_says_what_keeps_it_going(app: App, box: Sandbox) -> None:
    @app.cron("*/10 * * * * *", queue="mail")
    async def busy() -> None: ...

    async with box:
        with pytest.raises(AssertionError, match=r"100 jumps in time were made, .*: those of schedules; raise limit="):
            await box.drain(travel="1d", limit=100)
        assert (await box.drain(travel="20m", limit=200)).succeeded == 120 + 1  # that one was made, but not run


def test_without_an_event_loop(app: App, box: Sandbox) -> None:
    ran: list[datetime] = []

    @app.cron("@daily", tz="Europe/Berlin")
    def clean_up() -> None:
        ran.append(box.now)

    with box:
        assert box.drain_sync(travel="2d").succeeded == 2
    assert ran == [NEW_YEAR + 23 * HOUR, NEW_YEAR + 47 * HOUR]


async def test_a_name_that_was_made_in_a_database_of_ones_own_is_refused_at_the_door(app: App, engine_url: str) -> None:
    @app.job
    async def work() -> None: ...

    async with Sandbox(app, url=engine_url):
        await app.schedule("work", work.call(), cron="@daily")
    app.cron("@daily")(work)
    with pytest.raises(ConflictError, match="work"):
        Sandbox(app, url=engine_url).__enter__()


async def test_a_checkpoint_is_found_by_the_next_attempt(app: App, box: Sandbox) -> None:
    pages: list[int] = []

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none()))
    async def read(ctx: Context) -> None:
        for page in range(ctx.cursor or 0, 4):
            if page == 2 and ctx.attempt == 1:
                raise ConnectionError
            pages.append(page)
            await ctx.checkpoint(page + 1)

    async with box:
        handle = await read.enqueue()
        await box.drain(travel=True)
        assert pages == [0, 1, 2, 3]
        assert (await box.job(handle)).cursor == "4"


def test_a_periodic_function_stays_a_function(app: App) -> None:
    calls: list[str] = []

    @app.every("2m")
    def sweep() -> int:
        calls.append("swept")
        return len(calls)

    assert sweep() == 1
