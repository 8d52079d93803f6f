"""What the engines say of themselves, judged at its edges and looked at on real databases."""

from __future__ import annotations

import pytest
from tests.support.databases.behind import query

from perdure.engines.postgres.operate import diagnosis as postgres
from perdure.engines.sqlite.operate import diagnosis as sqlite
from perdure.storage.operate.diagnosis import Severity
from perdure.storage.port import Store

OK, WARNING, PROBLEM = Severity.OK, Severity.WARNING, Severity.PROBLEM


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ((3, 40, 1), WARNING),
        ((3, 44, 5), WARNING),
        ((3, 44, 6), OK),
        ((3, 45, 0), WARNING),
        ((3, 50, 6), WARNING),
        ((3, 50, 7), OK),
        ((3, 51, 2), WARNING),
        ((3, 51, 3), OK),
        ((3, 54, 1), OK),
    ],
)
def test_the_wal_reset_bug_is_known_by_version(version: tuple[int, int, int], severity: Severity) -> None:
    finding = sqlite.judge_library("sqlite3", version)
    assert finding.severity is severity
    assert bool(finding.advice) is (severity is WARNING)


@pytest.mark.parametrize(
    ("mode", "level", "severity"),
    [("wal", 2, OK), ("wal", 3, OK), ("wal", 1, PROBLEM), ("wal", 0, PROBLEM), ("delete", 2, PROBLEM)],
)
def test_an_sqlite_file_that_may_forget_is_a_problem(mode: str, level: int, severity: Severity) -> None:
    assert sqlite.judge_durability(mode, level).severity is severity


@pytest.mark.parametrize(("kind", "severity"), [("ext4", OK), ("", OK), ("tmpfs", WARNING)])
def test_a_file_in_memory_is_worth_a_warning(kind: str, severity: Severity) -> None:
    assert sqlite.judge_place("/x/perdure.db", "/x", kind).severity is severity


@pytest.mark.parametrize(("megabytes", "severity"), [(0, OK), (128, OK), (129, WARNING)])
def test_a_long_log_is_worth_a_warning(megabytes: int, severity: Severity) -> None:
    assert sqlite.judge_log(megabytes * 1024 * 1024).severity is severity


@pytest.mark.parametrize(("free", "severity"), [(2**40, OK), (2**29, WARNING), (2**20, PROBLEM)])
def test_a_full_disk_is_reported_before_it_is_full(free: int, severity: Severity) -> None:
    assert sqlite.judge_room(free).severity is severity


@pytest.mark.parametrize(
    ("fsync", "pages", "commit", "severity"),
    [
        ("on", "on", "on", OK),
        ("on", "on", "off", OK),
        ("off", "on", "on", PROBLEM),
        ("on", "off", "on", PROBLEM),
    ],
)
def test_a_server_that_may_forget_is_a_problem(fsync: str, pages: str, commit: str, severity: Severity) -> None:
    settings = {"fsync": fsync, "full_page_writes": pages, "synchronous_commit": commit}
    assert postgres.judge_durability(settings).severity is severity


@pytest.mark.parametrize(("live", "dead", "severity"), [(0, 50_000, OK), (0, 50_001, WARNING), (20_000, 60_000, OK)])
def test_vacuum_that_does_not_keep_up_is_reported(live: int, dead: int, severity: Severity) -> None:
    assert postgres.judge_bloat({"ready": (live, dead)}).severity is severity


@pytest.mark.parametrize(("seconds", "severity"), [(299.0, OK), (300.0, WARNING)])
def test_an_old_transaction_is_reported_with_its_process(seconds: float, severity: Severity) -> None:
    finding = postgres.judge_snapshot(4711, "report", "idle in transaction", seconds)
    assert finding.severity is severity
    assert ("4711" in finding.seen) is (severity is WARNING)


@pytest.mark.parametrize(("used", "severity"), [(10, OK), (89, OK), (91, WARNING), (97, PROBLEM)])
def test_running_out_of_connections_is_reported(used: int, severity: Severity) -> None:
    assert postgres.judge_connections(used, 100).severity is severity


async def test_an_engine_examines_itself(store: Store, engine_url: str) -> None:
    findings = {finding.check: finding for finding in await store.diagnose()}
    if engine_url.startswith("sqlite"):
        assert findings.keys() == {"library", "durability", "file system", "write-ahead log", "disk"}
        assert findings["library"].severity is OK
        assert findings["durability"].seen == "journal_mode=wal, synchronous=FULL"
    else:
        assert findings.keys() == {"version", "durability", "dead rows", "snapshots", "connections", "pooler"}
        [[fsync]] = query(engine_url, "SHOW fsync")
        assert findings["durability"].severity is (PROBLEM if fsync == "off" else OK)
