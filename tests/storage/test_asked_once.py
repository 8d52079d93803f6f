"""One look at a store: each question is asked once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from perdure.domain.jobs.states import JobState
from perdure.errors import StoreUnavailable
from perdure.storage.asked_once import asked_once
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.storage.time_limits import deadline, limited

DEAD = JobFilter(states=frozenset({JobState.DEAD}))


class Database:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_away = False
        self.limits: list[float | None] = []

    def __getattr__(self, name: str) -> Any:
        async def answer(*args: Any, **kwargs: Any) -> int:
            del args, kwargs
            self.asked.append(name)
            self.limits.append(deadline())
            number = len(self.asked)
            await asyncio.sleep(0)
            if self.is_away:
                raise StoreUnavailable("away")
            return number

        return answer


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def store(database: Database) -> Store:
    return asked_once(cast("Store", database))


async def test_parts_that_ask_the_same_share_the_answer_also_while_it_is_under_way(
    database: Database, store: Store
) -> None:
    answers: Any = await asyncio.gather(store.workers(), store.workers(), store.now())
    assert list(answers) == [1, 1, 2]
    assert await store.workers() == cast("Any", 1)
    assert database.asked == ["workers", "now"]


async def test_other_arguments_make_another_question(database: Database, store: Store) -> None:
    for cap in (1, 2, 1):
        await store.count(DEAD, ("queue",), cap)
    await store.count(DEAD, ("queue",), cap=1)
    assert database.asked == 3 * ["count"]


async def test_an_error_is_the_answer_of_all_who_ask(database: Database, store: Store) -> None:
    database.is_away = True
    answers = await asyncio.gather(store.now(), store.now(), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["away", "away"]
    assert database.asked == ["now"]


async def test_a_part_that_gives_up_takes_the_answer_from_no_other(store: Store) -> None:
    given_up, waiting = asyncio.create_task(store.now()), asyncio.create_task(store.now())
    await asyncio.sleep(0)
    given_up.cancel()
    assert await waiting == cast("Any", 1)


async def test_commands_and_questions_about_lists_are_passed_on(database: Database, store: Store) -> None:
    for _ in range(2):
        await store.promote(10)
        await store.fronts(["mail"], 1)
    assert database.asked == ["promote", "fronts", "promote", "fronts"]


async def test_the_time_limit_of_who_asks_first_holds(database: Database, store: Store) -> None:
    await limited(store, timedelta(seconds=60)).now()
    assert database.limits != [None]
