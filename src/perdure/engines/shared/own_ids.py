"""Ids and refs that callers choose: the same one again is the same job, but never one of another kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.errors import ArgumentError


def met_by_id(jobs: Sequence[NewJob], receipts: Sequence[Receipt]) -> list[NewJob]:
    """The jobs whose chosen id belongs to an earlier job."""
    return [
        job
        for job, receipt in zip(jobs, receipts, strict=True)
        if job.has_own_id and receipt.intake is Intake.EXISTING and receipt.job_id == job.id
    ]


def refuse_other_kinds(met: Sequence[NewJob], kinds: Mapping[str, str]) -> None:
    """Refuse an id of another kind: returning that job would silently lose the new one."""
    for job in met:
        known = kinds.get(job.id, job.kind)
        if known != job.kind:
            raise ArgumentError(
                "id",
                f"{job.id} belongs to a job of kind {known}: choose another for {job.kind}; nothing was stored",
            )


def refuse_other_ref(job: NewJob, known: str) -> None:
    """Refuse a ref that is another kind's."""
    if known != job.kind:
        raise ArgumentError(
            "ref",
            f"{job.ref!r} belongs to a job of kind {known}: choose another for {job.kind}; nothing was stored",
        )
