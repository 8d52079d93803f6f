"""`@app.cron`, `@app.every` and `app.schedule`: what they take, and what they refuse, by name."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.waiting import until

from perdure import App, ArgumentError, Context, SettingsError, WorkerSettings
from perdure.domain.schedule import Missed, Overlap

UNUSED = "sqlite:///unused.db"


def test_a_job_is_declared_together_with_its_schedule() -> None:
    app = App(UNUSED)

    @app.cron("0 2 * * *", tz="Europe/Berlin", missed="once", overlap="queue", jitter="30s", queue="q", priority=2)
    async def clean_up(days: int = 30) -> int:
        return days

    [schedule] = app.schedules.values()
    assert (schedule.name, schedule.kind, schedule.args) == ("clean_up", "clean_up", "{}")
    assert (schedule.expression, schedule.tz, schedule.jitter) == ("0 2 * * *", "Europe/Berlin", timedelta(seconds=30))
    assert (schedule.missed, schedule.within) == (Missed.ONCE, timedelta(days=1))
    assert (schedule.overlap, schedule.queue, schedule.priority) == (Overlap.QUEUE, "q", 2)
    assert app.kinds["clean_up"].queue == "q"


def test_a_declared_job_may_have_several_schedules() -> None:
    app = App(UNUSED)

    @app.cron("@daily", schedule="daily")
    @app.cron("@hourly")
    @app.job(queue="q")
    def sweep() -> None: ...

    assert {schedule.name: schedule.expression for schedule in app.schedules.values()} == {
        "sweep": "@hourly",
        "daily": "@daily",
    }
    assert {schedule.kind for schedule in app.schedules.values()} == {"sweep"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"expression": "61 * * * *"}, "minute"),
        ({"expression": "0 0 30 2 *"}, "can never be"),
        ({"expression": "@every 0s"}, "1s"),
        ({"expression": "@daily", "tz": "Europe/Berlim"}, "Europe/Berlin"),
        ({"expression": "@daily", "missed": "perhaps"}, "missed must be one of skip, once, all"),
        ({"expression": "@daily", "overlap": "maybe"}, "overlap must be one of skip, queue, cancel, allow"),
        ({"expression": "@daily", "within": "0s"}, "within must be at least 1s"),
        ({"expression": "@daily", "jitter": "-1s"}, "jitter"),
        ({"expression": "@daily", "misst": "skip"}, "misst"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(options: dict[str, Any], problem: str) -> None:
    app = App(UNUSED)
    with pytest.raises(ArgumentError, match=problem):

        @app.cron(**options)
        async def job() -> None: ...

    assert app.schedules == {}


@pytest.mark.parametrize(("decorator", "field"), [("cron", "expression"), ("every", "interval")])
def test_a_decorator_without_its_times_does_not_pass_in_silence(decorator: str, field: str) -> None:
    """Without the parentheses the function would be taken for the times, and nothing would ever call it."""

    def clean_up() -> None: ...

    with pytest.raises(SettingsError, match=rf"{field} of @app\.{decorator} is missing: write for example @app"):
        getattr(App(UNUSED), decorator)(clean_up)


def test_a_handler_that_needs_arguments_is_refused_with_what_to_do() -> None:
    app = App(UNUSED)
    with pytest.raises(SettingsError, match=r"cron of job greet needs a handler without arguments.*app\.schedule"):

        @app.cron("@daily")
        async def greet(name: str) -> None: ...


def test_options_of_a_declared_job_belong_to_it() -> None:
    app = App(UNUSED)
    job = app.job(name="a")(lambda: None)
    with pytest.raises(SettingsError, match="option queue of cron belongs to the job"):
        app.cron("@daily", queue="q")(job)
    app.cron("@daily")(job)
    with pytest.raises(SettingsError, match="schedule a is declared twice"):
        app.cron("@hourly")(job)


@pytest.mark.parametrize(
    ("interval", "options", "problem"),
    [
        ("500ms", {}, "every of sweep must be at least 1s"),
        (0, {}, "every of sweep must be at least 1s"),
        ("1m", {"limit": "0s"}, "limit of sweep"),
        ("1m", {"per": "house"}, "per of sweep must be one of process, fleet"),
        ("1m", {"jitter": 2}, "jitter of sweep"),
    ],
)
def test_a15_an_interval_below_a_second_is_refused_by_name(
    interval: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):

        @App(UNUSED).every(interval, **options)
        def sweep() -> None: ...


async def test_a_schedule_made_at_run_time_makes_jobs_with_its_arguments(engine_url: str) -> None:
    app = App(engine_url)
    told: list[tuple[str, datetime | None]] = []
    swept: list[int] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        told.append((name, ctx.nominal_at))

    @app.every("1s")
    def sweep() -> None:
        swept.append(1)

    async with app:
        view = await app.schedule("hello", greet.call("ada"), every="1s", overlap="allow")
        assert view.next_at is not None
        worker = await app.worker(WorkerSettings(poll="100ms"))
        working = asyncio.create_task(worker.run())
        await until(lambda: len(told) > 1)
        worker.stop()
        await working
    names, times = zip(*told, strict=True)
    assert set(names) == {"ada"}
    assert len(set(times)) == len(times)
    assert all(time is not None and time.astimezone(UTC).microsecond == 0 for time in times)
    assert swept


@pytest.mark.parametrize(
    ("every", "expression"),
    [
        (timedelta(days=14), "@every 14d"),
        (123_456.7, "@every 1d10h17m36s700ms"),
        (90, "@every 1m30s"),
        ("1w", "@every 1w"),
    ],
)
async def test_an_interval_is_kept_as_it_was_given(engine_url: str, every: Any, expression: str) -> None:
    app = App(engine_url)
    job = app.job(name="a")(lambda: None)
    async with app:
        assert (await app.schedule("s", job.call(), every=every)).schedule.expression == expression


@pytest.mark.parametrize(
    ("every", "problem"), [("soon", "is not a duration: 'soon'"), ("999ms", "must be at least 1s")]
)
async def test_an_interval_that_is_none_is_refused_by_the_name_of_its_parameter(every: str, problem: str) -> None:
    app = App(UNUSED)
    job = app.job(name="a")(lambda: None)
    with pytest.raises(ArgumentError, match=f"^every {problem}"):
        await app.schedule("s", job.call(), every=every)


async def test_a_name_that_is_too_long_is_refused_in_a_few_words() -> None:
    app = App(UNUSED)
    job = app.job(name="a")(lambda: None)
    with pytest.raises(ArgumentError, match=r"^name must be 1 to 100 printable characters, got 'nnn") as refusal:
        await app.schedule("n" * 10_000, job.call(), cron="@daily")
    assert len(str(refusal.value)) < 200


async def test_a_schedule_is_reported_by_cron_or_by_an_interval() -> None:
    app = App(UNUSED)
    job = app.job(name="a")(lambda: None)
    for times in ({}, {"cron": "@daily", "every": "1m"}):
        with pytest.raises(ArgumentError, match="cron or every must be given, and not both"):
            await app.schedule("s", job.call(), **times)
    with pytest.raises(ArgumentError, match="run_at and delay cannot be combined with a schedule"):
        await app.schedule("s", job.using(delay="1m").call(), cron="@daily")
