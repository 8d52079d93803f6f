"""When a copy of the database is due, its name, and which older copies to remove: pure arithmetic of names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, format_duration, read_spans
from perdure.errors import SettingsError

_NAME: Final = re.compile(r"perdure-\d{8}-\d{6}\.db")
_DRAFT: Final = re.compile(r"\.(perdure-\d{8}-\d{6}\.db)\.[0-9a-f]+\.part(?:-journal|-wal|-shm)?")
_STAMP: Final = "perdure-%Y%m%d-%H%M%S.db"
_SHORTEST_INTERVAL: Final = timedelta(minutes=1)
_LONGEST_COPYING: Final = timedelta(days=1)


class BackupPlan(Struct, frozen=True):
    """Copies of an SQLite database: the folder, how often, and how many are kept.

    A relative folder is relative to the process. Only files named like these copies are counted or removed.
    """

    to: str
    every: timedelta = timedelta(days=1)
    keep: int = 7

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(self, to: str | Path, every: Duration = ..., keep: int = ...) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.to, str | Path) or not str(self.to).strip():
            raise SettingsError("backup.to", f"must name a folder, got {self.to!r}")
        force_setattr(self, "to", str(self.to))
        read_spans("backup", self, ("every",))
        if self.every < _SHORTEST_INTERVAL:
            raise SettingsError("backup.every", f"must be at least 1m, got {format_duration(self.every)}")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise SettingsError("backup.keep", f"must be a whole number of at least 1, got {self.keep!r}")

    def due_in(self, names: Iterable[str], now: datetime) -> timedelta:
        """How long until a new copy is due, given the names in the folder; 0: it is due now.

        A copy from the future was made before the clock was set back, and is ignored.
        """
        made = [time for name in names if (time := backup_time(name)) is not None and time <= now]
        return max(max(made) + self.every - now, timedelta(0)) if made else timedelta(0)

    def superfluous(self, names: Iterable[str], newest: str) -> list[str]:
        """The copies to remove now that `newest` is there: the oldest beyond `keep`, and never that one."""
        older = sorted(name for name in names if backup_time(name) is not None and name != newest)
        return older[: max(len(older) - (self.keep - 1), 0)]


def abandoned(names: Iterable[str], now: datetime) -> list[str]:
    """Drafts of copies left over from processes that died a day ago or more."""
    drafts = ((name, found[1]) for name in names if (found := _DRAFT.fullmatch(name)))
    return [name for name, goal in drafts if (begun := backup_time(goal)) and now - begun >= _LONGEST_COPYING]


def backup_name(at: datetime) -> str:
    """The name of a copy made at this time, in UTC."""
    return at.astimezone(UTC).strftime(_STAMP)


def backup_time(name: str) -> datetime | None:
    """When the copy of this name was made; None: it is another file."""
    if not _NAME.fullmatch(name):
        return None
    try:
        return datetime.strptime(name, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
