"""The system's own tables: flags, and every change of them. A schedule is a job and needs none.

A change is on record in the transaction that makes it. Versions go on when a flag is deleted and made again, so that
a cache can tell an old copy from a new one.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from perdure_systems.flags.policy import FlagDeleted
from perdure_systems.flags.records import KEY, Change, Flag, Updates
from perdure_systems.kit.database import Database, Session

MIGRATIONS: Final = Path(__file__).parent / "migrations"
_RECORD: Final = """
    INSERT INTO flag_change (flag_key, version, action, enabled, rollout, schedule_id, changed_at, changed_by)
    VALUES (:key, :version, :action, :enabled, :rollout, :schedule_id, :at, :by)
"""


async def find_flag(session: Session | Database, key: str) -> Flag | None:
    """A flag; None if there is none."""
    if not KEY.fullmatch(key):
        return None
    return await session.one(Flag, "SELECT * FROM flag_flag WHERE key = :key", {"key": key})


async def list_flags(session: Session | Database) -> list[Flag]:
    """All flags, by key."""
    return await session.all(Flag, "SELECT * FROM flag_flag ORDER BY key")


async def list_changes(session: Session | Database, key: str, *, limit: int = 50) -> list[Change]:
    """The latest changes of a flag, newest first."""
    sql = "SELECT * FROM flag_change WHERE flag_key = :key ORDER BY version DESC LIMIT :limit"
    return await session.all(Change, sql, {"key": key, "limit": limit})


async def add_flag(
    session: Session, key: str, *, enabled: bool, rollout: int, description: str, at: datetime, by: str
) -> Flag | None:
    """Make a flag; None if there is one of that key."""
    made = await session.one(
        Flag,
        """
        INSERT INTO flag_flag (key, enabled, rollout, description, version, updated_at, updated_by)
        SELECT :key, :enabled, :rollout, :description, coalesce(max(version), 0) + 1, :at, :by
        FROM flag_change WHERE flag_key = :key
        ON CONFLICT (key) DO NOTHING RETURNING *
        """,
        {"key": key, "enabled": enabled, "rollout": rollout, "description": description, "at": at, "by": by},
    )
    if made is not None:
        await _record(session, made, "created", at, by)
    return made


async def change_flag(
    session: Session, key: str, updates: Updates, *, at: datetime, by: str, schedule_id: str | None = None
) -> Flag:
    """Apply updates to a flag; raises `FlagDeleted` if it is gone."""
    changed = await session.one(
        Flag,
        """
        UPDATE flag_flag
        SET enabled = coalesce(:enabled, enabled), rollout = coalesce(:rollout, rollout), version = version + 1,
            updated_at = :at, updated_by = :by
        WHERE key = :key RETURNING *
        """,
        {"key": key, "enabled": updates.enabled, "rollout": updates.rollout, "at": at, "by": by},
    )
    if changed is None:
        raise FlagDeleted(f"there is no flag {key!r} any more")
    await _record(session, changed, "changed", at, by, schedule_id)
    return changed


async def delete_flag(session: Session, key: str, *, at: datetime, by: str) -> Flag | None:
    """Delete a flag; what it was, with the version of its end. None if there is none."""
    if not KEY.fullmatch(key):
        return None
    sql = "UPDATE flag_flag SET version = version + 1 WHERE key = :key RETURNING *"
    gone = await session.one(Flag, sql, {"key": key})
    if gone is not None:
        await session.execute("DELETE FROM flag_flag WHERE key = :key", {"key": key})
        await _record(session, gone, "deleted", at, by)
    return gone


async def _record(
    session: Session, flag: Flag, action: str, at: datetime, by: str, schedule_id: str | None = None
) -> None:
    values = {"key": flag.key, "version": flag.version, "action": action, "enabled": flag.enabled}
    await session.execute(_RECORD, {**values, "rollout": flag.rollout, "schedule_id": schedule_id, "at": at, "by": by})
