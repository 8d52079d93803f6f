"""Everything that needs a person, the worst first.

Each query is bounded: it reads a few thousand jobs, however many there are. A query that fails becomes a need of its
own, because an empty list must mean that all is well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from perdure.clock import Clock
from perdure.errors import PerdureError, StoreError
from perdure.operate.attention.fleet import lost_workers, queues_without_progress, tripped_breakers
from perdure.operate.attention.groups import grouped
from perdure.operate.attention.jobs import approvals, dead_letters, held_back
from perdure.operate.attention.need import Need
from perdure.operate.attention.times import late_schedules
from perdure.operate.health.checkup import Checkup
from perdure.storage.operate.diagnosis import Severity
from perdure.storage.port import Store

_LOOKS: Final[tuple[tuple[str, Callable[[Store, datetime], Awaitable[Sequence[Need]]]], ...]] = (
    ("dead letters", dead_letters),
    ("queues", queues_without_progress),
    ("breakers", tripped_breakers),
    ("workers", lost_workers),
    ("schedules", late_schedules),
    ("jobs that are held back", held_back),
    ("approvals", approvals),
)
_WORST_FIRST: Final = {Severity.PROBLEM: 0, Severity.WARNING: 1}


async def find_needs(store: Store) -> list[Need]:
    """The needs of jobs, queues, workers, schedules and gates; many of one type become one.

    Raises StoreError if the database is away.
    """
    now = await store.now()
    # All at once: beside busy workers, a query spends most of its time waiting for a processor.
    answers = await asyncio.gather(*(look(store, now) for _, look in _LOOKS), return_exceptions=True)
    found: list[Need] = []
    for (name, _), answer in zip(_LOOKS, answers, strict=True):
        if not isinstance(answer, BaseException):
            found += answer
        elif isinstance(answer, PerdureError) and not isinstance(answer, StoreError):
            found.append(_unseen(name, answer))
        else:
            raise answer
    return worst_first(grouped(found))


async def examine_database(store: Store, clock: Clock) -> list[Need]:
    """The needs of the database itself: the problems that `perdure doctor` finds in it."""
    return [
        Need(
            severity=Severity.PROBLEM,
            about="database",
            name=finding.check,
            subject=finding.check.capitalize(),
            what=f"has a problem: {finding.seen}",
            detail=finding.advice,
            cli="perdure doctor",
        )
        for finding in await Checkup(store, clock).examine_database()
        if finding.severity is Severity.PROBLEM
    ]


def worst_first(needs: Sequence[Need]) -> list[Need]:
    """Problems before warnings; among equals the order in which they were found."""
    return sorted(needs, key=lambda need: _WORST_FIRST[need.severity])


def _unseen(name: str, error: PerdureError) -> Need:
    return Need(
        severity=Severity.WARNING,
        about="unseen",
        name=name,
        subject=name.capitalize(),
        what="could not be checked:",
        quote=str(error),
        cli="perdure doctor",
    )
