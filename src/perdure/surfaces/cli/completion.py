"""Shell completion of kinds, queues and ids. Bounded, quick, and silent on errors.

It queries only the database, which takes milliseconds; importing the app's code may take seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from perdure.operate.desk import Desk

_JOBS_SUGGESTED: Final = 200  # the newest jobs
_TIMEOUT_SECONDS: Final = 1.5  # seconds


def complete_kind(incomplete: str) -> list[str]:
    """The kinds of the newest jobs."""
    return _offered(incomplete, _of_jobs("kind"))


def complete_queue(incomplete: str) -> list[str]:
    """The queues of the newest jobs."""
    return _offered(incomplete, _of_jobs("queue"))


def complete_id(incomplete: str) -> list[str]:
    """The ids of the newest jobs, newest first."""
    return _offered(incomplete, _of_jobs("id"), in_order=True)


def complete_group(incomplete: str) -> list[str]:
    """The groups of dead letters, the last to fail first."""

    async def look(desk: Desk) -> list[str]:
        return [group.fingerprint for group in (await desk.failure_groups()).groups]

    return _offered(incomplete, _asked(look), in_order=True)


def complete_search(incomplete: str) -> list[str]:
    """What the last word of a search could become."""

    async def look(desk: Desk) -> list[str]:
        done = incomplete[: len(incomplete) - len(incomplete.rsplit(" ", maxsplit=1)[-1])]
        return [done + each.text for each in await desk.suggestions(incomplete)]

    return _offered(incomplete, _asked(look), in_order=True)


def _offered(incomplete: str, found: Callable[[], Iterable[str]], *, in_order: bool = False) -> list[str]:
    with suppress(Exception):  # an error would be printed into the line that the user is typing
        names = [name for name in dict.fromkeys(found()) if name.isprintable() and name.startswith(incomplete)]
        return names if in_order else sorted(names)
    return []


def _of_jobs(field: str) -> Callable[[], list[str]]:
    async def look(desk: Desk) -> list[str]:
        from perdure.storage.records import JobFilter, Page  # noqa: PLC0415 - for those who press Tab

        page = await desk.jobs(JobFilter(), Page(_JOBS_SUGGESTED))
        return [str(getattr(job, field)) for job in page.jobs]

    return _asked(look)


def _asked(look: Callable[[Desk], Awaitable[list[str]]]) -> Callable[[], list[str]]:
    def ask() -> list[str]:
        from perdure.surfaces.cli.session import with_desk  # noqa: PLC0415 - for those who press Tab

        async def in_time(desk: Desk) -> list[str]:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await look(desk)

        return with_desk(None, in_time)

    return ask
