"""When a copy is due, and which files of the folder go: only those named like copies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.errors import SettingsError
from perdure.policy.schedules.backup_plan import BackupPlan, abandoned, backup_name, backup_time

NOW = datetime(2026, 1, 10, 12, 30, 15, tzinfo=UTC)
PLAN = BackupPlan("copies", every="1d", keep=2)


def made(days_ago: float) -> str:
    return backup_name(NOW - timedelta(days=days_ago))


def test_a_name_holds_the_time_in_utc() -> None:
    assert backup_name(NOW) == "perdure-20260110-123015.db"
    assert backup_time(backup_name(NOW)) == NOW
    assert [
        backup_time(name) for name in ("jobs.db", "perdure-20269999-123015.db", "perdure-20260110-123015.db.old")
    ] == [None] * 3


def test_a_copy_is_due_an_interval_after_the_newest_one() -> None:
    assert PLAN.due_in([], NOW) == timedelta(0)
    assert PLAN.due_in([made(3), made(0.75), "notes.txt"], NOW) == timedelta(hours=6)
    assert PLAN.due_in([made(3)], NOW) == timedelta(0)


def test_a_copy_from_the_future_does_not_put_off_the_next_one() -> None:
    assert PLAN.due_in([made(-30), made(0.5)], NOW) == timedelta(hours=12)


def test_the_oldest_copies_beyond_the_number_go_and_never_the_newest_or_other_files() -> None:
    names = [made(3), made(2), made(1), "notes.txt", made(0)]
    assert PLAN.superfluous(names, made(0)) == [made(3), made(2)]
    assert BackupPlan("copies", keep=1).superfluous([made(0), made(-1)], made(0)) == [made(-1)]


def test_drafts_are_abandoned_after_a_day() -> None:
    old, young = f".{made(1)}.0a1b.part", f".{made(0.5)}.0a1b.part-wal"
    assert abandoned([old, young, made(9), "notes.part"], NOW) == [old]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"to": " "}, "backup.to"),
        ({"to": "x", "every": "30s"}, "backup.every"),
        ({"to": "x", "keep": 0}, "backup.keep"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_by_name(given: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        BackupPlan(**given)  # type: ignore[arg-type] # that is the point
