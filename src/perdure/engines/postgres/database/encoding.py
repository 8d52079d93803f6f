"""New jobs as the parameters of a statement: every one a text, so that any driver can carry them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.engines.postgres.database.arrays import UnstorableTextError, text_array
from perdure.engines.shared.database.instants import on_calendar
from perdure.errors import ArgumentError

Texts = dict[str, str | None]

_JOBS_PER_CHUNK: Final = 2_500
CHUNK_LIMIT_CHARACTERS: Final = 4_000_000

_Reader = Callable[[NewJob], str | None]

# Columns that are mostly the same for a whole batch: the field, the parameter for one value, that for an array.
_SHARED: Final[tuple[tuple[str, str, str, _Reader], ...]] = (
    ("kind", "kind", "kinds", lambda job: job.kind),
    ("queue", "queue", "queues", lambda job: job.queue),
    ("priority", "priority", "priorities", lambda job: str(job.priority)),
    (
        "max_attempts",
        "max_attempts",
        "max_attempts_list",
        lambda job: None if job.max_attempts is None else str(job.max_attempts),
    ),
    ("crash_limit", "crash_limit", "crash_limits", lambda job: str(job.crash_limit)),
    ("tags", "tags", "tags_list", lambda job: text_array(job.tags) if job.tags else None),
    ("meta", "meta", "metas", lambda job: job.meta),
    ("settings", "settings", "settings_list", lambda job: job.settings),
)
_OWN: Final[tuple[tuple[str, str, _Reader], ...]] = (
    ("run_at", "run_ats", lambda job: moment_text(job.run_at)),
    ("delay", "delays", lambda job: seconds_text(job.delay)),
    ("unique", "unique_keys", lambda job: job.unique.key if job.unique else None),
    ("unique", "unique_states", lambda job: ",".join(sorted(job.unique.states)) if job.unique else None),
    ("unique", "unique_dead_fors", lambda job: seconds_text(job.unique.dead_for) if job.unique else None),
    ("fair_key", "fair_keys", lambda job: job.fair_key),
    ("ref", "refs", lambda job: job.ref),
)


def is_plain(job: NewJob) -> bool:
    """Whether a job has neither keys nor time nor plan: the common kind, which the short statement takes."""
    has_key = job.unique is not None or job.fair_key is not None or job.ref is not None
    return not has_key and job.run_at is None and job.delay is None and not job.plan


def in_chunks(jobs: Sequence[NewJob], size: int = _JOBS_PER_CHUNK) -> Iterator[Sequence[NewJob]]:
    """Cut a batch into pieces that one statement can carry, by number and by weight."""
    start = weight = 0
    for end, job in enumerate(jobs):
        weight += len(job.args)
        if end - start >= size or (weight > CHUNK_LIMIT_CHARACTERS and end > start):
            yield jobs[start:end]
            start, weight = end, len(job.args)
    if start < len(jobs):
        yield jobs[start:]


def encode_one(job: NewJob, now: datetime | None, parent: JobId | None = None) -> Texts:
    """The parameters of `insert_one`."""
    max_attempts = job.max_attempts
    for field, text in (("kind", job.kind), ("queue", job.queue), ("args", job.args), ("meta", job.meta or "")):
        if "\0" in text or not text.isascii():
            field_array(field, (text,))
    return {
        "id": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "priority": str(job.priority),
        "args": job.args,
        "max_attempts": None if max_attempts is None else str(max_attempts),
        "crash_limit": str(job.crash_limit),
        "tags": field_array("tags", job.tags) if job.tags else None,
        "meta": job.meta,
        "settings": job.settings,
        "parent": parent,
        "now": moment_text(now),
    }


def encode_plain(jobs: Sequence[NewJob], now: datetime | None, parent: JobId | None = None) -> Texts:
    """The parameters of `insert_plain`."""
    params: Texts = {"now": moment_text(now), "count": str(len(jobs)), "parent": parent}
    params["ids"] = field_array("id", [job.id for job in jobs])
    params["args"] = field_array("args", [job.args for job in jobs])
    for field, single, several, read in _SHARED:
        params[single] = params[several] = None
        try:
            values = [read(job) for job in jobs]
        except UnstorableTextError as error:
            raise ArgumentError(field, str(error)) from error
        if values.count(values[0]) == len(values):
            params[single] = values[0] if values[0] is None or field == "tags" else storable_text(field, values[0])
        else:
            params[several] = field_array(field, values)
    return params


def encode_full(
    jobs: Sequence[NewJob], now: datetime | None, parent: JobId | None = None, *, beside_holder: bool = False
) -> Texts:
    """The parameters of `insert_full`."""
    params = encode_plain(jobs, now, parent)
    params["beside_holder"] = "true" if beside_holder else "false"
    for field, several, read in _OWN:
        params[several] = field_array(field, [read(job) for job in jobs])
    return params


def moment_text(moment: datetime | None) -> str | None:
    """An instant as PostgreSQL reads it; one without a time zone is refused."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ArgumentError("run_at", f"must carry a time zone, got {moment.isoformat()}")
    return on_calendar(moment).isoformat()


def seconds_text(span: timedelta | None) -> str | None:
    """A span in seconds."""
    return None if span is None else str(span.total_seconds())


def storable_text(field: str, value: str) -> str:
    """The same text; refused, by the name of its field, if PostgreSQL cannot store it."""
    field_array(field, (value,))
    return value


def field_array(field: str, values: Sequence[str | None]) -> str:
    """An array of texts; refused, by the name of their field, if PostgreSQL cannot store one of them."""
    try:
        return text_array(values)
    except UnstorableTextError as error:
        raise ArgumentError(field, str(error)) from error
