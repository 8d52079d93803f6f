"""A loop for callers that have none."""

from __future__ import annotations

import asyncio
import threading

import pytest

from perdure.lifecycle.bridges.portal import Portal


async def thread() -> threading.Thread:
    return threading.current_thread()


def test_all_calls_share_one_thread_which_starts_again_after_a_close() -> None:
    portal = Portal()
    try:
        first, second = portal.call(thread()), portal.call(thread())
        assert first is second is not threading.current_thread()
        portal.close()
        assert portal.call(thread()) is not first
        with pytest.raises(KeyError, match="gone"):
            portal.call(failing())
    finally:
        portal.close()


async def failing() -> None:
    await asyncio.sleep(0)
    raise KeyError("gone")


def test_a_sync_call_inside_the_portals_own_loop_is_refused_instead_of_waiting_for_itself() -> None:
    portal = Portal()

    async def inside() -> None:
        portal.call(failing())

    try:
        with pytest.raises(RuntimeError, match="would wait for itself"):
            portal.call(inside())
    finally:
        portal.close()
