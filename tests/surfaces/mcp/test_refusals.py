"""Refused calls in the audit trail."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from tests.support.builders.jobs import MINUTE, SECOND

from perdure.clock import ManualClock
from perdure.errors import StoreRefused
from perdure.operate.desk import Desk
from perdure.surfaces.mcp.refusals import Refusals


class Trail:
    """A desk that keeps what is recorded."""

    actor = "mcp:claude@ada"

    def __init__(self, error: Exception | None = None) -> None:
        self.entries: list[Any] = []
        self._error = error

    async def record(self, action: str, *, details: dict[str, str]) -> None:
        if self._error is not None:
            raise self._error
        self.entries.append((action, details))


async def test_an_agent_cannot_fill_the_trail_and_everything_is_in_the_log(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    refusals, trail = Refusals(clock), Trail()
    with caplog.at_level(logging.WARNING, "perdure.mcp"):
        for _ in range(15):
            await refusals.record(cast("Desk", trail), "cancel", "no scope")
            clock.move(SECOND)
    assert len(trail.entries) == 10
    assert caplog.text.count("cancel refused to mcp:claude@ada: no scope") == 15
    clock.move(MINUTE - 15 * SECOND)
    await refusals.record(cast("Desk", trail), "cancel", "no scope")
    assert len(trail.entries) == 11


async def test_a_read_only_database_gets_no_entry_and_the_refusal_stands(clock: ManualClock) -> None:
    await Refusals(clock).record(cast("Desk", Trail(StoreRefused("read-only"))), "cancel", "no scope")
