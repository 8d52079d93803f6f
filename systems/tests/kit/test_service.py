"""A system in one process: when its settings are read, and what its routes can see of its workers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
from starlette.requests import Request
from starlette.routing import Route

from perdure import App, WorkerSettings
from perdure_systems.kit.service import System, run_system
from perdure_systems.kit.web import JsonResponse


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
    stop.set()
    await asyncio.wait_for(running, 30)
