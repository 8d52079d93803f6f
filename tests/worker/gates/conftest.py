"""Workers that look for due jobs and for pauses often: the clock of these tests jumps, and nothing announces that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.upkeep.gate_sweeper import GateSweeper
from perdure.upkeep.promoter import Promoter
from perdure.worker.gates.pauses import Pauser


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes up to a second otherwise takes a twentieth."""
    for loop in (Promoter, Pauser):
        monkeypatch.setattr(loop, "interval", timedelta(milliseconds=50))
    monkeypatch.setattr(GateSweeper, "interval", timedelta(seconds=1))
