"""What this process is doing, for admins (C13): stacks with waits, heap, CPU profile, lock waits, blocking calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from msgspec import Meta

from perdure.diagnostics import Snapshot, describe
from perdure.errors import ConflictError
from perdure.lifecycle.process.contention import Incidents
from perdure.lifecycle.process.heap import Heap, describe_heap
from perdure.lifecycle.process.lock_waits import LONGEST_LOCK_WATCH_SECONDS, LockWaits, sample_lock_waits
from perdure.lifecycle.process.profile import LONGEST_PROFILE_SECONDS, Profile, sample_profile
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Limit


class ProfileQuery(Given, frozen=True, kw_only=True):
    """The duration in seconds, and the samples per second."""

    seconds: Annotated[float, Meta(ge=0.1, le=LONGEST_PROFILE_SECONDS)] = 5.0
    rate: Annotated[int, Meta(ge=1, le=500)] = 100


class LocksQuery(Given, frozen=True, kw_only=True):
    """The duration in seconds."""

    seconds: Annotated[float, Meta(ge=0.1, le=LONGEST_LOCK_WATCH_SECONDS)] = 1.0


class HeapQuery(Given, frozen=True, kw_only=True):
    """How many types or source lines to list."""

    limit: Limit = 50


async def show_stacks(call: Call[None, None]) -> Snapshot:
    """Show every thread and task of this process, and what it waits for."""
    return describe(call.site.workers)


async def show_heap(call: Call[HeapQuery, None]) -> Heap:
    """Show what uses memory: source lines if tracemalloc runs, else objects by type."""
    return await asyncio.to_thread(describe_heap, call.query.limit)


async def show_profile(call: Call[ProfileQuery, None]) -> Profile:
    """Sample all threads for some seconds, 25 at most, and show where time goes.

    Only one profile or watch of locks runs at a time: 409 for another one.
    """
    seconds, rate = call.query.seconds, call.query.rate
    async with _alone(call.site.profiling):
        return await asyncio.to_thread(sample_profile, seconds, rate)


async def show_locks(call: Call[LocksQuery, None]) -> LockWaits:
    """Sample all threads and tasks for some seconds, 25 at most, and show where they wait for locks.

    Only one profile or watch of locks runs at a time: 409 for another one.
    """
    async with _alone(call.site.profiling):
        return await asyncio.to_thread(sample_lock_waits, call.query.seconds, asyncio.get_running_loop())


async def show_contention(call: Call[None, None]) -> Incidents:
    """Show what has blocked the event loop, slow database calls, and loops that overran."""
    return call.site.incidents.report()


@asynccontextmanager
async def _alone(sampling: asyncio.Lock) -> AsyncIterator[None]:
    """Hold this lock; raises ConflictError if it is held."""
    if sampling.locked():
        raise ConflictError("another profile or watch of locks is being taken: wait until it is done")
    async with sampling:
        yield
