"""Handlers that use Django's ORM survive a restart of their database."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlsplit

import django
import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.http import JsonResponse
from tests.support.databases.behind import with_option

from perdure import App, JobNotSuccessful, Retry, WorkerSettings
from perdure.integrations.django import fresh_connections

if not settings.configured:
    settings.configure(DATABASES={})
    django.setup()


@pytest.fixture
def alias(postgres_url: str) -> str:
    """A Django database that keeps its connections open between attempts."""
    alias = f"site_{uuid.uuid4().hex[:8]}"
    parts = urlsplit(postgres_url)
    host = dict(parse_qsl(parts.query)).get("host") or parts.hostname
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "HOST": host,
        "PORT": parts.port or "",
        "PASSWORD": parts.password or "",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
    }
    connections.settings.update(connections.configure_settings({"default": {}, alias: database}))
    return alias


@pytest.fixture
async def app(postgres_url: str, alias: str) -> AsyncIterator[App]:
    """An app with one thread, so that every attempt meets the same connection."""
    settings = WorkerSettings(threads=1, poll="50ms", stop_timeout=0)
    async with App(with_option(postgres_url, "schema", alias), retry=Retry(attempts=1), worker=settings) as app:

        @app.job
        def backend() -> int:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                [pid] = cursor.fetchone()
                return int(pid)

        @app.job
        def close() -> None:
            connections[alias].close()

        yield app


async def ask(app: App) -> int:
    """The server process behind the connection of the next attempt."""
    pid: int = await (await app.job_named("backend").enqueue()).result("30s")
    return pid


@pytest.mark.parametrize("is_fresh", [True, False])
async def test_a_worker_survives_a_restart_of_the_database(app: App, postgres_url: str, *, is_fresh: bool) -> None:
    """Without the middleware the same jobs fail: the test would notice if it did nothing."""
    if is_fresh:
        app.middleware(fresh_connections)
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    try:
        first = await ask(app)
        assert await ask(app) == first  # the connection is kept
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("SELECT pg_terminate_backend(%s, 10000)", [first])
        if is_fresh:
            assert await ask(app) != first
            return
        for _ in range(2):
            with pytest.raises(JobNotSuccessful):
                await ask(app)
    finally:
        await (await app.job_named("close").enqueue()).result("30s")  # in the thread that it belongs to
        worker.stop()
        await asyncio.wait_for(running, 30)


async def test_a_view_is_an_answer_of_django(engine_url: str) -> None:
    async with App(engine_url) as shop:

        @shop.job
        async def greet(name: str) -> None: ...

        view = await (await greet.enqueue("Ada")).view()
        answer = json.loads(JsonResponse(view.to_dict()).content)
    assert (answer["id"], answer["args"], answer["state"]) == (view.id, {"name": "Ada"}, "ready")
