"""What this process is doing, for admins (C13): stacks with waits, heap, CPU profile, and blocking calls."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from perdure.diagnostics import Snapshot, describe
from perdure.errors import ConflictError
from perdure.lifecycle.process.contention import Incidents
from perdure.lifecycle.process.heap import Heap, describe_heap
from perdure.lifecycle.process.profile import LONGEST_PROFILE_SECONDS, Profile, sample_profile
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Limit


class ProfileQuery(Given, frozen=True, kw_only=True):
    """The duration in seconds, and the samples per second."""

    seconds: Annotated[float, Meta(ge=0.1, le=LONGEST_PROFILE_SECONDS)] = 5.0
    rate: Annotated[int, Meta(ge=1, le=500)] = 100


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

    Only one profile runs at a time: 409 for another one.
    """
    seconds, rate = call.query.seconds, call.query.rate
    if call.site.profiling.locked():
        raise ConflictError("another profile is being taken: wait until it is done")
    async with call.site.profiling:
        return await asyncio.to_thread(sample_profile, seconds, rate)


async def show_contention(call: Call[None, None]) -> Incidents:
    """Show what has blocked the event loop, slow database calls, and loops that overran."""
    return call.site.incidents.report()
