"""Batches: the built-in handler that runs calls made outside any handler.

A batch is a parent like any other. It does not know the kinds of its children: it passes their results on as JSON, and
the handler that receives them decodes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.flows.flow import OnEnd
from perdure.domain.flows.plan import Planned
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.flows.families.children import gather, plain_order, spawn
from perdure.flows.families.family import ChildResult, Failures, Family
from perdure.flows.journal import Journal
from perdure.kinds.encoding import encode

_NOBODY: Final = JobId("")  # the parent assigns its children's ids


class BatchOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a batch; `then` is the job that follows it.

    Jobs that succeeded with warnings count in `succeeded` and again in `with_warnings`.
    """

    total: int
    succeeded: int
    failed: int
    with_warnings: int = 0
    then: JobId | None = None


async def run_batch(journal: Journal, calls: Sequence[Planned], then: Planned | None, name: str | None) -> BatchOutcome:
    """Run all calls in parallel, then run the following call once they are final, whether they succeeded or not."""
    jobs = [call.made(_NOBODY) for call in calls]
    key = journal.key("calls", "batch")
    results: list[ChildResult[Any]] = await gather(journal, key, plain_order(jobs, Failures.COLLECT))
    succeeded = sum(result.ok for result in results)
    with_warnings = sum(result.ok and bool(result.warnings) for result in results)
    failed = len(results) - succeeded
    outcome = BatchOutcome(total=len(results), succeeded=succeeded, failed=failed, with_warnings=with_warnings)
    if then is None:
        return outcome
    after = _with_meta(then.made(_NOBODY, encode(results)), journal.claim.job_id, name, outcome)
    key = journal.key("then", "batch")
    family: Family[Any] = await spawn(journal, key, (), plain_order([after], Failures.RAISE, OnEnd.KEEP))
    return replace(outcome, then=family.ids[0])


def _with_meta(job: NewJob, batch: JobId, name: str | None, outcome: BatchOutcome) -> NewJob:
    summary = {
        "id": batch,
        "name": name,
        "total": outcome.total,
        "succeeded": outcome.succeeded,
        "failed": outcome.failed,
        "with_warnings": outcome.with_warnings,
    }
    given = msgspec.json.decode(job.meta, type=dict[str, Any]) if job.meta else {}
    return replace(job, meta=encode(given | {"batch": summary}))
