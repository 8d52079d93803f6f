"""Workers, counts of jobs, and problems that need a person."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.worker import WorkerView
from perdure.operate.attention.need import Need
from perdure.operate.records import Overview
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.route import Call, Given


class WorkerList(Struct, frozen=True):
    """Workers, running ones first."""

    workers: tuple[WorkerView, ...]


class Needs(Struct, frozen=True):
    """What needs a person, the worst first; empty if all is well."""

    needs: tuple[Need, ...]


class WorkerNames(Given, frozen=True, kw_only=True):
    """Workers by name or id; omitted: all running workers. `dry_run` tells none, and lists those it would tell."""

    workers: tuple[str, ...] | None = None
    dry_run: bool = False
    why: str | None = None


async def show_overview(call: Call[None, None]) -> Overview:
    """Count jobs by queue and state, and list workers."""
    return await call.desk.overview()


async def list_needs(call: Call[None, None]) -> Needs:
    """List what needs a person, the worst first."""
    return Needs(tuple(await call.desk.attention(database=True)))


async def list_workers(call: Call[None, None]) -> WorkerList:
    """List workers with status and last heartbeat."""
    return WorkerList(tuple(await call.desk.workers()))


async def quiet_workers(call: Call[None, WorkerNames]) -> WorkerList:
    """Tell running workers to stop claiming."""
    return await _tell(call, quiet=True)


async def wake_workers(call: Call[None, WorkerNames]) -> WorkerList:
    """Tell quiet workers to claim again."""
    return await _tell(call, quiet=False)


async def quiet_worker(call: Call[None, Because]) -> WorkerList:
    """Tell one worker, by name or id, to stop claiming."""
    return WorkerList(tuple(await call.desk.quiet([call.path["name"]], quiet=True, why=call.body.why)))


async def wake_worker(call: Call[None, Because]) -> WorkerList:
    """Tell one quiet worker to claim again."""
    return WorkerList(tuple(await call.desk.quiet([call.path["name"]], quiet=False, why=call.body.why)))


async def _tell(call: Call[None, WorkerNames], *, quiet: bool) -> WorkerList:
    body = call.body
    return WorkerList(tuple(await call.desk.quiet(body.workers, quiet=quiet, why=body.why, dry_run=body.dry_run)))
