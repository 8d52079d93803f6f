"""A worker process of the demo: it runs the jobs of all systems. `python -m perdure_systems.demo.work`."""

from __future__ import annotations

import asyncio
import os

from msgspec.structs import replace

from perdure import Worker, WorkerSettings
from perdure_systems.demo.processes import stop_with_the_tour
from perdure_systems.demo.systems import all_systems

READY = "ready"
USUAL = WorkerSettings()
"""All workers of one database must have the same lease."""


async def main() -> None:
    """Work until SIGTERM, or until the tour is gone; then every job is finished or handed back."""
    stopping = asyncio.Event()
    stop_with_the_tour(stopping)
    workers: list[Worker] = []
    for system in all_systems():
        app = system.apps[0]
        for database in system.databases:
            await database.migrate()
        app.log_events()
        own = system.worker() if callable(system.worker) else system.worker or app.worker_settings
        name = (
            f"{system.name} {os.getpid()}"  # all of them are in one process: the usual name would not tell them apart
        )
        workers.append(await app.worker(replace(own, name=name, heartbeat=USUAL.heartbeat, lease=USUAL.lease)))
    running = [asyncio.create_task(worker.run()) for worker in workers]
    for worker in workers:
        await worker.started()
    print(READY, flush=True)  # noqa: T201 - the tour waits for it
    await stopping.wait()
    await asyncio.gather(*(worker.wait_for_completion() for worker in workers))
    await asyncio.gather(*running)
    for system in all_systems():
        for database in system.databases:
            await database.close()
        await system.apps[0].close()


if __name__ == "__main__":
    asyncio.run(main())
