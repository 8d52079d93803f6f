"""Children that are joined to existing jobs that hold their unique keys: what both engines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.domain.flows.flow import NewFamily
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, Receipt
from perdure.errors import ConflictError, StepError


def joined_by(family: NewFamily, receipts: Sequence[Receipt]) -> dict[JobId, JobId]:
    """The children that another job stands for, and that job; an id that is taken already is refused."""
    joins: dict[JobId, JobId] = {}
    for child, receipt in zip(family.children, receipts, strict=True):
        if receipt.job_id != child.id:
            joins[child.id] = receipt.job_id
        elif receipt.intake is not Intake.NEW:
            raise ConflictError(f"child {child.id} cannot be spawned: a job with this id exists already")
    return joins


def in_a_circle(family: NewFamily, joins: Mapping[JobId, JobId], job_id: JobId) -> StepError:
    """The error for a parent that would wait for a job that waits for the parent."""
    number, child = next((n, job) for n, job in enumerate(family.children) if joins.get(job.id) == job_id)
    return StepError(
        family.key,
        f"would wait for itself: the unique key of child {number} ({child.kind}) is held by job {job_id}, which is this"
        " job, or waits for it; give the child another key, or enqueue it by itself",
    )
