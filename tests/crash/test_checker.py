"""The checker finds each breach in a ledger made by hand; otherwise a clean report would prove nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.crash.harness.checker import Breach, Report, check
from tests.crash.harness.contents import Contents, Record, Standing
from tests.crash.harness.leases import LeaseWatch, Seen
from tests.crash.harness.ledger import Book

WANTED = ["want a p1"]
ENQUEUED = [*WANTED, "enqueued a new"]
DONE_FIRST_TIME = [*ENQUEUED, "start a 1 1 70 100", "end a 1 1 70 200"]
RESCUED = [*ENQUEUED, "start a 1 1 70 100", "start a 2 2 71 300", "end a 2 2 71 400"]
CRASH = Record("a", 1, "process crashed")


def succeeded(token: int | None, crashes: int = 0, failures: int = 0) -> Standing:
    return Standing("a", "finished", "succeeded", "done", failures, crashes, token)


def dead(reason: str = "crash limit reached", crashes: int = 1) -> Standing:
    return Standing("a", "finished", "dead", reason, 0, crashes)


def checked(
    lines: Sequence[str],
    *standings: Standing,
    records: Sequence[Record] = (),
    pictures: Sequence[Sequence[Seen]] = (),
    stored: bool = True,
    limit: int = 3,
) -> Report:
    watch = LeaseWatch()
    for picture in pictures:
        watch.see(picture)
    contents = Contents({"a": limit} if stored else {}, standings, tuple(records))
    return check(Book.of(list(lines)), contents, watch)


@pytest.mark.parametrize(
    "report",
    [
        checked(DONE_FIRST_TIME, succeeded(1), pictures=[[("a", 1, 7, True)], []]),
        checked(
            RESCUED, succeeded(2, crashes=1), records=[CRASH], pictures=[[("a", 1, 7, False)], [("a", 2, 8, True)]]
        ),
        checked([*RESCUED, "end a 1 1 70 500", "stale a"], succeeded(2, crashes=1), records=[CRASH]),
        checked(
            [*ENQUEUED, "start a 1 1 70 100"],
            dead(crashes=2),
            records=[CRASH, Record("a", 2, "crash limit reached")],
            limit=2,
        ),
        checked(RESCUED, succeeded(2, failures=1), records=[Record("a", 1, "failed")]),
        checked([*DONE_FIRST_TIME, "enqueued a existing"], succeeded(1)),
        checked(WANTED, stored=False),
        checked([*WANTED, *DONE_FIRST_TIME[2:]], succeeded(1)),
    ],
    ids=[
        "done at once",
        "done after a crash",
        "a stale write that was refused",
        "dead by crash limit",
        "done after a failure",
        "enqueued twice, one job",
        "wanted and not stored",
        "stored although nobody was told",
    ],
)
def test_nothing_is_found_where_all_is_well(report: Report) -> None:
    assert report.findings == ()


@pytest.mark.parametrize(
    ("report", "breach"),
    [
        (checked(ENQUEUED, stored=False), Breach.LOST),
        (checked(ENQUEUED), Breach.LOST),
        (checked(ENQUEUED, Standing("a", "ready", "ready", "", 0, 0)), Breach.LOST),
        (checked(DONE_FIRST_TIME, succeeded(1), Standing("a", "ready", "ready", "", 0, 0)), Breach.DOUBLED),
        (checked([*DONE_FIRST_TIME, "enqueued a new"], succeeded(1)), Breach.DOUBLED),
        (checked(DONE_FIRST_TIME[2:], succeeded(1)), Breach.INVENTED),
        (checked(ENQUEUED, dead("attempts exhausted"), records=[CRASH]), Breach.WRONG_END),
        (checked(ENQUEUED, dead(), records=[Record("a", 1, "crash limit reached")]), Breach.WRONG_END),
        (checked(ENQUEUED, Standing("a", "finished", "cancelled", "cancelled", 0, 0)), Breach.WRONG_END),
        (checked(DONE_FIRST_TIME, succeeded(1), pictures=[[("a", 1, 7, True), ("a", 2, 8, True)]]), Breach.TWO_LEASES),
        (checked(RESCUED, succeeded(2), pictures=[[("a", 2, 8, True)], [("a", 1, 7, True)]]), Breach.TWO_LEASES),
        (checked(RESCUED, succeeded(2), pictures=[[("a", 2, 8, True)], [("a", 2, 7, True)]]), Breach.TWO_LEASES),
        (checked([*DONE_FIRST_TIME, "start a 1 1 71 150"], succeeded(1)), Breach.SHARED_CLAIM),
        (checked([*RESCUED, "end a 1 1 70 500"], succeeded(1, crashes=1), records=[CRASH]), Breach.STALE_ACCEPTED),
        (checked(DONE_FIRST_TIME, succeeded(1, crashes=1), records=[CRASH]), Breach.STALE_ACCEPTED),
        (checked(DONE_FIRST_TIME, succeeded(1), pictures=[[("a", 2, 8, True)]]), Breach.STALE_ACCEPTED),
        (checked(ENQUEUED, succeeded(1)), Breach.UNPROVEN),
        (checked(DONE_FIRST_TIME, succeeded(None)), Breach.UNPROVEN),
        (checked(RESCUED, succeeded(2)), Breach.UNACCOUNTED),
        (checked(RESCUED, succeeded(2, crashes=2), records=[CRASH]), Breach.MISCOUNTED),
        (checked(RESCUED, succeeded(2), records=[CRASH]), Breach.MISCOUNTED),
    ],
)
def test_each_breach_is_found(report: Report, breach: Breach) -> None:
    assert breach in report.breaches
    assert str(breach) in report.told()


def test_a_line_that_no_program_writes_is_reported() -> None:
    with pytest.raises(ValueError, match="not a line of the ledger"):
        Book.of(["strat a 1 1 70 100"])


def test_figures_count_what_happened() -> None:
    lines = [*RESCUED, "end a 1 1 70 500", "stale a", "unsure 2", "lost 70", "open 70 w1"]
    figures = checked(lines, succeeded(2, crashes=1), records=[CRASH], pictures=[[], []]).figures
    assert figures["stale writes tried"] == 1
    assert figures["jobs started more than once"] == 1
    assert figures["acknowledgements repeated after a lost answer"] == 2
    assert (figures["lost"], figures["two live leases"], figures["stale writes accepted"]) == (0, 0, 0)
