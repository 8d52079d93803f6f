"""What the shell offers after Tab: kinds, queues and ids. Bounded, quick, and silent where nothing can be known.

The database is asked first, because that takes milliseconds; the app's code is not imported, which may take seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

_SEEN: Final = 200  # the newest jobs
_PATIENCE: Final = 1.5  # seconds


def complete_kind(incomplete: str) -> list[str]:
    """The kinds of the newest jobs."""
    return _offered(incomplete, _of_jobs("kind"))


def complete_queue(incomplete: str) -> list[str]:
    """The queues of the newest jobs."""
    return _offered(incomplete, _of_jobs("queue"))


def complete_id(incomplete: str) -> list[str]:
    """The ids of the newest jobs, newest first."""
    return _offered(incomplete, _of_jobs("id"), in_order=True)


def _offered(incomplete: str, found: Callable[[], Iterable[str]], *, in_order: bool = False) -> list[str]:
    with suppress(Exception):  # an error would be printed into what the user is typing
        names = [name for name in dict.fromkeys(found()) if name.isprintable() and name.startswith(incomplete)]
        return names if in_order else sorted(names)
    return []


def _of_jobs(field: str) -> Callable[[], list[str]]:
    def ask() -> list[str]:
        from perdure.operate.desk import Desk  # noqa: PLC0415 - for those who press Tab
        from perdure.storage.records import JobFilter, Page  # noqa: PLC0415
        from perdure.surfaces.cli.session import with_desk  # noqa: PLC0415

        async def look(desk: Desk) -> list[str]:
            async with asyncio.timeout(_PATIENCE):
                page = await desk.jobs(JobFilter(), Page(_SEEN))
            return [str(getattr(job, field)) for job in page.jobs]

        return with_desk(None, look)

    return ask
