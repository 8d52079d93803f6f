"""What both engines share for groups of failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.storage.operate.failure_groups import JOBS_COUNTED_PER_GROUP, GroupRecord
from perdure.storage.records import JobFilter

_DEAD: Final = frozenset({JobState.DEAD})


def names_groups_only(which: JobFilter) -> bool:
    """Whether a filter names only kinds and fingerprints, which groups store themselves."""
    return replace(which, kind=None, fingerprint=None, states=None) == JobFilter() and which.states in (None, _DEAD)


def page_of(groups: Iterable[GroupRecord], limit: int, before: tuple[datetime, str] | None) -> list[GroupRecord]:
    """A piece of these groups, the last to fail first."""
    ordered = sorted(groups, key=_place, reverse=True)
    return [group for group in ordered if before is None or _place(group) < before][:limit]


class Found:
    """Dead letters that were looked at, by their group."""

    def __init__(self) -> None:
        self._jobs: Counter[str] = Counter()
        self._newest: dict[str, JobId] = {}
        self._capped = False

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add fingerprint and id of jobs, newest first; one more than the cap shows that there are others."""
        self._capped = self._capped or len(rows) > JOBS_COUNTED_PER_GROUP
        for name, job_id in rows[:JOBS_COUNTED_PER_GROUP]:
            if name is not None:
                self._jobs[name] += 1
                self._newest.setdefault(name, job_id)

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints that were found."""
        return list(self._jobs)

    def counted(self, groups: Iterable[GroupRecord]) -> list[GroupRecord]:
        """The same groups with the number of jobs that were found of each."""
        return [
            replace(
                group,
                jobs=self._jobs[group.fingerprint],
                capped=self._capped,
                newest=self._newest.get(group.fingerprint),
                only_newest=JOBS_COUNTED_PER_GROUP if self._capped else None,
            )
            for group in groups
        ]


def _place(group: GroupRecord) -> tuple[datetime, str]:
    return group.last_at, group.fingerprint
