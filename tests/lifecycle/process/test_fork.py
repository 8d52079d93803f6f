"""What a forked child was told is stored is stored; where that cannot be promised, it is told so."""

from __future__ import annotations

import asyncio
import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure import App, ForkError
from perdure.storage.port import Store

CONTEXT = multiprocessing.get_context("fork")
STRANGERS = multiprocessing.get_context("spawn")
LIMIT = 30


@pytest.fixture(params=["apsw", "sqlite3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?driver={request.param}"


@pytest.fixture
def app(url: str) -> Iterator[App]:
    app = App(url)

    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    yield app
    app.close_sync()


class Child:
    """A forked process that enqueues whenever it is asked to, and answers with the job's id or its trouble."""

    def __init__(self, act: Callable[[], str]) -> None:
        self._ours, theirs = CONTEXT.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking among threads is what this is about
            self._process = CONTEXT.Process(target=_obey, args=(act, theirs), daemon=True)
            self._process.start()

    def ask(self) -> str:
        self._ours.send("go on")
        assert self._ours.poll(LIMIT)
        answer: str = self._ours.recv()
        return answer

    def dismiss(self) -> None:
        self._ours.send(None)
        self._process.join(LIMIT)
        assert self._process.exitcode == 0
        self._ours.close()


def _obey(act: Callable[[], str], pipe: Connection[Any, Any]) -> None:
    while pipe.recv() is not None:
        try:
            pipe.send(act())
        except Exception as error:  # noqa: BLE001 - the test judges
            pipe.send(f"{type(error).__name__}: {error}")


def enqueue_in(app: App) -> str:
    return str(app.job_named("add").enqueue_sync(1, 2).id)


def stored(app: App) -> set[str]:
    """The ids in the file, as a process sees them that has nothing to do with any of this."""
    path = app.url.removeprefix("sqlite:///").partition("?")[0]
    with STRANGERS.Pool(1) as strangers:
        return strangers.apply_async(_ids, (path,)).get(LIMIT)


def _ids(path: str) -> set[str]:
    with closing(apsw.Connection(path)) as connection:
        return {str(job_id) for (job_id,) in connection.execute("SELECT id FROM perdure_job")}


def test_a_child_of_a_parent_with_an_open_file_is_refused_and_reported_what_to_do(app: App) -> None:
    ours = {enqueue_in(app)}
    child = Child(lambda: enqueue_in(app))
    answers = [child.ask()]
    app.close_sync()  # takes the log away that the child would have written to
    answers += [child.ask() for _ in range(3)]
    ours.add(enqueue_in(app))
    app.close_sync()
    child.dismiss()
    assert {answer.partition(":")[0] for answer in answers} == {"ForkError"}
    assert "app.close_sync()" in answers[0]
    assert stored(app) == ours


def test_a_child_of_a_parent_that_has_closed_its_app_works_beside_it(app: App) -> None:
    ids = {enqueue_in(app)}
    app.close_sync()
    child = Child(lambda: enqueue_in(app))
    ids |= {child.ask(), enqueue_in(app), child.ask()}
    app.close_sync()
    ids |= {child.ask() for _ in range(3)}
    child.dismiss()
    assert stored(app) == ids
    assert len(ids) == 7


def test_a_child_of_a_parent_that_never_opened_its_app_works(app: App) -> None:
    child = Child(lambda: enqueue_in(app))
    ids = {child.ask(), child.ask()}
    child.dismiss()
    assert stored(app) == ids


async def test_closing_a_parents_store_in_the_child_does_not_make_the_file_free(app: App) -> None:
    """Nor does any other way around the lanes lead to it."""
    store = await app.store()

    def act() -> str:
        asyncio.run(try_all_ways(store))
        return "refused"

    child = Child(act)
    assert await asyncio.to_thread(child.ask) == "refused"
    await asyncio.to_thread(child.dismiss)
    assert (await app.job_named("add").enqueue(1, 2)).is_new
    await app.close()


async def try_all_ways(store: Store) -> None:
    await store.close()
    store.abandon()
    with pytest.raises(ForkError):
        await store.sibling().open()
    with pytest.raises(ForkError):
        await store.begin_effects(blocking=True)
    with pytest.raises(ForkError):
        async with store.wakeups():
            pass


def test_a_connection_made_in_such_a_child_is_refused_as_well(app: App, url: str) -> None:
    enqueue_in(app)
    path = url.removeprefix("sqlite:///").partition("?")[0]

    def act() -> str:
        import sqlite3  # noqa: PLC0415 - only the library that the app uses

        connection = sqlite3.connect(path) if url.endswith("sqlite3") else apsw.Connection(path)
        with closing(connection):
            return str(app.job_named("add").using(connection=connection).enqueue_sync(1, 2).id)

    child = Child(act)
    assert child.ask().startswith("ForkError")
    child.dismiss()
