"""Run a system: its workers, its HTTP server and the desk in one process, until SIGINT or SIGTERM.

The order of a stop matters: workers finish or hand back what they run, then the HTTP server closes, then the database.
A second signal stops without waiting for handlers. SIGUSR1 prints every thread and task to standard error; SIGQUIT
prints them and exits with 2.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import msgspec
import structlog
from starlette.routing import BaseRoute

from perdure import App, ConflictError, StillRunning, Worker, WorkerSettings
from perdure.desk import AccessSettings, HealthSettings, asgi
from perdure.diagnostics import stack_signals
from perdure.mcp import McpSettings
from perdure_systems.kit.database import Database
from perdure_systems.kit.metrics import METRICS, count_metrics
from perdure_systems.kit.serving import bind, serving
from perdure_systems.kit.web import api

__all__ = ["System", "bind", "run_system"]
STOP_TIMEOUT: Final = "30s"
_LAST_REQUESTS_SECONDS: Final = 5  # a client that never sends its body must not keep the process
log = structlog.get_logger("perdure_systems")


class System(msgspec.Struct, frozen=True, kw_only=True):
    """What makes up a system. `apps` are those whose jobs it runs, its own first.

    `worker` may be a function, which reads the settings when the system starts. Routes find the workers of their
    process in `request.app.state.workers`. The desk of the first app is served below `/desk`, none if there is no app;
    `health` says when its `/readyz` warns, `mcp` serves agents at `/desk/mcp`.
    """

    name: str
    title: str
    port: int
    apps: tuple[App, ...]
    routes: Sequence[BaseRoute]
    databases: tuple[Database, ...] = ()
    worker: WorkerSettings | Callable[[], WorkerSettings] | None = None
    health: HealthSettings | None = None
    mcp: McpSettings | None = None


async def run_system(
    system: System,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    serve_http: bool = True,
    run_jobs: bool = True,
    hosts: Collection[str] = (),
    stop: asyncio.Event | None = None,
    when_open: Callable[[str], None] | None = None,
) -> None:
    """Run until a signal comes or `stop` is set.

    `hosts` are further names under which it is reached. `when_open` is called with the address once requests are
    answered.
    """
    stopping = asyncio.Event() if stop is None else stop
    settings = system.worker() if callable(system.worker) else system.worker
    workers: list[Worker] = []
    async with AsyncExitStack() as stack:
        stack.enter_context(stack_signals(workers))
        listening = bind(host, system.port if port is None else port) if serve_http else None
        for database in system.databases:
            await database.migrate()
            stack.push_async_callback(database.close)
        for app in system.apps:
            await stack.enter_async_context(app)
            stack.callback(app.log_events())
        address = ""
        if listening is not None:
            desk = None
            if system.apps:
                names = AccessSettings(hosts=sorted(hosts))
                desk = asgi(system.apps[0], access=names, health=system.health, workers=workers, mcp=system.mcp)
                await stack.enter_async_context(desk)
            served = api(system.routes, hosts={host, *hosts}, desk=desk)
            served.state.workers = workers
            if system.apps and any(getattr(route, "path", None) == METRICS for route in system.routes):
                count_metrics(served, system.apps[0], workers)
            address = await stack.enter_async_context(
                serving(served, listening, timeout_graceful_shutdown=_LAST_REQUESTS_SECONDS)
            )
        with _signals_to(stopping, workers):
            workers += [await app.worker(settings) for app in system.apps] if run_jobs else []
            running = [asyncio.create_task(worker.run()) for worker in workers]
            try:
                await _started(workers, running)
                if address and when_open is not None:
                    when_open(address)
                await _first_of(stopping, *running)
                log.info("waiting for scheduler to complete in-flight work", system=system.name)
                await _complete(workers)
            finally:  # an error of one worker ends the others, too, while their database is open
                for worker in workers:
                    worker.hurry()
                await asyncio.gather(*running, return_exceptions=True)
            await asyncio.gather(*running)


async def _started(workers: Sequence[Worker], running: Sequence[asyncio.Task[None]]) -> None:
    """Wait until all workers claim; the error of one that cannot start is raised."""
    for worker, task in zip(workers, running, strict=True):
        try:
            await worker.started()
        except ConflictError:
            await task
            raise


async def _complete(workers: Sequence[Worker]) -> None:
    """Let all workers finish at the same time; what still runs past the limit is logged."""
    for answer in await asyncio.gather(
        *(worker.wait_for_completion(STOP_TIMEOUT) for worker in workers), return_exceptions=True
    ):
        if isinstance(answer, StillRunning):
            jobs = [str(job.job_id) for job in answer.jobs]
            log.warning("work was still running at the end", jobs=jobs, loops=list(answer.loops))
        elif isinstance(answer, BaseException):
            raise answer


async def _first_of(stopping: asyncio.Event, *tasks: asyncio.Task[None]) -> None:
    """Wait for the stop, or for a task that ended by itself: its error is raised."""
    waiting = asyncio.create_task(stopping.wait())
    try:
        done, _ = await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {waiting}:
            task.result()
    finally:
        waiting.cancel()


@contextmanager
def _signals_to(stopping: asyncio.Event, workers: Sequence[Worker]) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the system while the block runs; a second one stops it without waiting."""

    def stop() -> None:
        if stopping.is_set():
            for worker in workers:
                worker.hurry()
        stopping.set()

    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():  # elsewhere the caller sets the event
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, stop)
            handled.append(one)
    try:
        yield
    finally:
        for one in handled:
            loop.remove_signal_handler(one)
