"""Rates whose starts are spread: spaced evenly, where others let all of a stretch start at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from perdure import App, Context, Rate, SettingsError
from perdure.testing import Sandbox


async def starts(engine_url: str, rate: Rate, jobs: int) -> list[timedelta]:
    """When each of so many jobs starts, counted from the first."""
    app, begun = App(engine_url), list[datetime]()

    @app.job(gates=rate)
    async def call(ctx: Context, number: int) -> None:
        begun.append(ctx.claimed_at)

    async with Sandbox(app) as box:
        await app.enqueue_many(call.call(number) for number in range(jobs))
        await box.drain(travel=True)
    return [at - begun[0] for at in begun]


async def test_spread_starts_are_spaced_evenly(engine_url: str) -> None:
    seen = await starts(engine_url, Rate(4, "1s", spread=True), 6)
    apart = [later - earlier for earlier, later in pairwise(seen)]
    assert apart == [timedelta(milliseconds=250)] * 5


async def test_others_start_together_as_far_as_the_rate_allows(engine_url: str) -> None:
    seen = await starts(engine_url, Rate(4, "1s"), 6)
    assert seen == [timedelta(0)] * 4 + [timedelta(seconds=1)] * 2


def test_what_is_no_choice_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"rate\.spread must be True or False, got 'yes'"):
        Rate(4, "1s", spread="yes")  # type: ignore[arg-type] # that is the point
