"""What an engine does for schedules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, DueSchedules, Fire, Schedule, ScheduleView


class Timed(Struct, frozen=True):
    """A schedule with its next nominal time, which only the caller can compute."""

    schedule: Schedule
    next_at: datetime | None


class ScheduleStore(Protocol):
    """Schedules, and the record of their nominal times. Commands are recorded in the audit trail."""

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """Register the schedules that an app declares, in one transaction.

        An unchanged one is only marked as seen. A changed one takes the new definition, and the new `next_at` if its
        expression or zone has changed; a pause stays. A schedule of that name made at run time is not changed, and
        ConflictError is raised.
        """

    async def save_schedule(self, timed: Timed, by: By) -> ScheduleView:
        """Create a schedule at run time, or replace one that was; ConflictError if it is declared in code.

        A replaced one keeps its pause and its history.
        """

    async def pause_schedule(
        self, name: str, by: By, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Pause it until then, or until resumed (next_at None); None: there is no such schedule."""

    async def resume_schedule(self, name: str, by: By, next_at: datetime | None) -> ScheduleView | None:
        """Resume it from its next time; None: there is no such schedule."""

    async def delete_schedule(self, name: str, by: By) -> bool:
        """Delete a schedule and the record of its times; its jobs stay. False: there is no such schedule."""

    async def schedule(self, name: str) -> ScheduleView | None:
        """One schedule."""

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """Due schedules, most overdue first: those made at run time, and those `declared` here."""

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """Apply these steps, all in one transaction, each unless another process has; returns what was handled now.

        A step to future nominal times is not applied: its caller saw a clock that has been set back since. Every firing
        gets a record. One whose nominal time has a job already is skipped, and so is one without a job whose time has a
        record; a skipped time may still get its job. The job is inserted unless the schedule's overlap policy forbids
        it: SKIP makes the time OVERLAPPED while the schedule's last job is not final, CANCEL cancels that one first.
        `regardless` firings ignore the policy. The jobs of a step that has a `by` are recorded in the audit trail.
        """

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """The outcomes of the schedule's nominal times, the latest first."""

    async def last_fires(self) -> list[Fire]:
        """The outcome of the latest nominal time of each schedule that has one."""
