"""C4: a worker outlives its database, and what its handlers finished meanwhile is recorded, not done again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest
from tests.crash.conftest import House
from tests.crash.harness.checker import check
from tests.crash.harness.contents import read_contents, unfinished
from tests.crash.harness.fleet import Fleet
from tests.crash.harness.leases import LeaseWatch
from tests.support.databases.postgres import PostgresServer

JOBS = range(20)
LOCKED_FOR = 1.0
LEASE = 2.0


@contextmanager
def server_away(server: PostgresServer, how: str) -> Iterator[None]:
    getattr(server, how)()
    try:
        yield
    finally:
        server.start()


@contextmanager
def file_locked(url: str) -> Iterator[None]:
    link = apsw.Connection(urlsplit(url).path[1:])
    link.set_busy_timeout(10_000)
    link.execute("BEGIN EXCLUSIVE")
    try:
        yield
        time.sleep(LOCKED_FOR)
    finally:
        link.execute("ROLLBACK")
        link.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_c4_a_worker_goes_on_when_its_server_is_back(postgres_house: House, tmp_path: Path, how: str) -> None:
    assert postgres_house.server is not None
    with Fleet(postgres_house.url, tmp_path) as fleet:
        jobs = all_at_work(fleet)
        with server_away(postgres_house.server, how):
            let_all_end(fleet, jobs)
            fleet.wait(lambda: fleet.book().troubles["acknowledge"] >= 3)
        was_done_once(fleet, jobs)


@pytest.mark.proof
def test_c4_an_outage_longer_than_the_lease_costs_no_attempt(postgres_house: House, tmp_path: Path) -> None:
    assert postgres_house.server is not None
    with Fleet(postgres_house.url, tmp_path) as fleet:
        jobs = all_at_work(fleet, "calm")
        with server_away(postgres_house.server, "stop"):
            let_all_end(fleet, jobs)
            time.sleep(2 * LEASE)
        was_done_once(fleet, jobs)


def test_c4_a_worker_goes_on_when_the_file_is_free_again(sqlite_house: House, tmp_path: Path) -> None:
    with Fleet(sqlite_house.url, tmp_path) as fleet:
        jobs = all_at_work(fleet)
        with file_locked(sqlite_house.url):
            let_all_end(fleet, jobs)
        was_done_once(fleet, jobs)


def all_at_work(fleet: Fleet, *manners: str) -> list[str]:
    """One worker, and a handler in it for each job."""
    worker = fleet.worker("w", *manners)
    jobs = [fleet.enqueue_hold(number) for number in JOBS]
    for job in jobs:
        fleet.started(job, worker)
    return jobs


def let_all_end(fleet: Fleet, jobs: list[str]) -> None:
    fleet.release("w")
    fleet.wait(lambda: len(fleet.book().ends) == len(jobs))


def was_done_once(fleet: Fleet, jobs: list[str]) -> None:
    """Each handler has started once, its result is there, and the same worker takes the next job."""
    [worker] = fleet.members
    fleet.wait(lambda: unfinished(fleet.url) == 0)
    assert Counter(run.job for run in fleet.book().starts) == Counter(jobs)
    later = fleet.enqueue("nap", len(jobs), seconds=0.0)
    fleet.started(later, worker)
    fleet.wait(lambda: unfinished(fleet.url) == 0)
    report = check(fleet.book(), read_contents(fleet.url), LeaseWatch())
    assert report.findings == (), report.told()
    assert report.figures["succeeded"] == len(jobs) + 1
    assert report.figures["crashes recorded"] == 0
    assert worker.end() == 0
