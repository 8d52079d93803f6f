"""Calls that are run at once, with one that comes after them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perdure.calls import RESULTS, Call, check_child, plan_job, planned_after
from perdure.domain.child_ids import MOST_CHILDREN
from perdure.domain.job import NewJob
from perdure.domain.plan import BATCH, planned
from perdure.errors import ArgumentError
from perdure.gateway import Gateway
from perdure.options import checked_name


def batch_job(
    gateway: Gateway, calls: Iterable[Call[Any]], then: Call[Any] | None, name: str | None, queue: str
) -> NewJob:
    """The job that runs a batch; what cannot be meant is refused by name."""
    given = list(calls)
    if not given:
        raise ArgumentError("calls", "of a batch are none: give at least one")
    if len(given) > MOST_CHILDREN:
        raise ArgumentError("calls", f"of a batch are {len(given):,}, {MOST_CHILDREN:,} are allowed")
    for call in (*given, *(() if then is None else (then,))):
        if not isinstance(call, Call):
            raise ArgumentError("calls", f"must be calls such as job.call(1), got {call!r}")
        if call.kind.name not in gateway.kinds:
            raise ArgumentError("calls", f"hold {call.kind.name}, which another app declares: nobody would run it")
    for call in given:
        check_child(call)
    return plan_job(
        gateway,
        BATCH,
        queue,
        calls=[planned(call.job) for call in given],
        then=None if then is None else planned_after(then, RESULTS),
        name=None if name is None else checked_name("name", name),
    )
