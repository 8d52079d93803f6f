"""Stores belong to their event loop: a store that is not closed leaves nothing running."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from perdure import App
from perdure.storage.port import Store


@pytest.fixture
def app(engine_url: str) -> Iterator[App]:
    app = App(engine_url)
    yield app
    app.close_sync()


def test_many_short_loops_without_closing_keep_one_store_at_most(app: App) -> None:
    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    async def enqueue() -> Store:
        assert (await add.enqueue(1, 2)).is_new
        return await app.store()

    before = set(threading.enumerate())
    first = asyncio.run(enqueue())
    for _ in range(3):
        asyncio.run(enqueue())
    assert len(app._stores._open) == 1
    assert len(set(threading.enumerate()) - before) <= 2
    asyncio.run(app.close())
    assert len(app._stores._open) == 0
    assert set(threading.enumerate()) <= before
    first.abandon()  # once more is no harm


def test_a_forked_child_leaves_the_stores_of_its_parent_alone(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that the parent forgot to close: their connections are the parent's."""
    store = asyncio.run(app.store())
    abandoned: list[Store] = []
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "abandon", abandoned.append)
        patch.setattr(os, "getpid", lambda: -1)
        asyncio.run(app.close())
    assert abandoned == []
    store.abandon()
