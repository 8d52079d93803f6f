"""Two SQLite libraries, one at a time."""

from __future__ import annotations

import asyncio

import apsw
import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    MINUTE,
    a_job,
    a_key,
    a_worker,
    claim_one,
    claim_some,
    employ,
    enqueue,
    show,
)
from tests.support.crew import SIZE, Crew, Ready

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.engines.sqlite.database import database
from perdure.engines.sqlite.database.drivers import DRIVERS, connect, library_version, library_warning
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import SettingsError, StoreRefused
from perdure.storage.records import JobFilter, Page, Wanted

JOBS = 400


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_life_through_either_library(path: str, clock: ManualClock, driver: str) -> None:
    """Keys, a failure, a wait, a death, a requeue and a success, in batches and alone."""
    store = SqliteStore(path, driver=driver, clock=clock)
    await store.open()
    try:
        await store.migrate()
        worker_id = await employ(store)
        job_id = await enqueue(store, unique=a_key(), tags=("a", "b"), meta='{"k":1}')
        [receipt] = await store.insert([a_job(unique=a_key())])
        assert (receipt.job_id, receipt.intake) == (job_id, Intake.EXISTING)
        claim = await claim_one(store, worker_id)
        await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)])
        clock.move(MINUTE)
        assert (await store.promote(10)).by_queue == {"default": 1}
        claim = await claim_one(store, worker_id)
        await store.acknowledge([transition.died(claim, Reason.EXHAUSTED, A_FAILURE)])
        assert (await show(store, job_id)).last_error == "builtins.ValueError: no such host"
        found = await store.jobs(JobFilter(error="NO SUCH", tag="b"), Page())
        assert [view.id for view in found] == [job_id]
        assert await store.requeue(JobFilter(), By("ops"), 10) == [job_id]
        await store.insert([a_job() for _ in range(50)])
        claims = await claim_some(store, worker_id, 100)
        done = await store.acknowledge([transition.succeeded(claim, '"ok"', ("slow",)) for claim in claims])
        assert (done.applied, done.stale) == (51, ())
        assert [(count.state, count.jobs) for count in await store.counts()] == [(JobState.SUCCEEDED, 51)]
    finally:
        await store.close()


@pytest.mark.parametrize(("first", "second"), [("apsw", "sqlite3"), ("sqlite3", "apsw")])
async def test_a_second_library_on_an_open_file_is_refused(path: str, first: str, second: str) -> None:
    one, two = SqliteStore(path, driver=first), SqliteStore(path, driver=second)
    await one.open()
    with pytest.raises(StoreRefused, match=f"open through {first}.*driver={first}"):
        await two.open()
    await one.close()
    await two.open()
    await two.close()


async def test_the_same_file_by_another_name_is_the_same_file(
    path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link.db"
    link.symlink_to(path)
    one, two = SqliteStore(path), SqliteStore(str(link), driver="sqlite3")
    await one.open()
    with pytest.raises(StoreRefused, match="second SQLite library"):
        await two.open()
    await one.close()


def test_an_unknown_driver_is_refused_by_name(path: str) -> None:
    with pytest.raises(SettingsError, match="driver must be apsw or sqlite3, got 'sqlite4'"):
        SqliteStore(path, driver="sqlite4")


@pytest.mark.parametrize("version", [(3, 51, 3), (3, 52, 0), (3, 50, 7), (3, 50, 9), (3, 44, 6), (4, 0, 0)])
def test_a_mended_library_gets_no_warning(version: tuple[int, int, int]) -> None:
    assert library_warning("sqlite3", version) is None


@pytest.mark.parametrize("version", [(3, 40, 1), (3, 44, 5), (3, 45, 9), (3, 50, 6), (3, 51, 2)])
def test_a_library_with_the_wal_reset_bug_is_warned_of(version: tuple[int, int, int]) -> None:
    warning = library_warning("sqlite3", version)
    assert warning is not None
    assert "WAL-reset bug" in warning
    assert "driver=apsw" in warning


def test_the_default_library_is_a_mended_one() -> None:
    assert library_warning("apsw") is None
    assert library_version("apsw") >= (3, 51, 3)


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_connection_is_durable(path: str, driver: str) -> None:
    store = SqliteStore(path, driver=driver)
    link = store._database.connect()
    try:
        assert link.run("PRAGMA journal_mode") == [("wal",)]
        assert link.run("PRAGMA synchronous") == [(2,)]
    finally:
        link.close()


@pytest.mark.parametrize("driver", DRIVERS)
async def test_no_job_is_handed_out_twice(path: str, crew: Crew, driver: str) -> None:
    """Four processes claim and finish at once until nothing is left."""
    store = SqliteStore(path, driver=driver)
    await store.open()
    await store.migrate()
    jobs = [a_job() for _ in range(JOBS)]
    await store.insert(jobs)
    taken = await asyncio.to_thread(crew.together, take_all, [(path, driver, number) for number in range(SIZE)])
    finished = await store.jobs(JobFilter(states=frozenset({JobState.SUCCEEDED})), Page(limit=JOBS + 1))
    await store.close()
    assert sorted(job_id for batch in taken for job_id in batch) == sorted(job.id for job in jobs)
    assert len(finished) == JOBS


def take_all(ready: Ready, path: str, driver: str, number: int) -> list[JobId]:
    async def take() -> list[JobId]:
        store = SqliteStore(path, driver=driver)
        await store.open()
        taken: list[JobId] = []
        try:
            worker_id = await store.register(a_worker(name=f"worker-{number}"))
            await asyncio.to_thread(ready)
            while claims := await store.claim(worker_id, [Wanted("default", 7)]):
                done = await store.acknowledge([transition.succeeded(claim, None, ()) for claim in claims])
                assert (done.applied, done.stale) == (len(claims), ())
                taken += [claim.job_id for claim in claims]
        finally:
            await store.close()
        return taken

    return asyncio.run(take())


def test_a_driver_distinguishes_changes_from_rows(path: str) -> None:
    for driver in DRIVERS:
        link = connect(driver, f"{path}-{driver}")
        link.run("CREATE TABLE t (a)")
        assert link.change("INSERT INTO t VALUES (?), (?)", (1, 2)) == 2
        assert link.change("UPDATE t SET a = :a", {"a": 3}) == 2
        assert link.run("SELECT a FROM t") == [(3,), (3,)]
        link.close()


def test_a_plan_does_not_depend_on_what_is_bound(path: str) -> None:
    """Else SQLite plans a claim anew each time that it runs, which takes far longer than the claim."""
    connection = connect("apsw", path)
    try:
        assert connection.raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    finally:
        connection.close()


async def test_a_process_warns_of_its_library_once(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "library_warning", lambda driver: f"{driver} is old")
    database._warn_once.cache_clear()
    try:
        for _ in range(3):
            store = SqliteStore(path, driver="sqlite3")
            await store.open()
            await store.close()
    finally:
        database._warn_once.cache_clear()
    assert [record.getMessage() for record in caplog.records] == ["sqlite3 is old"]
