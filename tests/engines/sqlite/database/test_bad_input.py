"""What cannot work is refused with what to do about it, and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest
from tests.support.builders.jobs import A_FAILURE, MINUTE, a_job, a_key, claim_one, claim_some, employ, enqueue, show

from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.engines.sqlite.database import files
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import ArgumentError, StoreRefused
from perdure.storage.records import JobFilter, Page

HALF = "half \ud800 and \x00"


async def refusal(path: Path | str) -> str:
    store = SqliteStore(str(path))
    with pytest.raises(StoreRefused) as refused:
        await store.open()
    await store.close()
    return str(refused.value)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert "does not exist: create it first" in await refusal(tmp_path / "nowhere" / "perdure.db")


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert "this is a folder" in await refusal(tmp_path)


async def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear all, this is no database. " * 100)
    assert "not an SQLite database" in await refusal(letter)
    assert letter.read_text().startswith("Dear all")


def scribble_over(path: str) -> None:
    """Every page but the first becomes nonsense."""
    pages = Path(path).stat().st_size // 4096
    with Path(path).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * (pages - 1))


async def test_a_damaged_database_is_reported_as_such(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.migrate()
    await store.insert([a_job() for _ in range(2_000)])
    await store.close()
    scribble_over(path)
    assert "damaged: stop all writers and restore it from a backup" in await refusal(path)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_refused(tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"23 22 0:40 / /srv/my\\040share rw,relatime shared:1 - {kind} server:/share rw\n"
        "24 23 0:41 / /srv/my\\040share/local rw - xfs /dev/sdb1 rw\n"
    )
    with pytest.raises(StoreRefused, match=rf"network file system \({kind}\).*local disk, or PostgreSQL"):
        files.refuse_network("/srv/my share/perdure.db", mounts)
    files.refuse_network("/srv/my share/local/perdure.db", mounts)
    files.refuse_network("/srv/my shares/perdure.db", mounts)


async def test_a_full_disk_refuses_and_loses_nothing(sqlite: SqliteStore) -> None:
    """What was acknowledged stays, what did not fit is rolled back, and with room it goes on."""
    kept = await enqueue(sqlite)
    database = sqlite._database
    [(pages,)] = await database.write(lambda transaction: transaction.run("PRAGMA page_count"))
    await database.write(lambda transaction: transaction.run(f"PRAGMA max_page_count = {pages + 2}"))
    large = [a_job(args='"' + "x" * 50_000 + '"') for _ in range(10)]
    with pytest.raises(StoreRefused, match="disk is full: make room"):
        await sqlite.insert(large)
    assert [view.id for view in await sqlite.jobs(JobFilter(), Page())] == [kept]
    await database.write(lambda transaction: transaction.run("PRAGMA max_page_count = 1000000"))
    assert {receipt.intake for receipt in await sqlite.insert(large)} == {Intake.NEW}


async def test_a_large_neighbour_that_finds_no_room_does_not_harm_a_small_one(sqlite: SqliteStore, path: str) -> None:
    database = sqlite._database
    [(pages,)] = await database.write(lambda transaction: transaction.run("PRAGMA page_count"))
    await database.write(lambda transaction: transaction.run(f"PRAGMA max_page_count = {pages + 2}"))
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    work = [sqlite.insert([a_job(args='"' + "x" * 50_000 + '"')]), sqlite.insert([a_job()])]
    tasks = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(0)
    other.close()
    large, small = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    assert isinstance(large, StoreRefused)
    assert isinstance(small, list)
    assert small[0].intake is Intake.NEW


@pytest.mark.parametrize("field", ["kind", "queue", "args", "meta"])
@pytest.mark.parametrize("company", [0, 3])
async def test_half_a_character_is_refused_by_name(sqlite: SqliteStore, field: str, company: int) -> None:
    jobs = [a_job() for _ in range(company)] + [a_job(**{field: "half \ud800"})]
    with pytest.raises(ArgumentError, match=f"{field} contains half a surrogate pair"):
        await sqlite.insert(jobs)
    assert await sqlite.jobs(JobFilter(), Page()) == []


async def test_an_error_of_unreadable_text_is_recorded_all_the_same(sqlite: SqliteStore) -> None:
    """A batch of acknowledgements must not fail for ever because of what one error said."""
    await sqlite.insert([a_job(), a_job()])
    worker_id = await employ(sqlite)
    first, second = await claim_one(sqlite, worker_id), await claim_one(sqlite, worker_id)
    failure = Failure(HALF, HALF, HALF)
    done = await sqlite.acknowledge(
        [
            transition.retrying(first, Reason.FAILED, failure, MINUTE),
            transition.succeeded(second, None, (HALF,)),
        ]
    )
    assert done.applied == 2
    [attempt] = await sqlite.attempts(first.job_id)
    assert attempt.message == "half ? and \N{REPLACEMENT CHARACTER}"
    assert (await show(sqlite, second.job_id)).warnings == (attempt.message,)


async def test_a_poisoned_row_does_not_hide_the_others(sqlite: SqliteStore, path: str) -> None:
    """Text that is no UTF-8, written by other hands, comes out marked, and its neighbours unharmed."""
    good, bad = await enqueue(sqlite), await enqueue(sqlite)
    other = apsw.Connection(path)
    other.execute("UPDATE perdure_job SET args = CAST(x'22ff22' AS TEXT) WHERE id = ?", (bad,))
    other.close()
    seen = {view.id: view.args for view in await sqlite.jobs(JobFilter(), Page())}
    assert seen == {good: '{"name":"Ada"}', bad: '"\N{REPLACEMENT CHARACTER}"'}
    worker_id = await employ(sqlite)
    claims = [await claim_one(sqlite, worker_id), await claim_one(sqlite, worker_id)]
    assert {claim.job_id for claim in claims} == {good, bad}
    await sqlite.acknowledge([transition.died(claim, Reason.BAD_ARGUMENTS, A_FAILURE) for claim in claims])
    assert (await show(sqlite, bad)).state is JobState.DEAD


async def test_tags_and_states_that_cannot_be_read_strand_no_other_job(sqlite: SqliteStore, path: str) -> None:
    """Tags that other hands have damaged, and a state that only a newer release knows."""
    good, bad = await enqueue(sqlite, tags=("a",)), await enqueue(sqlite, tags=("b",), unique=a_key())
    other = apsw.Connection(path)
    other.execute(
        "UPDATE perdure_job SET tags = 'no list', unique_states = unique_states || ',dreaming' WHERE id = ?", (bad,)
    )
    other.close()
    assert {view.id: view.tags for view in await sqlite.jobs(JobFilter(), Page())} == {good: ("a",), bad: ()}
    [first, second] = await claim_some(sqlite, await employ(sqlite))
    assert (first.job_id, first.tags, second.job_id, second.tags) == (good, ("a",), bad, ())
    assert second.unique == a_key()
    done = await sqlite.acknowledge([transition.succeeded(claim, None, ()) for claim in (first, second)])
    assert done.applied == 2
