"""Calls that run in parallel, with one call that runs after all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure.domain.flows.child_ids import CHILDREN_LIMIT
from perdure.domain.flows.plan import BATCH, planned
from perdure.domain.jobs.job import NewJob
from perdure.enqueue.calls import RESULTS, Call, check_child, check_own, plan_job, planned_after
from perdure.enqueue.gateway import Gateway
from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name


def batch_job(
    gateway: Gateway, calls: Iterable[Call[Any]], then: Call[Any] | None, name: str | None, queue: str
) -> NewJob:
    """The job that runs a batch; invalid calls are refused by name."""
    if isinstance(calls, Call) or not isinstance(calls, Iterable):
        raise ArgumentError("calls", f"must be a list of calls such as [job.call(1), job.call(2)], got {calls!r}")
    given = list(calls)
    if not given:
        raise ArgumentError("calls", "of a batch are empty: give at least one")
    if len(given) > CHILDREN_LIMIT:
        raise ArgumentError("calls", f"of a batch are {len(given):,}, {CHILDREN_LIMIT:,} are allowed")
    for call in given:
        check_own("calls", call, gateway)
        check_child(call)
    if then is not None:
        check_own("then", then, gateway)
    return plan_job(
        gateway,
        BATCH,
        queue,
        calls=[planned(call.job) for call in given],
        then=None if then is None else planned_after(then, RESULTS),
        name=None if name is None else checked_name("name", name),
    )
