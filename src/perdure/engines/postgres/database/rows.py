"""From rows to the domain's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from msgspec import json

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Attempt, Claim, JobView, Orphan, UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.domain.schedule import Cause, Fate, Fire, Origin, ScheduleView
from perdure.domain.stored_words import read_word
from perdure.domain.worker import Phase, ProcessIdentity, WorkerView
from perdure.engines.shared.definitions import read_definition

Row = tuple[Any, ...]

_TEXTS: Final = json.Decoder(tuple[str, ...])
_STATES: Final = frozenset(JobState)
_claim: Final[Callable[..., Claim]] = Claim  # its fields come from a row, in order


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """Claims from rows whose columns stand in the order of the struct, with the key in three columns."""
    return [
        _claim(*row[:10], None, (), *row[14:25]) if row[10] is None and row[13] is None else _claim_of(row)
        for row in rows
    ]


def _claim_of(row: Row) -> Claim:
    unique = None if row[10] is None else UniqueKey(row[10], states_of(row[11]), row[12])
    return _claim(*row[:10], unique, tuple(row[13] or ()), *row[14:25])


@lru_cache(maxsize=1_000)
def states_of(text: str) -> frozenset[JobState]:
    """The states of a unique key, as they are stored, without those that only a newer release knows."""
    return frozenset(JobState(word) for word in text.split(",") if word in _STATES)


def orphan_of(row: Row) -> Orphan:
    """An orphan: a claim, then the worker's id, its name, and how long it has been silent."""
    [claim] = claims_of([row])
    worker_id, name, silent_for = row[25:28]
    return Orphan(claim, WorkerId(worker_id), name, max(silent_for, timedelta(0)))


def worker_of(row: Row) -> WorkerView:
    """A worker as it is listed."""
    worker_id, name, host, pid, started, queues, concurrency, version, started_at, beat_at, *rest = row
    dead_at, phase, quiet_at, running = rest
    return WorkerView(
        id=worker_id,
        name=name,
        process=ProcessIdentity(host, pid, started),
        queues=tuple(queues),
        concurrency=concurrency,
        version=version,
        started_at=started_at,
        beat_at=beat_at,
        dead_at=dead_at,
        running=running,
        phase=read_word(Phase, phase),
        quiet_at=quiet_at,
    )


def texts_of(stored: str | None) -> tuple[str, ...]:
    """A list of texts from its column."""
    return _TEXTS.decode(stored) if stored else ()


def view_of(row: Row) -> JobView:
    """A job as it is shown; the columns stand in the order of the struct."""
    fields = dict(zip(JobView.__struct_fields__, row, strict=True))
    fields["state"] = read_word(JobState, fields["state"])
    fields["tags"] = tuple(fields["tags"] or ())
    fields["warnings"] = texts_of(fields["warnings"])
    fields["also_awaits"] = tuple(fields["also_awaits"] or ())
    return JobView(**fields)


def attempt_of(row: Row) -> Attempt:
    """An attempt; the columns stand in the order of the struct."""
    return Attempt(**dict(zip(Attempt.__struct_fields__, row, strict=True)))


def schedule_of(row: Row) -> ScheduleView:
    """A schedule; its definition comes first, as JSON."""
    definition, origin, *rest = row
    fields = dict(zip(ScheduleView.__struct_fields__[2:], rest, strict=True))
    return ScheduleView(schedule=read_definition(definition), origin=Origin(origin), **fields)


def fire_of(row: Row) -> Fire:
    """The record of a nominal time; the columns stand in the order of the struct."""
    fields = dict(zip(Fire.__struct_fields__, row, strict=True))
    return Fire(**fields | {"fate": Fate(fields["fate"]), "cause": Cause(fields["cause"])})
