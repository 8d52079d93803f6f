"""E8: 6 requests a minute and 25,000 a day; over that an audit waits, at no cost of an attempt."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from systems.tests.engines import on_sqlite

from perdure import App, Budget, Context, JobView
from perdure.events import GateNearlyFull
from perdure.testing import Sandbox
from perdure_systems.audits.jobs import app, audit
from perdure_systems.audits.settings import QUOTA
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.stats import stats
from perdure_systems.audits.web.views import audit_view

Setting = Callable[[str, str], None]


async def request_audits(outside: Outside, number: int, start: int = 0) -> list[str]:
    return [(await audit.enqueue(f"{outside.page}{start + n}")).id for n in range(number)]


async def views(box: Sandbox, ids: list[str]) -> list[JobView]:
    return [await box.job(one) for one in ids]


async def use_quota(box: Sandbox, engine_url: str, requests: int) -> None:
    """Count so many requests of a day, through the gate itself, as another program that shares the quota would."""
    other = App(engine_url)

    @other.job(gates=[Budget(QUOTA, daily=25_000)])
    async def use(ctx: Context) -> None:
        await ctx.spend(requests)

    async with Sandbox(other, url=engine_url, start=box.now) as elsewhere:
        await use.enqueue()
        assert (await elsewhere.drain()).succeeded == 1


async def test_e8_over_six_a_minute_audits_wait_60_seconds_at_no_cost(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    ids = await request_audits(outside, 8)
    await box.drain()
    assert outside.calls["pagespeed"] == 6
    held = [view for view in await views(box, ids) if view.state == "paused"]
    assert [(view.due_at, view.failures, view.word) for view in held] == [
        (box.now + timedelta(seconds=60), 0, "processing")
    ] * 2
    assert "6 of 6 starts in 1m" in held[0].reason
    shown = await audit_view(held[0].id)
    assert "before step pagespeed" in (shown.waiting_for or "")

    box.travel("59s")
    await box.drain()
    assert outside.calls["pagespeed"] == 6
    box.travel("1s")
    await box.drain()
    assert outside.calls["pagespeed"] == 8
    assert {(view.state, view.failures) for view in await views(box, ids)} == {("succeeded", 0)}


async def test_e8_over_25_000_a_day_audits_wait_an_hour_at_no_cost(
    engine_url: str, box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting
) -> None:
    """24,997 are used: three more pass, the others look again each hour and pass after a day."""
    settings("AUDITS_PAGESPEED_PER_MINUTE", "1000")
    await use_quota(box, engine_url, 24_997)
    began = box.now
    ids = await request_audits(outside, 5)
    await box.drain()
    assert outside.calls["pagespeed"] == 3
    for hour in (0, 1, 2, 22):
        box.travel_to(began + timedelta(hours=hour))
        await box.drain()
        held = [view for view in await views(box, ids) if view.state == "paused"]
        assert len(held) == 2
        assert {(view.due_at, view.failures) for view in held} == {(began + timedelta(hours=hour + 1), 0)}
        assert "25000 of 25000 spent in 1d" in held[0].reason
    box.travel("1h")
    await box.drain()
    assert outside.calls["pagespeed"] == 3, "no request went out in these 23 hours"
    box.travel("1h")
    await box.drain()
    assert outside.calls["pagespeed"] == 5
    assert {(view.state, view.failures) for view in await views(box, ids)} == {("succeeded", 0)}


@on_sqlite
async def test_e8_it_warns_at_four_fifths(
    engine_url: str, box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting
) -> None:
    told: list[GateNearlyFull] = []
    unsubscribe = app.subscribe(told.append, GateNearlyFull)  # type: ignore[arg-type]
    try:
        await use_quota(box, engine_url, 19_998)
        await request_audits(outside, 1)
        await box.drain()
        assert told == []
        assert (await stats())["quota"]["is_nearly_used"] is False
        await request_audits(outside, 1, start=1)
        await box.drain()
        assert [(event.gate, event.used, event.limit) for event in told] == [(QUOTA, 20_000, 25_000)]
        assert (await stats())["quota"] == {
            "source": "pagespeed",
            "used_last_day": 20_000,
            "per_day": 25_000,
            "per_minute": 6,
            "is_nearly_used": True,
        }
        await request_audits(outside, 3, start=2)
        await box.drain()
        assert [(event.used, event.limit, event.per) for event in told][1:] == [(5, 6, "1m")]
        assert told[0].level == "warning"
    finally:
        unsubscribe()


@pytest.mark.parametrize("status", [200, 500])
@on_sqlite
async def test_e8_each_request_counts_whether_it_succeeds_or_not(
    box: Sandbox, outside: Outside, quick: QuickInstruments, status: int
) -> None:
    outside.pagespeed.status = status
    await request_audits(outside, 1)
    await box.drain(travel=True)
    assert (await stats())["quota"]["used_last_day"] == outside.calls["pagespeed"] == (1 if status == 200 else 3)


@on_sqlite
async def test_e8_the_browsers_own_timings_have_no_quota(box: Sandbox, quick: QuickInstruments) -> None:
    for number in range(10):
        await audit.enqueue(f"https://127.0.0.1/{number}")
    assert (await box.drain()).succeeded == 10
    assert quick.used["measure"] == 10
