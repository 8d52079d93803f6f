"""From an engine's counts by queue and state to the requested tallies.

An engine reads one job more than the cap in each state of each queue, so that it knows which of them hold more jobs
than the cap: the count of a group that may include such jobs is a lower bound. Running jobs are limited by the slots of
the fleet: they are all read, in one walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.storage.checking import check_whole, echo
from perdure.storage.records import Tally

_QueueState = tuple[JobState, str]
_Group = tuple[str | None, JobState | None, str | None]

_ALL: Final[_Group] = (None, None, None)
GROUPS: Final = ("kind", "state", "queue")
CAP_LIMIT_JOBS: Final = 1_000_000


class Looked(Struct, frozen=True):
    """The jobs of one kind that were read in one queue state, and how many match; `kind` None: of any kind."""

    state: JobState
    queue: str
    kind: str | None
    matches: int
    jobs: int


def check_count(by: object, cap: object) -> tuple[str, ...]:
    """Check the words to group by, and the cap."""
    check_whole("cap", cap, 1, CAP_LIMIT_JOBS)
    words = [by] if isinstance(by, str) else list(by) if isinstance(by, Iterable) else [by]
    for word in words:
        if word not in GROUPS:
            raise ArgumentError("by", f"must be among {', '.join(GROUPS)}, got {echo(word)}")
    return tuple(word for word in GROUPS if word in words)


def tallies(looked: Iterable[Looked], by: Sequence[str], cap: int) -> list[Tally]:
    """Add up by group the jobs read in each queue state."""
    queue_states: dict[_QueueState, list[Looked]] = {}
    for part in looked:
        queue_states.setdefault((part.state, part.queue), []).append(part)
    cut = [queue_state for queue_state, parts in queue_states.items() if sum(part.jobs for part in parts) > cap]
    kept = [part for parts in queue_states.values() for part in _within(parts, cap)]
    return [
        _tally(group, jobs, capped=any(_may_hold(queue_state, group) for queue_state in cut))
        for group, jobs in _groups(kept, by)
    ]


def tallies_of_few(looked: Iterable[Looked], by: Sequence[str], *, capped: bool) -> list[Tally]:
    """Add up by group the jobs read in all queue states together, up to the cap."""
    return [_tally(group, jobs, capped=capped) for group, jobs in _groups(looked, by)]


def _groups(looked: Iterable[Looked], by: Sequence[str]) -> list[tuple[_Group, int]]:
    """The groups and how many jobs each has, in the order of their names."""
    groups: dict[_Group, int] = {} if by else {_ALL: 0}
    for part in looked:
        if part.matches:
            group = _group(part, by)
            groups[group] = groups.get(group, 0) + part.matches
    return sorted(groups.items(), key=lambda item: [word or "" for word in item[0]])


def _tally(group: _Group, jobs: int, *, capped: bool) -> Tally:
    kind, state, queue = group
    return Tally(jobs=jobs, capped=capped, kind=kind, state=state, queue=queue)


def _within(parts: list[Looked], cap: int) -> list[Looked]:
    """The same without the jobs that were read beyond the cap; those of the most frequent kind are left out."""
    beyond = sum(part.matches for part in parts) - cap
    kept = []
    for part in sorted(parts, key=lambda part: -part.matches):
        less = max(min(part.matches, beyond), 0)
        kept.append(replace(part, matches=part.matches - less))
        beyond -= less
    return kept


def _group(part: Looked, by: Sequence[str]) -> _Group:
    return (
        part.kind if "kind" in by else None,
        part.state if "state" in by else None,
        part.queue if "queue" in by else None,
    )


def _may_hold(queue_state: _QueueState, group: _Group) -> bool:
    """Whether jobs of this queue state may belong to the group."""
    state, queue = queue_state
    return group[1] in (None, state) and group[2] in (None, queue)
