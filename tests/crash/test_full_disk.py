"""A full disk under SQLite: enqueue is refused by name, nothing is lost, and all goes on when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.harness.checker import check
from tests.crash.harness.contents import read_contents, unfinished
from tests.crash.harness.fleet import Fleet
from tests.crash.harness.leases import LeaseWatch

from perdure import StoreRefused

TRIES = 5  # as many as are made for a record that is refused by itself


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True, timeout=30).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


def fill(disk: Path) -> Path:
    """Leave no room."""
    stuffing = disk / "stuffing"
    with stuffing.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return stuffing


def test_a_full_disk_refuses_new_jobs_and_loses_none(small_disk: Path, tmp_path: Path) -> None:
    with Fleet(f"sqlite:///{small_disk / 'perdure.db'}", tmp_path) as fleet:
        for number in range(20):
            fleet.enqueue("nap", number, seconds=0.0)
        stuffing = fill(small_disk)
        refused = fill_the_log(fleet, 20)
        assert "the disk is full: make room" in str(refused)
        stuffing.unlink()
        fleet.enqueue("nap", 20_000, seconds=0.0)
        worker = fleet.worker("w")
        fleet.wait(lambda: unfinished(fleet.url) == 0)
        assert worker.end() == 0
        report = check(fleet.book(), read_contents(fleet.url), LeaseWatch())
    assert report.findings == (), report.told()


def fill_the_log(fleet: Fleet, number: int) -> StoreRefused:
    """Enqueue until it is refused: the log has room in pages that it has written before."""
    for more in range(number, number + 10_000):
        try:
            fleet.enqueue("nap", more, seconds=0.0)
        except StoreRefused as refused:
            return refused
    raise AssertionError("a full disk took 10,000 jobs")


def test_results_wait_until_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    """A handler that ended while the disk was full is not run again, however long that took."""
    with Fleet(f"sqlite:///{small_disk / 'perdure.db'}", tmp_path) as fleet:
        worker = fleet.worker("w")
        jobs = [fleet.enqueue_hold(number) for number in range(20)]
        for job in jobs:
            fleet.started(job, worker)
        stuffing = fill(small_disk)
        fill_the_log(fleet, 20)
        fleet.release("w")
        fleet.wait(lambda: {run.job for run in fleet.book().ends} >= set(jobs))
        fleet.wait(lambda: fleet.book().troubles["acknowledge"] > TRIES)
        stuffing.unlink()
        fleet.wait(lambda: unfinished(fleet.url) == 0)
        assert all(run.pid == worker.pid for run in fleet.book().starts)
        assert worker.end() == 0
        report = check(fleet.book(), read_contents(fleet.url), LeaseWatch())
    assert report.findings == (), report.told()
    assert report.figures["crashes recorded"] == 0
