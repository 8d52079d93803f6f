"""Children that were given a new life after they had died.

A family counts each end once, and so a child that an operator has requeued ends a second time for itself only. Its
parent, tried again, looks at the jobs themselves: one that has succeeded since counts as a success, and one that is
under way is waited for, with a look every so often, as nobody will wake the parent.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from perdure.domain.flow import Child
from perdure.domain.ids import JobId
from perdure.domain.job import JobView
from perdure.domain.states import FINAL, JobState
from perdure.flows.journal import Journal
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

LOOK_EVERY: Final = timedelta(seconds=10)
_BATCH: Final = 500


async def as_they_stand(journal: Journal, children: list[Child]) -> list[Child]:
    """The same children, those that had failed as their jobs stand now; a job that is gone stays as it was."""
    failed = [child.job_id for child in children if child.fate is not None and child.fate is not JobState.SUCCEEDED]
    jobs: dict[JobId, JobView] = {}
    for start in range(0, len(failed), _BATCH):
        found = await journal.ask("read children", partial(_views, failed[start : start + _BATCH]))
        jobs |= {view.id: view for view in found}
    return [_revived(child, jobs[child.job_id]) if child.job_id in jobs else child for child in children]


async def _views(ids: Iterable[JobId], store: Store) -> list[JobView]:
    return await store.jobs(JobFilter(ids=tuple(ids)), Page(_BATCH))


def _revived(child: Child, view: JobView) -> Child:
    if view.state is JobState.SUCCEEDED:
        return replace(child, fate=view.state, result=view.result, error=None)
    return child if view.state in FINAL else replace(child, fate=None)
