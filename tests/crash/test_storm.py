"""G1, G2, G3 and F2 through kills of everything, at random moments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.crash.conftest import House, Tell
from tests.crash.harness.storm import weather
from tests.support.chance import seeded

SHORT = 6.0
LONG = float(os.environ.get("PERDURE_PROOF_SECONDS", "150"))
SEED = int(os.environ.get("PERDURE_CRASH_SEED", "0")) or int.from_bytes(os.urandom(4), "big")


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.proof)], ids=["short", "long"])
def test_g2_g3_nothing_is_lost_and_nothing_is_done_under_a_lost_lease(
    house: House, tmp_path: Path, seconds: float, tell: Tell
) -> None:
    report, faults = weather(house, tmp_path, seconds, seeded(SEED))
    told = "\n".join(f"  {name}: {count}" for name, count in sorted(faults.items()))
    tell(f"{house.engine}, a storm of {seconds:g} s (PERDURE_CRASH_SEED={SEED})\n{told}\n{report.table()}")
    assert report.findings == (), report.told()
    if seconds > SHORT:  # in a short storm a matter of luck; `test_fence` makes one surely
        assert report.figures["stale writes tried"] > 0
    assert report.figures["jobs started more than once"] > 0
    assert report.figures["enqueues acknowledged"] > 20 * seconds
    assert report.figures["pictures of the leases"] > seconds
