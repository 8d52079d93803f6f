"""What only this engine's schedules and leaders have: locks that are waited for, and snapshots older than the wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
import pytest
from msgspec.structs import replace
from tests.engines.postgres.conftest import Ask, eventually
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND, a_job, a_key, enqueue, show
from tests.support.builders.schedules import a_schedule

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, Cause, Fate, Firing, Overlap
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import StoreRefused
from perdure.storage.schedules import Timed

T = TypeVar("T")
WAITING = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"


async def make(store: PostgresStore, *names: str) -> datetime:
    """Make schedules that are due, and tell since when."""
    due_at = (await store.now()).replace(microsecond=0) - SECOND
    for name in names:
        await store.save_schedule(Timed(a_schedule(name), due_at), By("ops"))
    return due_at


def step(name: str, due_at: datetime, **changes: Any) -> Advance:
    """The step that a scheduler would take of a schedule made by `make`."""
    plain = Advance(
        name=name,
        version=1,
        overlap=Overlap.SKIP,
        expected=due_at,
        next_at=due_at + DAY,
        firings=(Firing(nominal_at=due_at, job=a_job()),),
    )
    return replace(plain, **changes)


@asynccontextmanager
async def behind(
    doing: Awaitable[T], other: psycopg.Connection[Any], ask: Ask, schema: str
) -> AsyncIterator[asyncio.Future[T]]:
    """Let the store run into a lock of another session, and commit that one at the end."""
    answer = asyncio.ensure_future(doing)

    async def waits() -> object:
        return ask(WAITING, schema)

    try:
        await eventually(waits)
        yield answer
        other.commit()
        await asyncio.wait_for(answer, 10)
    finally:
        answer.cancel()


@pytest.fixture
def other(postgres_url: str, schema: str, pg_store: PostgresStore) -> Any:
    """Another session in the schema, in a transaction of its own."""
    with psycopg.connect(postgres_url, options=f"-c search_path={schema}") as connection:
        yield connection


async def test_two_that_fire_the_same_schedules_cannot_wait_for_each_other(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str
) -> None:
    """While it waits for the first schedule of all, it holds none that another transaction might take before."""
    due_at = await make(pg_store, "a", "b", "c")
    other.execute("SELECT FROM schedule WHERE name = 'a' FOR UPDATE")
    steps = [step(name, due_at) for name in ("c", "b", "a")]
    async with behind(pg_store.fire(steps), other, ask, schema) as answer:
        assert ask("SELECT name FROM schedule ORDER BY name FOR UPDATE SKIP LOCKED") == [("b",), ("c",)]
    assert [fire.schedule for fire in answer.result()] == ["c", "b", "a"]


async def test_g6_who_waited_finds_the_schedule_moved_on(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str
) -> None:
    due_at = await make(pg_store, "a", "b")
    other.execute("UPDATE schedule SET next_at = next_at + interval '1 minute' WHERE name = 'a'")
    async with behind(pg_store.fire([step("a", due_at), step("b", due_at)]), other, ask, schema) as answer:
        pass
    assert [fire.schedule for fire in answer.result()] == ["b"]
    assert ask("SELECT schedule FROM fire") == [("b",)]
    assert ask("SELECT count(*) FROM job") == [(1,)]
    view = await pg_store.schedule("a")
    assert view is not None
    assert (view.next_at, view.last_at, view.last_job_id) == (due_at + MINUTE, None, None)


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.CANCEL])
async def test_who_waited_minds_the_job_that_was_made_meanwhile(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str, overlap: Overlap
) -> None:
    """An operator triggers the schedule while its own time comes: the job is in no snapshot from before the wait."""
    due_at = await make(pg_store, "a")
    job = a_job()
    other.execute("UPDATE schedule SET last_job_id = %s WHERE name = 'a'", [job.id])
    other.execute(
        "INSERT INTO job (id, kind, queue, priority, args, created_at, crash_limit)"
        " VALUES (%s, 'k', 'default', 5, '{}', now(), 3)",
        [job.id],
    )
    other.execute("INSERT INTO ready (queue, priority, job_id, since) VALUES ('default', 5, %s, now())", [job.id])
    async with behind(pg_store.fire([step("a", due_at, overlap=overlap)]), other, ask, schema) as answer:
        pass
    [fire] = answer.result()
    assert fire.fate is (Fate.OVERLAPPED if overlap is Overlap.SKIP else Fate.FIRED)
    state = (await show(pg_store, job.id)).state
    assert state is (JobState.READY if overlap is Overlap.SKIP else JobState.CANCELLED)


async def test_a_delete_waits_for_a_firing_of_the_schedule_and_leaves_no_record(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str
) -> None:
    due_at = await make(pg_store, "a")
    other.execute("SELECT FROM schedule WHERE name = 'a' FOR UPDATE")
    other.execute("INSERT INTO fire VALUES ('a', %s, 'missed', 'time', now(), NULL)", [due_at])
    async with behind(pg_store.delete_schedule("a", By("ops")), other, ask, schema) as answer:
        pass
    assert answer.result()
    assert ask("SELECT count(*) FROM fire") == [(0,)]


async def test_five_hundred_schedules_take_as_many_statements_as_one(
    pg_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s{number:03}" for number in range(500)]
    due_at = (await pg_store.now()).replace(microsecond=0) - SECOND
    await pg_store.declare_schedules([Timed(a_schedule(name), due_at) for name in names])
    asked: list[str] = []
    fetch = Wire.fetch

    async def counted(wire: Wire, sql: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return await fetch(wire, sql, params)

    monkeypatch.setattr(Wire, "fetch", counted)
    found = await pg_store.due_schedules(500, names)
    assert len(found.due) == 500
    assert len(await pg_store.fire([step(names[0], due_at)])) == 1
    one = len(asked)
    assert len(await pg_store.fire([step(name, due_at) for name in names])) == 499
    assert len(asked) - one <= one


async def test_a_backlog_of_free_firings_is_one_round_and_keeps_its_order(pg_store: PostgresStore) -> None:
    due_at = await make(pg_store, "a")
    times = [due_at - hours * HOUR for hours in range(50, 0, -1)]
    firings = tuple(Firing(nominal_at=time, job=a_job(), cause=Cause.BACKFILL, regardless=True) for time in times)
    fires = await pg_store.fire([step("a", due_at, expected=None, firings=firings)])
    assert [fire.nominal_at for fire in fires] == times
    view = await pg_store.schedule("a")
    assert view is not None
    assert (view.last_job_id, view.next_at, view.last_at) == (fires[-1].job_id, due_at, None)


async def test_a_schedule_whose_unique_job_exists_already_is_recorded_with_that_one(pg_store: PostgresStore) -> None:
    due_at = await make(pg_store, "a")
    job_id = await enqueue(pg_store, unique=a_key())
    firing = Firing(nominal_at=due_at, job=a_job(unique=a_key()))
    [fire] = await pg_store.fire([step("a", due_at, firings=(firing,))])
    view = await pg_store.schedule("a")
    assert view is not None
    assert fire.job_id == view.last_job_id == job_id
    assert [known.job_id for known in await pg_store.fires("a", 10)] == [job_id]


async def test_who_asks_while_the_first_leader_is_being_entered_learns_who_that_is(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str
) -> None:
    """The row is in no snapshot from before the wait, and must not be missed for that."""
    other.execute("INSERT INTO leader VALUES ('fleet', 'first', 1, '1 hour', now(), now() + interval '1 hour')")
    asking = pg_store.lead("fleet", "second", HOUR)
    async with behind(asking, other, ask, schema) as answer:
        pass
    lead = answer.result()
    assert (lead.is_ours, lead.holder, lead.term) == (False, "first", 1)
    assert timedelta(minutes=59) < lead.remaining <= HOUR


async def test_who_asks_while_the_lead_changes_hands_learns_who_has_it_now(
    pg_store: PostgresStore, other: psycopg.Connection[Any], ask: Ask, schema: str
) -> None:
    over = "now() - interval '1 hour', now() - interval '1 minute'"
    ask(f"INSERT INTO leader VALUES ('fleet', 'first', 7, '1 hour', {over})")
    other.execute("UPDATE leader SET holder = 'second', term = 8, until = now() + interval '1 hour'")
    async with behind(pg_store.lead("fleet", "third", HOUR), other, ask, schema) as answer:
        pass
    lead = answer.result()
    assert (lead.is_ours, lead.holder, lead.term) == (False, "second", 8)


async def test_c14_a_copy_is_left_to_the_tools_that_postgresql_has(pg_store: PostgresStore) -> None:
    with pytest.raises(StoreRefused, match=r"pg_dump.*pg_basebackup.*snapshots"):
        await pg_store.back_up("/backups/perdure.db")
