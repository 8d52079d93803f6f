"""G3 and F5, move by move: a worker sleeps past its lease, another takes over, the first wakes and writes.

A holds a job and is stopped. Its lease runs out, B buries it, brings the job back and holds it in turn. A is woken and
acknowledges while B still runs; then B is let go. The same moves are made with a worker whose acknowledgement does not
look at the token: the checker must notice.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.conftest import House
from tests.crash.harness.checker import Breach, Report, check
from tests.crash.harness.contents import read_contents, unfinished
from tests.crash.harness.fleet import Fleet, stop_between_writes
from tests.crash.harness.leases import LeaseSampler
from tests.crash.programs.sabotage import POSTGRES_FENCES, SQLITE_FENCES, Fences, unfenced


def sleep_and_wake(house: House, folder: Path, *manners: str) -> tuple[Report, list[int]]:
    """Make the moves; what the checker says, and the tokens of A and B. `manners` are those of A."""
    with Fleet(house.url, folder) as fleet:
        job = fleet.enqueue_hold(1)
        sampler = LeaseSampler(house.url)
        a = fleet.worker("a", "quick", *manners)
        first = fleet.started(job, a)
        stop_between_writes(a, house.url)
        b = fleet.worker("b", "quick")
        second = fleet.started(job, b)
        fleet.release("a")
        a.wake()
        fleet.wait(lambda: fleet.book().stale[job] or unfinished(house.url) == 0)
        fleet.release("b")
        fleet.wait(lambda: unfinished(house.url) == 0)
        fleet.wait(lambda: fleet.book().lost_workers > 0)  # its next heartbeat tells it
        assert (a.end(), b.end()) == (0, 0)
        return check(fleet.book(), read_contents(house.url), sampler.stop()), [first.token, second.token]


def test_g3_f5_a_worker_that_slept_past_its_lease_changes_nothing(house: House, tmp_path: Path) -> None:
    report, [first, second] = sleep_and_wake(house, tmp_path)
    assert first < second
    assert report.findings == (), report.told()
    assert report.figures["stale writes tried"] == 1
    assert report.figures["workers that lost their lease"] == 1
    assert report.figures["succeeded"] == 1


def test_g3_the_checker_notices_when_the_token_check_is_taken_out(house: House, tmp_path: Path) -> None:
    report, [first, second] = sleep_and_wake(house, tmp_path, "unfenced")
    assert report.breaches[Breach.STALE_ACCEPTED] == 1, report.told()
    assert f"took the result of {first}" in report.told()
    assert str(second) in report.told()


@pytest.mark.parametrize("fences", [SQLITE_FENCES, POSTGRES_FENCES])
def test_a_sabotage_that_finds_nothing_to_take_out_says_so(fences: Fences) -> None:
    with pytest.raises(AssertionError, match="must be written anew"):
        unfenced("claims/acknowledgements.sql", {"finish": "DELETE FROM lease WHERE id = :id"}, fences)
