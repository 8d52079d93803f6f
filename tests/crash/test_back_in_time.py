"""G3 in a database that went back in time, move by move: it forgets a claim, and gives the job to another worker.

A holds a job. The database becomes what it was a moment before: a standby was promoted that had not heard of the claim,
or a backup was restored. B takes the job. A, which knows nothing of all this, acknowledges while B still runs; then B
is let go. The same moves are made with workers whose tokens are only counted: the checker must notice.
"""

from __future__ import annotations

from pathlib import Path

from tests.crash.conftest import House
from tests.crash.harness.checker import Breach, Report, check
from tests.crash.harness.contents import read_contents, unfinished
from tests.crash.harness.fleet import Fleet
from tests.crash.harness.leases import LeaseSampler
from tests.support.databases.behind import query
from tests.support.databases.snapshot import Snapshot


def forget_and_give_again(house: House, folder: Path, *manners: str) -> tuple[Report, list[int]]:
    """Make the moves; what the checker says, and the tokens of A and B. `manners` are those of both."""
    with Fleet(house.url, folder) as fleet:
        a = fleet.worker("a", "quick", *manners)
        fleet.opened(a)
        let_claim(fleet, is_quiet=True)
        job = fleet.enqueue_hold(1)
        before = Snapshot(house.url)
        sampler = LeaseSampler(house.url)
        let_claim(fleet, is_quiet=False)
        first = fleet.started(job, a)
        let_claim(fleet, is_quiet=True)  # or A might be the one that takes it again
        before.put_back()
        b = fleet.worker("b", "quick", *manners)
        second = fleet.started(job, b)
        fleet.release("a")
        fleet.wait(lambda: fleet.book().stale[job] or unfinished(house.url) == 0)
        fleet.release("b")
        fleet.wait(lambda: unfinished(house.url) == 0)
        assert (a.end(), b.end()) == (0, 0)
        return check(fleet.book(), read_contents(house.url), sampler.stop()), [first.token, second.token]


def let_claim(fleet: Fleet, *, is_quiet: bool) -> None:
    """Ask the one worker to be quiet, or not to be, and wait until it is so."""
    moment = "1" if fleet.url.startswith("sqlite") else "now()"
    query(fleet.url, f"UPDATE {{worker}} SET quiet_at = {moment if is_quiet else 'NULL'}")
    fleet.wait(lambda: [(("quiet" if is_quiet else "open"),)] == query(fleet.url, "SELECT phase FROM {worker}"))


def test_g3_a_claim_that_the_database_has_lost_ends_no_other_lease(house: House, tmp_path: Path) -> None:
    report, [first, second] = forget_and_give_again(house, tmp_path)
    assert first < second
    assert report.breaches == {Breach.UNACCOUNTED: 1}, f"of A's start there can be no trace: {report.told()}"
    assert report.figures["stale writes tried"] == 1
    assert report.figures["succeeded"] == 1


def test_g3_the_checker_notices_when_tokens_are_only_counted(house: House, tmp_path: Path) -> None:
    report, [first, second] = forget_and_give_again(house, tmp_path, "counting")
    assert first == second
    assert report.breaches[Breach.SHARED_CLAIM] == 1, report.told()
    assert report.figures["stale writes tried"] == 1, "of B, whose lease A has ended"
