"""Rows as they come out of the database, one JSON document for all of them, made into values of the domain."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from perdure.domain.jobs.job import Attempt, Claim, JobView, UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition
from perdure.domain.schedule import Cause, Fate, Fire, Origin, ScheduleView
from perdure.domain.stored_words import read_word
from perdure.engines.shared.database.instants import from_micros, maybe_moment
from perdure.engines.shared.definitions import read_definition
from perdure.engines.sqlite.database.drivers import Row

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(list[Any])
_texts: Final = msgspec.json.Decoder(tuple[str, ...])
_STATES: Final = frozenset(JobState)

_VIEW: Final = (
    "id",
    "kind",
    "queue",
    "priority",
    "state",
    "reason",
    "args",
    "tags",
    "meta",
    "created_at",
    "due_at",
    "since",
    "started_at",
    "finished_at",
    "failures",
    "crashes",
    "max_attempts",
    "worker",
    "cancel_requested_at",
    "result",
    "warnings",
    "unique_key",
    "last_error",
    "cursor",
    "parent",
    "awaits",
    "fair_key",
    "also_awaits",
    "mark",
    "cancelled_by",
    "settings",
    "ref",
    "word",
    "fingerprint",
)
_MOMENTS: Final = ("created_at", "due_at", "since", "started_at", "finished_at", "cancel_requested_at")


def to_document(rows: Any) -> str:
    """Write rows, or ids, as one JSON document to be bound as a parameter."""
    return _encoder.encode(rows).decode()


def from_document(document: bytes) -> list[Any]:
    """Read rows; text of another program that is not UTF-8 must not hide the rows around it."""
    try:
        return _decoder.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decoder.decode(document.decode("utf-8", "replace"))


def clean(text: str) -> str:
    """Text that can be stored: lone surrogates and NUL become the replacement character."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def warnings_text(move: Transition) -> str | None:
    """The warnings of a job that is done, for their column."""
    return to_document([clean(text) for text in move.warnings]) if move.warnings else None


def texts(stored: str | None) -> tuple[str, ...]:
    """A list of texts from its column; a damaged one is empty, and hides no job."""
    try:
        return () if stored is None else _texts.decode(stored)
    except (msgspec.DecodeError, TypeError):
        return ()


def states_text(states: frozenset[JobState]) -> str:
    """A set of states for its column."""
    return ",".join(sorted(states))


@lru_cache
def states_set(text: str) -> frozenset[JobState]:
    """A set of states from its column, without those that only a newer release knows."""
    return frozenset(JobState(word) for word in text.split(",") if word in _STATES)


def unique_key(key: str | None, states: str, dead_for: int | None) -> UniqueKey | None:
    """A job's unique key from its three columns."""
    if key is None:
        return None
    return UniqueKey(key, states_set(states), None if dead_for is None else timedelta(microseconds=dead_for))


def claim_of(row: list[Any], token: int, queue: str, claimed_at: datetime) -> Claim:
    """A claim from its columns, job_id first and gates last."""
    job_id, kind, args, failures, crashes, crash_limit, since, key, states, dead_for, tags, meta, *rest = row
    unknown, cursor, parent, is_parent, settings, ref, is_fresh, gates_passed, due_at, gates = rest
    return Claim(
        job_id,
        token,
        kind,
        queue,
        args,
        failures,
        crashes,
        crash_limit,
        from_micros(since),
        claimed_at,
        None if key is None else unique_key(key, states, dead_for),
        () if tags is None else texts(tags),
        meta,
        maybe_moment(unknown),
        cursor,
        parent,
        is_parent == 1,
        is_fresh == 1,
        gates_passed,
        settings,
        ref,
        maybe_moment(due_at),
        gates,
    )


def view_of(row: list[Any]) -> JobView:
    """A job's view from the columns of `gather`."""
    seen = dict(zip(_VIEW, row, strict=True))
    for column in _MOMENTS:
        seen[column] = maybe_moment(seen[column])
    seen["tags"] = texts(seen["tags"])
    seen["warnings"] = texts(seen["warnings"])
    seen["also_awaits"] = texts(seen["also_awaits"])
    seen["state"] = read_word(JobState, seen["state"])
    return JobView(**seen)


def attempt_of(row: list[Any]) -> Attempt:
    """An attempt from its columns."""
    job_id, token, number, reason, worker, started_at, finished_at, error_type, message, traceback, next_at = row
    return Attempt(
        job_id=job_id,
        token=token,
        number=number,
        reason=reason,
        worker=worker,
        started_at=from_micros(started_at),
        finished_at=from_micros(finished_at),
        error_type=error_type,
        message=message,
        traceback=traceback,
        next_at=maybe_moment(next_at),
    )


def schedule_of(row: Row) -> ScheduleView:
    """One row of schedules."""
    definition, origin, version, next_at, last_at, last_job_id, paused_at, paused_until, *noted = row
    created_at, changed_at, declared_at = noted
    return ScheduleView(
        schedule=read_definition(definition),
        origin=Origin(origin),
        version=version,
        next_at=maybe_moment(next_at),
        last_at=maybe_moment(last_at),
        last_job_id=last_job_id,
        paused_at=maybe_moment(paused_at),
        paused_until=maybe_moment(paused_until),
        created_at=from_micros(created_at),
        changed_at=from_micros(changed_at),
        declared_at=maybe_moment(declared_at),
    )


def fire_of(row: Row) -> Fire:
    """One row of the records of nominal times."""
    schedule, nominal_at, fate, cause, at, job_id, queue = row
    return Fire(
        schedule=schedule,
        nominal_at=from_micros(nominal_at),
        fate=Fate(fate),
        cause=Cause(cause),
        at=from_micros(at),
        job_id=job_id,
        queue=queue,
    )
