"""C14: copies of the database by a plan. The folder says what is due, and nothing good is lost for a bad one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND, enqueue
from tests.support.databases.behind import query

from perdure import BackupPlan, SettingsError, WorkerSettings
from perdure.clock import ManualClock
from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import BackupMade, Emitter, Event, LoopFailed
from perdure.policy.schedules.backup_plan import abandoned, backup_name, backup_time
from perdure.storage.port import Store
from perdure.upkeep.backups import LEAD, Backups

only_sqlite = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
only_postgres = pytest.mark.parametrize("engine_url", ["postgres"], indirect=True)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where copies go; it is not there yet."""
    return tmp_path / "deep" / "backups"


@pytest.fixture
def told() -> list[Event]:
    """Everything that was emitted."""
    return []


def keeper(store: Store, folder: Path, told: list[Event], holder: str = "w1", **plan: Any) -> Backups:
    emitter = Emitter()
    emitter.subscribe(told.append)
    return Backups(store, emitter, BackupPlan(folder, **plan), holder)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def write(folder: Path, strangers: list[str]) -> None:
    folder.mkdir(parents=True)
    for name in strangers:
        (folder / name).write_text("not ours")


@only_sqlite
async def test_c14_a_copy_is_made_when_the_newest_is_too_old(
    store: Store, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    await enqueue(store)
    backups = keeper(store, folder, told)
    first = await backups.tick()
    assert first.made is not None
    assert names(folder) == [backup_name(clock.now())]
    assert query(f"sqlite:///{first.made.path}", "SELECT count(*) FROM {job}") == [(1,)]
    assert told == [BackupMade(first.made.path, first.made.bytes, 1, first.made.seconds)]
    clock.move(DAY - SECOND)
    assert (await backups.tick()).made is None
    clock.move(SECOND)
    assert (await backups.tick()).made is not None
    assert len(names(folder)) == 2


@only_sqlite
async def test_a_restart_repeats_no_copy(store: Store, folder: Path, told: list[Event]) -> None:
    assert (await keeper(store, folder, told).tick()).made is not None
    assert (await keeper(store, folder, told).tick()).made is None
    assert len(names(folder)) == 1


@only_sqlite
async def test_the_oldest_go_once_a_new_one_is_there_and_nothing_else_does(
    store: Store, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    foreign = ["notes.txt", "perdure-20200101-000000.db.bak", "perdure-20201301-000000.db", "other-20200101-000000.db"]
    write(folder, foreign)
    backups = keeper(store, folder, told, keep=2)
    made = []
    for _ in range(4):
        assert (await backups.tick()).made is not None
        made.append(backup_name(clock.now()))
        clock.move(DAY)
    assert names(folder) == sorted([*foreign, *made[-2:]])


class Failing:
    """A store whose copies fail as they are told to."""

    def __init__(self, store: Store, error: Exception) -> None:
        self._store = store
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def back_up(self, _: str) -> None:
        raise self._error


@only_sqlite
async def test_a_failure_harms_no_older_copy_and_is_reported_once_between_two(
    store: Store, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    await keeper(store, folder, told).tick()
    good = names(folder)
    clock.move(DAY)
    told.clear()
    failing: Any = Failing(store, StoreRefused("the disk is full"))
    backups = keeper(failing, folder, told, keep=1)
    for _ in range(23):
        did = await backups.tick()
        assert (did.refused, backups.next_wait(did)) == (True, HOUR)
        clock.move(HOUR)
    assert names(folder) == good
    assert told == [LoopFailed("backups", "no backup: the disk is full")]
    clock.move(HOUR)
    await backups.tick()
    assert len(told) == 2


@only_sqlite
async def test_trouble_that_may_pass_is_left_to_the_loop(store: Store, folder: Path, told: list[Event]) -> None:
    failing: Any = Failing(store, StoreUnavailable("busy"))
    with pytest.raises(StoreUnavailable):
        await keeper(failing, folder, told).tick()
    assert await store.leaders() == [] or (await store.leaders())[0].until <= await store.now()


@only_sqlite
async def test_a_folder_that_cannot_be_made_is_reported(store: Store, tmp_path: Path, told: list[Event]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert (await keeper(store, tmp_path / "file" / "backups", told).tick()).refused
    [failed] = told
    assert isinstance(failed, LoopFailed)
    assert "file" in failed.error


@only_sqlite
async def test_of_two_processes_one_makes_the_copy(
    store: Store, other_store: OpenStore, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    await store.lead(LEAD, "w2", MINUTE)
    backups = keeper(store, folder, told)
    did = await backups.tick()
    assert (did.made, backups.next_wait(did)) == (None, MINUTE)
    assert names(folder) == []
    clock.move(MINUTE + SECOND)
    other = keeper(await other_store(), folder, told, holder="w2")
    assert (await backups.tick()).made is not None
    assert (await other.tick()).made is None
    assert (await store.lead(LEAD, "w3", MINUTE)).is_ours, "the lead is given up at once"


class Slow(Failing):
    """A store that answers who leads only after another worker has made the copy."""

    def __init__(self, store: Store, other: Backups) -> None:
        super().__init__(store, AssertionError("a second copy"))
        self._other = other

    async def lead(self, name: str, holder: str, lease: timedelta) -> Any:
        await self._other.tick()
        return await self._store.lead(name, holder, lease)


@only_sqlite
async def test_a_new_leader_checks_again(store: Store, folder: Path, told: list[Event]) -> None:
    late: Any = Slow(store, keeper(store, folder, told, holder="w2"))
    assert (await keeper(late, folder, told).tick()).made is None
    assert len(names(folder)) == 1


@only_sqlite
async def test_the_next_look_is_when_a_copy_is_due_or_in_a_minute(
    store: Store, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    backups = keeper(store, folder, told, every="10m")
    assert backups.next_wait(await backups.tick()) == MINUTE
    clock.move(9 * MINUTE + 30 * SECOND)
    assert backups.next_wait(await backups.tick()) == 30 * SECOND


@only_postgres
async def test_on_postgresql_the_engines_advice_is_reported_once(
    store: Store, clock: ManualClock, folder: Path, told: list[Event]
) -> None:
    backups = keeper(store, folder, told)
    for _ in range(3):
        assert (await backups.tick()).refused
        clock.move(HOUR)
    [failed] = told
    assert isinstance(failed, LoopFailed)
    assert "pg_dump" in failed.error
    assert names(folder) == []


def test_a_copy_from_the_future_says_nothing_and_is_no_reason_to_lose_the_new_one() -> None:
    plan = BackupPlan("backups", keep=1)
    future, new = backup_name(NOON + HOUR), backup_name(NOON)
    assert plan.due_in([future], NOON) == timedelta(0)
    assert plan.due_in([future, new], NOON + MINUTE) == DAY - MINUTE
    assert plan.superfluous([future, new], new) == [future]


def test_drafts_of_processes_that_died_go_after_a_day() -> None:
    old, young = f".{backup_name(NOON - DAY)}.0123abcd.part", f".{backup_name(NOON - HOUR)}.0123abcd.part"
    others = [".hidden.part", f"{backup_name(NOON - 9 * DAY)}.part", backup_name(NOON - 9 * DAY)]
    assert abandoned([old, f"{old}-wal", young, *others], NOON) == [old, f"{old}-wal"]


def test_a_name_shows_the_time_in_utc() -> None:
    assert backup_name(datetime.fromisoformat("2026-03-01T13:00:05+01:00")) == "perdure-20260301-120005.db"
    assert backup_time("perdure-20260301-120005.db") == NOON + 5 * SECOND
    for foreign in ("perdure.db", "perdure-20260301-120005.db-wal", "perdure-20269901-120005.db", "٢perdure-2026.db"):
        assert backup_time(foreign) is None


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ({"to": ""}, "backup.to"),
        ({"to": None}, "backup.to"),
        ({"to": "b", "every": "1x"}, "backup.every"),
        ({"to": "b", "every": "59s"}, "backup.every"),
        ({"to": "b", "keep": 0}, "backup.keep"),
        ({"to": "b", "keep": True}, "backup.keep"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_by_name(plan: dict[str, Any], field: str) -> None:
    with pytest.raises(SettingsError) as caught:
        BackupPlan(**plan)
    assert caught.value.field == field


def test_a_worker_takes_a_plan_and_nothing_else() -> None:
    plan = BackupPlan(Path("backups"), every="12h")
    assert (WorkerSettings(backup=plan).backup, plan.to, plan.every) == (plan, "backups", timedelta(hours=12))
    wrong: Any = "backups"
    with pytest.raises(SettingsError, match=r"worker\.backup"):
        WorkerSettings(backup=wrong)
