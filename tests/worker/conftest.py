"""Workers whose loans go back only when the test says so, and whose time it holds in its hands."""

from __future__ import annotations

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import HOUR
from tests.support.builders.loans import Desk

from perdure.clock import ManualClock
from perdure.worker.gates.loan_keeper import LoanKeeper


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given back unless the test says so."""
    monkeypatch.setattr(LoanKeeper, "interval", HOUR)


@pytest.fixture
def on_clock(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Workers measure time by the clock of the test."""
    monkeypatch.setattr("tests.support.working.SystemClock", lambda: clock)


@pytest.fixture
async def other_desk(other_store: OpenStore) -> Desk:
    """The store of another worker."""
    return Desk(await other_store())
