"""What is wrong with an enqueue is told by name, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from perdure import App, ArgumentError, PayloadError, Unique


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url) as app:

        @app.job
        async def send(url: str, weight: float = 1.0) -> None: ...

        yield app


async def stored(app: App) -> int:
    return sum(count.jobs for count in await (await app.store()).counts())


@pytest.mark.parametrize(
    ("options", "field", "problem"),
    [
        ({"run_at": "tomorrow"}, "run_at", "must be a datetime with a time zone, got 'tomorrow'"),
        ({"run_at": date(2030, 1, 1)}, "run_at", "must be a datetime with a time zone"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at", "needs a time zone"),  # noqa: DTZ001 - the mistake that is meant
        ({"run_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "run_at", "years 1 to 9999"),
        ({"run_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, "run_at", "years 1 to 9999"),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1}, "run_at", "and delay are both given"),
        ({"tags": "monthly"}, "tags", r"must be a list of names, such as \[\"monthly\"\], got 'monthly'"),
        ({"tags": 3}, "tags", "must be a list of names"),
        ({"tags": [f"t{number}" for number in range(101)]}, "tags", "are 101, 100 are allowed"),
        ({"meta": [1]}, "meta", "must give values by name"),
        ({"meta": {"rate": float("inf")}}, "meta", "NaN and infinity"),
        ({"unique": "url"}, "unique", "must be a Unique"),
        ({"unique": Unique(by="link")}, "unique.by", "names link, but the handler's parameters are: url, weight"),
        ({"unique": Unique(by=lambda given: given["link"])}, "unique.by", "raised KeyError: 'link'"),
    ],
)
async def test_options_that_cannot_be_meant_are_refused_by_name(
    app: App, options: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(ArgumentError, match=problem) as refused:
        await app.job_named("send").using(**options).enqueue("https://example.org")
    assert refused.value.field == field
    assert await stored(app) == 0


async def test_a_number_that_json_does_not_know_is_refused_and_not_stored_as_null(app: App) -> None:
    with pytest.raises(PayloadError, match="NaN and infinity cannot be stored as JSON") as refused:
        await app.job_named("send").enqueue("https://example.org", weight=float("nan"))
    assert refused.value.field == "argument weight"
    assert await stored(app) == 0


async def test_what_is_no_call_is_refused_among_many_and_none_is_stored(app: App, tmp_path: Any) -> None:
    send = app.job_named("send")
    elsewhere = App(f"sqlite:///{tmp_path / 'elsewhere.db'}")

    @elsewhere.job
    async def pack() -> None: ...

    calls: Any
    for calls, problem in (
        ([send.call("a"), 7], "calls must be calls such as job.call"),
        ([send.call("a"), send], "calls must be calls such as job.call"),
        ([send.call("a"), pack.call()], "calls must not contain pack, which another app declares"),
        (send.call("a"), "calls must be a list of calls"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            await app.enqueue_many(calls)
    with pytest.raises(ArgumentError, match=r"call must be calls such as job\.call"):
        await app.schedule("nightly", send, every="1h")  # type: ignore[arg-type]
    assert await stored(app) == 0
