"""Handles from ids, views as plain data, and the desk without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from datetime import datetime

import pytest
from msgspec import Struct
from msgspec.structs import replace

from perdure import App, ArgumentError, ConflictError, JobFilter, JobState, NotFoundError
from perdure.domain.jobs.ids import new_job_id
from perdure.operate.alerts.commands import Alerts
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.feed import Feed
from perdure.operate.commands.holds import Holds
from perdure.operate.commands.webhooks import Webhooks
from perdure.operate.desk import Desk
from perdure.operate.sync_desk import SyncAlerts, SyncCalendar, SyncDesk, SyncFeed, SyncHolds, SyncWebhooks
from perdure.storage.records import Page


class Sum(Struct):
    """What a job of these tests returns."""

    total: int


@pytest.fixture
def app(engine_url: str) -> Iterator[App]:
    app = App(engine_url)
    yield app
    app.close_sync()


async def test_a_handle_is_made_from_an_id(engine_url: str) -> None:
    async with App(engine_url) as app:

        @app.job
        async def add(a: int, b: int) -> Sum:
            return Sum(a + b)

        @app.job
        async def other() -> None: ...

        job_id = (await add.enqueue(1, b=2)).id
        worker = await app.worker()
        working = asyncio.create_task(worker.run())
        try:
            assert await add.handle(job_id).result("30s") == Sum(3)
        finally:
            worker.stop()
            await asyncio.wait_for(working, 30)
        assert await app.handle(str(job_id)).result("30s") == {"total": 3}
        with pytest.raises(ConflictError, match="is of kind add, not other"):
            await other.handle(job_id).result("1s")
        with pytest.raises(NotFoundError, match="not in the database"):
            await app.handle(new_job_id()).view()
        with pytest.raises(ArgumentError, match="must be a UUID"):
            app.handle("42")
        view = await app.handle(job_id).view()
    assert (view.args, view.arguments) == ('{"a":1,"b":2}', {"a": 1, "b": 2})
    assert (view.result, view.value) == ('{"total":3}', {"total": 3})
    document = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert document == view.to_dict()  # JSON's own types alone: no tuples
    assert document.keys() == set(view.__struct_fields__)
    assert (document["args"], document["result"], document["state"]) == ({"a": 1, "b": 2}, {"total": 3}, "succeeded")
    assert datetime.fromisoformat(document["finished_at"]) == view.finished_at


def test_a_damaged_document_is_shown_as_it_is(app: App) -> None:
    @app.job
    async def greet(name: str) -> None: ...

    view = replace(greet.enqueue_sync("Ada").view_sync(), result="{broken")
    assert view.value == view.to_dict()["result"] == "{broken"
    assert view.to_dict()["args"] == {"name": "Ada"}


def test_the_desk_without_a_loop_does_the_same(app: App) -> None:
    @app.job
    async def greet(name: str) -> None: ...

    first, second = greet.enqueue_sync("Ada"), greet.enqueue_sync("Grace")
    desk = app.desk_sync("night shift")
    assert desk.actor == "night shift"
    page = desk.jobs(JobFilter(kind="greet"), Page(1))
    assert json.loads(json.dumps(page.to_dict()))["jobs"][0]["args"] == {"name": "Grace"}
    assert page.next == second.id
    assert desk.cancel(first.id, why="a mistake").ids == (first.id,)
    assert json.loads(json.dumps(desk.job(first.id).to_dict()))["job"]["state"] == "cancelled"
    assert desk.job(second.id).job.state is JobState.READY
    with pytest.raises(NotFoundError):
        desk.calendar.trigger("nightly")
    assert desk.holds.pause(queue="mail").actor == "night shift"
    assert [pause.queue for pause in desk.holds.pauses()] == ["mail"]
    app.close_sync()
    assert desk.why(second.id).job.id == second.id, "it opens the database again, as an app does"


def test_the_desk_without_a_loop_refuses_a_blank_actor_at_once(app: App) -> None:
    with pytest.raises(ArgumentError, match="actor"):
        app.desk_sync(" ")


@pytest.mark.parametrize(
    ("blocking", "original"),
    [
        (SyncDesk, Desk),
        (SyncCalendar, Calendar),
        (SyncHolds, Holds),
        (SyncFeed, Feed),
        (SyncWebhooks, Webhooks),
        (SyncAlerts, Alerts),
    ],
    ids=lambda of: of.__name__,
)
def test_the_desk_without_a_loop_has_every_method(blocking: type, original: type) -> None:
    """A method that is missing here needs one line in operate/sync_desk.py."""
    methods = {name for name, _ in inspect.getmembers(original, inspect.iscoroutinefunction) if name[0] != "_"}
    assert methods - vars(blocking).keys() == set()
    assert all(inspect.getdoc(vars(blocking)[name]) == inspect.getdoc(getattr(original, name)) for name in methods)
