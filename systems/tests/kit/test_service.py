"""A system in one process: when its settings are read, and what its routes can see of its workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from systems.tests.running import running_system

from perdure import App, WorkerSettings
from perdure.errors import LifespanError
from perdure_systems.kit.metrics import serve_metrics
from perdure_systems.kit.service import System, run_system
from perdure_systems.kit.web import JsonResponse, read_body


async def test_settings_are_read_at_the_start_and_routes_see_the_workers(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    names = ["first"]

    @app.job
    async def greet() -> None: ...

    async def workers(request: Request) -> JsonResponse:
        return JsonResponse([worker.name for worker in request.app.state.workers])

    system = System(
        name="small",
        title="Small",
        port=0,
        apps=(app,),
        routes=[Route("/workers", workers)],
        worker=lambda: WorkerSettings(name=names[-1]),
    )
    names.append("second")
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(run_system(system, stop=stop, when_open=address.set_result))
    async with httpx.AsyncClient(base_url=await asyncio.wait_for(address, 30)) as client:
        assert (await client.get("/workers")).json() == ["second"]
        page = await client.get("/desk/")
        assert (page.status_code, "default-src 'self'" in page.headers["content-security-policy"]) == (200, True)
        assert 'href="/desk/jobs' in page.text, "its links stay below the prefix"
        stacks = (await client.get("/desk/api/v1/diagnostics/stacks")).json()
        assert stacks["head"]["worker"] == "second"
        assert (await client.get("/desk/healthz")).status_code == 200
        assert "perdure_worker_slots" in (await client.get("/desk/metrics")).text, "of the worker beside it"
    stop.set()
    await asyncio.wait_for(running, 30)


async def test_metrics_count_what_was_before_the_first_scrape(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    ran = asyncio.Event()

    @app.cron("* * * * * *")
    async def each_second() -> None:
        ran.set()

    async def metrics(request: Request) -> Response:
        return await serve_metrics(request, app)

    system = System(name="small", title="Small", port=0, apps=(app,), routes=[Route("/metrics", metrics)])
    async with running_system(system) as address, httpx.AsyncClient(base_url=address) as client:
        await asyncio.wait_for(ran.wait(), 30)
        scraped = (await client.get("/metrics")).text
    assert 'perdure_schedule_times_total{schedule="each_second",outcome="fired"}' in scraped


async def test_a_client_that_never_sends_its_body_does_not_keep_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    began = asyncio.Event()

    async def take(request: Request) -> JsonResponse:
        began.set()
        return JsonResponse(await read_body(request, dict))

    monkeypatch.setattr("perdure_systems.kit.service._LAST_REQUESTS_SECONDS", 0)
    system = System(name="small", title="Small", port=0, apps=(app,), routes=[Route("/", take, methods=["POST"])])
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(run_system(system, stop=stop, when_open=address.set_result))
    port = int((await asyncio.wait_for(address, 30)).rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    await asyncio.wait_for(began.wait(), 30)
    stop.set()
    await asyncio.wait_for(running, 30)
    assert b"200" not in await reader.read(20)
    writer.close()


async def test_a_stop_before_the_workers_are_open_is_heeded(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    stop = asyncio.Event()
    stop.set()
    system = System(name="small", title="Small", port=0, apps=(app,), routes=[])
    await asyncio.wait_for(run_system(system, stop=stop), 30)


async def test_a_worker_that_cannot_start_ends_the_system_with_its_error(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.lifespan
    async def broken() -> AsyncIterator[None]:
        await asyncio.to_thread((tmp_path / "model").read_text)
        yield

    system = System(name="small", title="Small", port=0, apps=(app,), routes=[])
    with pytest.raises(LifespanError, match="lifespan broken could not be opened: FileNotFoundError"):
        await asyncio.wait_for(run_system(system), 30)


async def test_a_system_without_jobs_serves_its_pages_and_no_desk() -> None:
    async def hello(request: Request) -> JsonResponse:
        return JsonResponse("hello")

    pages = System(name="small", title="Small", port=0, apps=(), routes=[Route("/", hello)])
    async with running_system(pages) as address, httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/")).json() == "hello"
        assert (await client.get("/desk/")).status_code == 404
