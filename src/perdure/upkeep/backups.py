"""Makes copies of the database by a plan, and removes the oldest ones.

The files in the folder decide whether a copy is due, so that a restart repeats none. Of several processes the leader
makes it, and holds the lead only meanwhile. If two lead at once after all, there is one copy more.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from perdure.errors import ArgumentError, StoreError, StoreRefused
from perdure.events import BackupMade, Emitter, LoopFailed
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.schedules.backup_plan import BackupPlan, abandoned, backup_name
from perdure.storage.operate.backups import Backup
from perdure.storage.port import Store

LEAD: Final = "backup"
_NUMBERS: Final = re.compile(r"\d+")
_SHORTEST_LEASE: Final = timedelta(minutes=1)
_LONGEST_LEASE: Final = timedelta(hours=1)
_SHORTEST_WAIT: Final = timedelta(seconds=1)
_LOOK_EVERY: Final = timedelta(minutes=1)


class Copied(Struct, frozen=True):
    """What one tick did: the copy that it made, the files that it removed, and how long until the next one is due.

    `refused`: it was due and could not be made.
    """

    made: Backup | None = None
    removed: tuple[str, ...] = ()
    due_in: timedelta = timedelta(0)
    refused: bool = False


class Backups(Loop[Copied]):
    """Checks every minute whether a copy is due. `holder` is the name under which this process leads.

    A refusal, by the engine or by the file system, is reported once in the time between two copies, and retried every
    hour.
    """

    name = "backups"
    interval = timedelta(hours=1)  # a copy may take long, and a tick that would come meanwhile counts as skipped
    limit = timedelta(hours=12)

    def __init__(self, store: Store, emitter: Emitter, plan: BackupPlan, holder: str) -> None:
        super().__init__(emitter)
        self._store = store
        self._plan = plan
        self._holder = holder
        self._folder = Path(plan.to)
        self._refused: tuple[str, datetime] | None = None

    async def tick(self) -> Copied:
        """Make a copy if one is due and no other process is making it."""
        now = await self._store.now()
        try:
            due_in = await self._due_in(now)
            return Copied(due_in=due_in) if due_in else await self._lead()
        except (StoreRefused, ArgumentError, OSError) as error:
            self._emit_failure(str(error), now)
            return Copied(refused=True)

    def next_wait(self, did: Copied) -> timedelta:
        """Until the next copy is due, but never long: other processes may change the folder."""
        if did.refused:
            return self.interval
        return min(max(did.due_in, _SHORTEST_WAIT), _LOOK_EVERY) if did.due_in else _LOOK_EVERY

    async def _due_in(self, now: datetime) -> timedelta:
        names = await asyncio.to_thread(_names, self._folder)
        return self._plan.due_in(names, now)

    async def _lead(self) -> Copied:
        lease = min(max(self._plan.every / 2, _SHORTEST_LEASE), _LONGEST_LEASE)
        lead = await self._store.lead(LEAD, self._holder, lease)
        if not lead.is_ours:
            return Copied()
        try:
            now = await self._store.now()
            due_in = await self._due_in(now)  # another process may have made it since
            return Copied(due_in=due_in) if due_in else await self._copy(now)
        finally:
            with suppress(StoreError):  # it lapses by itself
                await self._store.step_down(LEAD, self._holder)

    async def _copy(self, now: datetime) -> Copied:
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        name = backup_name(now)
        made = await self._store.back_up(str(self._folder / name))
        self._refused = None
        self.emitter.emit(BackupMade(made.path, made.bytes, made.jobs, made.seconds))
        removed = await asyncio.to_thread(self._remove, name, now)
        return Copied(made, tuple(removed), self._plan.every)

    def _remove(self, newest: str, now: datetime) -> list[str]:
        names = _names(self._folder)
        removed = self._plan.superfluous(names, newest) + abandoned(names, now)
        for name in removed:
            (self._folder / name).unlink(missing_ok=True)
        return removed

    def _emit_failure(self, error: str, now: datetime) -> None:
        words = _NUMBERS.sub("", error)  # each names another file
        if self._refused is not None:
            reported, at = self._refused
            if reported == words and timedelta(0) <= now - at < self._plan.every:
                return
        self._refused = words, now
        self.emitter.emit(LoopFailed(self.name, f"no backup: {error}"))


def _names(folder: Path) -> list[str]:
    """What is in the folder; nothing while it is not there."""
    return [entry.name for entry in folder.iterdir()] if folder.exists() else []
