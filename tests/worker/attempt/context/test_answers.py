"""A call on the context that is written for the other kind of handler says how to write it."""

from __future__ import annotations

import asyncio

import pytest

from perdure.errors import ConflictError
from perdure.worker.attempt.context.answers import Answer


async def coming() -> int:
    return 42


async def test_it_is_awaited_or_made_a_task() -> None:
    assert await Answer("ctx.step()", coming=coming()) == 42
    [gathered] = await asyncio.gather(Answer("ctx.step()", coming=coming()))
    assert gathered == 42


async def test_without_await_in_an_async_handler_it_is_refused() -> None:
    with pytest.raises(ConflictError, match=r"ctx\.step\(\) in an async handler: write `await ctx\.step\(\)`"):
        assert Answer("ctx.step()", coming=coming())


async def test_with_await_in_a_sync_handler_it_is_refused() -> None:
    assert Answer("ctx.step()", value=42)
    with pytest.raises(ConflictError, match=r"ctx\.step\(\) in a sync handler: write it without `await`"):
        await Answer("ctx.step()", value=42)
