"""Coroutines that run at once."""

from __future__ import annotations

import asyncio

import pytest

from perdure.lifecycle.bridges.without_loop import run_without_loop


def test_a_coroutine_that_never_suspends_returns_or_raises_at_once() -> None:
    async def answer() -> int:
        return 42

    async def fail() -> None:
        await answer()
        raise KeyError("gone")

    assert run_without_loop(answer()) == 42
    with pytest.raises(KeyError, match="gone"):
        run_without_loop(fail())


def test_one_that_waits_is_refused_and_cleans_up() -> None:
    closed = []

    async def wait() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match="has waited for something"):
        run_without_loop(wait())
    assert closed == [True]
