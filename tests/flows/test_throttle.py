"""E9: `once_per`, from handlers and from outside."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import App, ArgumentError, Context, SyncContext
from perdure.testing import Sandbox


async def test_e9_an_alert_is_sent_at_most_once_an_hour_per_audit() -> None:
    app, alerts = App("sqlite:///unused.db"), list[int]()

    @app.job
    async def deliver(ctx: Context, audit: int) -> None:
        if await ctx.once_per("1h", key=f"alert:{audit}"):
            alerts.append(audit)

    @app.job
    def deliver_sync(ctx: SyncContext, audit: int) -> None:
        if ctx.once_per("1h", key=f"alert:{audit}"):
            alerts.append(audit)

    async with Sandbox(app) as box:
        for audit in (1, 1, 2):
            await deliver.enqueue(audit)
            await deliver_sync.enqueue(audit)
        await box.drain(raising=True)
        assert alerts == [1, 2]
        box.travel("1h")
        await deliver_sync.enqueue(1)
        await box.drain(raising=True)
        assert alerts == [1, 2, 1]
        assert not await app.once_per("1h", key="alert:1")
        assert await app.once_per("1h", key="alert:3")


async def test_the_key_stays_taken_when_the_attempt_fails() -> None:
    app, asked = App("sqlite:///unused.db"), list[bool]()

    @app.job
    async def fail(ctx: Context) -> None:
        asked.append(await ctx.once_per("1h", key="alert"))
        if len(asked) == 1:
            raise RuntimeError

    async with Sandbox(app) as box:
        await fail.enqueue()
        await box.drain(travel=True)
    assert asked == [True, False]


def test_a_sync_caller_asks(engine_url: str) -> None:
    app = App(engine_url)
    try:
        assert [app.once_per_sync("1h", key="alert") for _ in range(3)] == [True, False, False]
    finally:
        app.close_sync()


@pytest.mark.parametrize(
    ("period", "key", "field"),
    [
        *(("soon", "alert", "period"), (0, "alert", "period"), ("1h", "", "key")),
        *(("1h", "a\0b", "key"), ("1h", "x" * 201, "key"), ("1h", 7, "key")),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(period: Any, key: Any, field: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{field} "):
        await App("sqlite:///unused.db").once_per(period, key=key)
