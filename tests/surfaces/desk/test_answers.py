"""Answers that open pages share."""

from __future__ import annotations

import asyncio

import pytest

from perdure.errors import StoreUnavailable
from perdure.surfaces.desk.answers import Answers


class Database:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False

    async def ask(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise StoreUnavailable("away")
        return self.asked


async def test_three_tabs_cost_one_question() -> None:
    database, answers = Database(), Answers(60)
    assert await asyncio.gather(*(answers.get("queues", database.ask) for _ in range(3))) == [1, 1, 1]
    assert await answers.get("queues", database.ask) == 1
    assert await answers.get("kinds", database.ask) == 2


async def test_a_command_makes_the_next_one_ask_again() -> None:
    database, answers = Database(), Answers(60)
    await answers.get("queues", database.ask)
    answers.forget()
    assert await answers.get("queues", database.ask) == 2


async def test_nothing_is_kept_longer_than_it_is_fresh_and_no_failure_at_all() -> None:
    database, answers = Database(), Answers(0)
    assert [await answers.get("queues", database.ask, 60) for _ in range(2)] == [1, 2]
    kept = Answers(60)
    database.is_away = True
    with pytest.raises(StoreUnavailable):
        await kept.get("queues", database.ask)
    database.is_away = False
    assert await kept.get("queues", database.ask) == 4


async def test_an_answer_that_is_stale_takes_no_memory() -> None:
    """Those of a large database take megabytes, and a page that was closed asks for none again."""
    database, answers = Database(), Answers(0)
    for span in ("1h", "1d", "7d"):
        await answers.get(("kinds", span), database.ask)
    assert list(answers._kept) == [("kinds", "7d")]


async def test_a_tab_that_is_closed_does_not_take_the_answer_from_others() -> None:
    database, answers = Database(), Answers(60)
    closed = asyncio.create_task(answers.get("queues", database.ask))
    other = asyncio.create_task(answers.get("queues", database.ask))
    await asyncio.sleep(0)
    closed.cancel()
    assert await other == 1
