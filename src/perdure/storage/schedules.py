"""What an engine does for schedules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from perdure.domain.schedule import Advance, DueSchedules, Fire, Schedule, ScheduleView


class Timed(Struct, frozen=True):
    """A schedule together with its next nominal time, which only the caller can tell."""

    schedule: Schedule
    next_at: datetime | None


class ScheduleStore(Protocol):
    """Schedules, and the record of their nominal times. Commands write who did what to the audit trail."""

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """Enter the schedules that an app declares, in one transaction.

        One that stands as declared already is only noted as seen. One whose definition differs takes the new one, and
        the new `next_at` if its expression or zone has changed; a pause holds on. A schedule of that name that was
        made at run time is left alone, and ConflictError raised.
        """

    async def save_schedule(self, timed: Timed, actor: str) -> ScheduleView:
        """Make a schedule at run time, or change one that was; ConflictError if it is declared in code.

        A changed one keeps its pause and its history.
        """

    async def pause_schedule(
        self, name: str, actor: str, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Let its times pass until then, or until resumed (next_at None); None: there is no such schedule."""

    async def resume_schedule(self, name: str, actor: str, next_at: datetime | None) -> ScheduleView | None:
        """Let it go on from its next time; None: there is no such schedule."""

    async def delete_schedule(self, name: str, actor: str) -> bool:
        """Forget a schedule and the record of its times; its jobs stay. False: there is no such schedule."""

    async def schedule(self, name: str) -> ScheduleView | None:
        """One schedule."""

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """Schedules whose `next_at` has come, most overdue first: those made at run time, and those `declared` here."""

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """Take these steps, all in one transaction, each if nobody else has; what was dealt with now comes back.

        A step to nominal times that are still to come is not taken: whoever asks for it saw a clock that has been put
        back since. Of every firing a record is made. One whose nominal time has a job already is passed over, and so is
        one without a job whose time has a record; a time that was let go may still get its job. The job is inserted
        unless the schedule's overlap policy is against it: SKIP makes the time OVERLAPPED while the schedule's last job
        is not final, CANCEL calls that one off first. `regardless` firings ask for neither. The jobs of a step that has
        an `actor` are noted in the audit trail.
        """

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """What became of the schedule's nominal times, the latest first."""

    async def last_fires(self) -> list[Fire]:
        """What became of the latest nominal time of each schedule that has had one."""
