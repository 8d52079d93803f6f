"""Small writes of many tasks are committed together, and one that is wrong harms no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from perdure import App
from perdure_systems.kit.database import Database
from perdure_systems.kit.group_commit import GroupCommit

INSERT = "INSERT INTO number (value) VALUES (:value)"


class Counting(Database):
    """Counts its transactions."""

    transactions = 0

    def transaction(self) -> Any:
        self.transactions += 1
        return super().transaction()


@pytest.fixture
async def database(engine_url: str, tmp_path: Path) -> AsyncIterator[Counting]:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_number.sql").write_text("CREATE TABLE number (value integer PRIMARY KEY)")
    database = Counting(App(engine_url), "group", folder)
    await database.migrate()
    yield database
    await database.close()


async def values(database: Database) -> list[int]:
    async with database.snapshot() as session:
        return [row["value"] for row in await session.rows("SELECT value FROM number ORDER BY value")]


async def test_writes_that_wait_at_the_same_time_are_one_transaction(database: Counting) -> None:
    writes = GroupCommit(database)
    await asyncio.gather(*(writes.execute((INSERT, {"value": number})) for number in range(100)))
    assert await values(database) == list(range(100))
    assert database.transactions <= 3


async def test_a_write_that_fails_is_raised_to_its_task_alone_and_leaves_nothing(database: Counting) -> None:
    writes = GroupCommit(database)
    await writes.execute((INSERT, {"value": 7}))

    async def write(number: int) -> str:
        try:
            await writes.execute((INSERT, {"value": 100 + number}), (INSERT, {"value": number}))
        except Exception:  # noqa: BLE001 - each driver has an error of its own
            return "refused"
        return "written"

    answers = await asyncio.gather(*(write(number) for number in range(10)))
    assert [number for number, answer in enumerate(answers) if answer == "refused"] == [7]
    assert await values(database) == sorted([*range(10), *(100 + number for number in range(10) if number != 7)])


async def test_a_task_that_is_cancelled_before_its_turn_writes_nothing(database: Counting) -> None:
    writes = GroupCommit(database)
    async with database.transaction() as held:
        await held.execute(INSERT, {"value": 1})
        first = asyncio.create_task(writes.execute((INSERT, {"value": 2})))
        await asyncio.sleep(0)
        second = asyncio.create_task(writes.execute((INSERT, {"value": 3})))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
    await first
    assert 3 not in await values(database)


async def test_a_task_that_is_cancelled_while_it_is_written_takes_no_other_with_it(database: Counting) -> None:
    writes = GroupCommit(database)
    first = asyncio.create_task(writes.execute((INSERT, {"value": 1})))
    while not database.transactions:
        await asyncio.sleep(0)
    tasks = [asyncio.create_task(writes.execute((INSERT, {"value": number}))) for number in (2, 3, 4)]
    while database.transactions == 1:
        await asyncio.sleep(0)
    tasks[0].cancel()  # it waits in one commit with the others
    await asyncio.wait([first, *tasks])
    await asyncio.gather(first, *tasks[1:])
    assert {1, 3, 4} <= set(await values(database))


async def test_it_is_used_again_on_another_event_loop(database: Counting) -> None:
    writes = GroupCommit(database)
    await writes.execute((INSERT, {"value": 1}))
    await database.close()

    async def elsewhere() -> None:
        await writes.execute((INSERT, {"value": 2}))
        await database.close()

    await asyncio.to_thread(asyncio.run, elsewhere())
    assert await values(database) == [1, 2]
