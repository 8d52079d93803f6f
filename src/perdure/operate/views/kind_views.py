"""An overview of each kind: its queues, its dead letters, and how its attempts ended recently."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from perdure.domain.duration import Duration
from perdure.domain.gate import Pause
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.statistics import Group
from perdure.operate.views.statistics import empty_group, pairs_seen, read_trends
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Tally

_SHOWN: Final = frozenset({JobState.RUNNING, JobState.DEAD})


class KindView(Struct, frozen=True, kw_only=True):
    """One kind. `queues` are those that statistics of the span name; `words` and `keep` are what its app declared.

    Points of the statistics count attempts; wait and run times are those of the whole span. `dead` counts a bounded
    number of dead letters; `dead_capped`: there are at least so many. `paused`: the kind is paused in all queues;
    `pauses` are all that name it.
    """

    name: str
    queues: tuple[str, ...]
    running: int
    dead: int
    dead_capped: bool
    paused: bool
    pauses: tuple[Pause, ...]
    statistics: Group
    words: Mapping[str, str] = {}
    keep: Keep | None = None


async def kind_views(store: Store, span: Duration, cap: int) -> list[KindView]:
    """All kinds that have statistics, running or dead jobs, pauses, or a declaration that is kept, by name."""
    lately = await read_trends(store, span, await store.now(), by="kind")
    pairs, tallies, pauses, known = await asyncio.gather(
        pairs_seen(store, lately),
        store.count(JobFilter(states=_SHOWN), ("kind", "state"), cap),
        store.pauses(),
        store.kinds(),
    )
    records = {record.name: record for record in known}
    groups = {group.kind: group for group in lately.groups if group.kind is not None}
    names = {
        *groups,
        *records,
        *(tally.kind for tally in tallies if tally.kind is not None),
        *(pause.kind for pause in pauses if pause.kind is not None),
    }
    return [
        _view(
            records.get(name) or KindRecord(name=name),
            tuple(sorted(queue for queue, kind in pairs if kind == name)),
            {tally.state: tally for tally in tallies if tally.kind == name},
            tuple(pause for pause in pauses if pause.kind == name),
            groups.get(name) or empty_group(lately, kind=name),
        )
        for name in sorted(names)
    ]


def _view(
    record: KindRecord,
    queues: tuple[str, ...],
    tallies: Mapping[JobState | None, Tally],
    pauses: tuple[Pause, ...],
    statistics: Group,
) -> KindView:
    none = Tally(jobs=0)
    dead = tallies.get(JobState.DEAD, none)
    return KindView(
        name=record.name,
        queues=queues,
        running=tallies.get(JobState.RUNNING, none).jobs,
        dead=dead.jobs,
        dead_capped=dead.capped,
        paused=any(pause.queue is None and pause.args is None for pause in pauses),
        pauses=pauses,
        statistics=statistics,
        words=record.words,
        keep=record.keep,
    )
