"""Options for one job at enqueue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from inspect import signature
from typing import Any

from msgspec import Struct

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.ids import JobId, as_job_id, is_job_id
from perdure.domain.jobs.job import PRIORITIES
from perdure.errors import ArgumentError, PayloadError, SettingsError
from perdure.kinds.encoding import encode
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.own_settings import checked_own_retry, settings_text
from perdure.policy.retries.retry import Retry

_NAME_LIMIT_CHARACTERS = 100
_REF_LIMIT_CHARACTERS = 200
_META_LIMIT_CHARACTERS = 16 * 1024
_TAGS_LIMIT = 100
_ECHO_LIMIT_CHARACTERS = 120


class Options(Struct, frozen=True, kw_only=True):
    """Checked options; None means: use the kind's value."""

    queue: str | None = None
    priority: int | None = None
    delay: timedelta | None = None
    run_at: datetime | None = None
    id: JobId | None = None
    tags: tuple[str, ...] = ()
    meta: str | None = None
    unique: Unique | None = None
    connection: Any = None
    retry: Retry | None = None
    timeout: timedelta | None = None
    crash_limit: int | None = None
    settings: str | None = None  # the retry policy and the time limit, as stored with the job
    ref: str | None = None


def checked_options(
    *,
    queue: str | None,
    priority: int | None,
    delay: Duration | None,
    run_at: datetime | None,
    id: object,  # noqa: A002 - the word that callers write
    tags: Iterable[str],
    meta: Mapping[str, Any] | None,
    unique: Unique | None,
    connection: Any,
    retry: Retry | None,
    timeout: Duration | None,
    crash_limit: int | None,
    ref: str | None,
    parameters: tuple[str, ...],
) -> Options:
    """Check the options, and refuse invalid ones by name. `parameters` are those of the handler."""
    policy = None if retry is None else checked_own_retry(retry)
    limit = None if timeout is None else checked_limit("timeout", timeout)
    if delay is not None and run_at is not None:
        raise ArgumentError("run_at", "and delay are both given: choose one")
    return Options(
        queue=None if queue is None else checked_name("queue", queue),
        priority=None if priority is None else checked_priority(priority),
        delay=None if delay is None else parse_duration("delay", delay),
        run_at=None if run_at is None else checked_instant("run_at", run_at),
        id=None if id is None else as_job_id(id, advice="; for other keys use Unique"),
        tags=_checked_tags(tags),
        meta=None if meta is None else _checked_meta(meta),
        unique=checked_unique(unique, parameters),
        connection=connection,
        retry=policy,
        timeout=limit,
        crash_limit=None if crash_limit is None else checked_count("crash_limit", crash_limit),
        settings=settings_text(policy, limit),
        ref=None if ref is None else checked_ref(ref),
    )


def checked_name(field: str, value: object, longest: int = _NAME_LIMIT_CHARACTERS) -> str:
    """A name of a queue, kind or tag: short, printable, not blank."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest or not value.isprintable():
        raise ArgumentError(field, f"must be 1 to {longest} printable characters, got {_echo(value)}")
    return value


def checked_limit(setting: str, value: Duration) -> timedelta:
    """A time limit: longer than 0."""
    limit = parse_duration(setting, value, error=SettingsError)
    if limit <= timedelta(0):
        raise SettingsError(setting, f"must be longer than 0, got {value!r}")
    return limit


def checked_ref(value: object) -> str:
    """An external name for a job; one that looks like a job id is refused."""
    ref = checked_name("ref", value, _REF_LIMIT_CHARACTERS)
    if ref != ref.strip():
        raise ArgumentError("ref", f"must not begin or end with spaces, got {value!r}")
    if is_job_id(ref):
        raise ArgumentError("ref", f"must not look like an id of a job, got {value!r}; ids are given with id=")
    return ref


def _echo(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _ECHO_LIMIT_CHARACTERS else f"{text[:_ECHO_LIMIT_CHARACTERS]}…"


def checked_names(field: str, values: Iterable[str]) -> frozenset[str]:
    """A set of names; a single string is refused, because it would be read as its letters."""
    if isinstance(values, str):
        raise SettingsError(field, f"must be a list of names, got {values!r}; write {field}=[{values!r}]")
    return frozenset(checked_name(field, value) for value in values)


def refuse_misspelt(handler: object, options: Mapping[str, Any], declare: Callable[..., Any]) -> None:
    """Refuse, by name, options that `declare` does not accept, and values that are not a function."""
    if not callable(handler):
        raise SettingsError("job", f"must be declared on a function, got {handler!r}; options need their names")
    known = [*signature(declare).parameters][1:]
    for option in options:
        if option not in known:
            name = options.get("name") or getattr(handler, "__name__", handler)
            near = get_close_matches(option, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise SettingsError(f"option {option} of job {name}", f"is not known: {hint}")


def checked_priority(value: int) -> int:
    """A priority: 0 (first) to 9 (last)."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        raise ArgumentError(
            "priority", f"must be from {PRIORITIES[0]} (first) to {PRIORITIES[-1]} (last), got {value!r}"
        )
    return value


def checked_count(setting: str, value: object) -> int:
    """A whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(setting, f"must be a whole number of at least 1, got {_echo(value)}")
    return value


def checked_unique(value: object, parameters: tuple[str, ...]) -> Unique | None:
    """The uniqueness of a job, if any; its arguments must be parameters of the handler."""
    if value is None:
        return None
    if not isinstance(value, Unique):
        raise SettingsError("unique", f'must be a Unique, such as Unique(by="url"), got {_echo(value)}')
    value.check(parameters)
    return value


def checked_instant(field: str, value: object) -> datetime:
    """A time with a time zone."""
    if not isinstance(value, datetime):
        raise ArgumentError(field, f"must be a datetime with a time zone, got {_echo(value)}")
    if value.tzinfo is None:
        raise ArgumentError(field, f"needs a time zone, got {value!r}; use datetime(..., tzinfo=UTC)")
    try:
        value.astimezone(UTC)
    except OverflowError:  # it could be stored, but never read
        raise ArgumentError(field, f"must lie in the years 1 to 9999 of UTC, got {value.isoformat()}") from None
    return value


def _checked_tags(values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError("tags", f'must be a list of names, such as ["monthly"], got {_echo(values)}')
    tags = tuple(checked_name("tags", tag) for tag in values)
    if len(tags) > _TAGS_LIMIT:
        raise ArgumentError(
            "tags", f"are {len(tags)}, {_TAGS_LIMIT} are allowed: put values with many variants in meta"
        )
    return tags


def _checked_meta(meta: object) -> str:
    if not isinstance(meta, Mapping):
        raise ArgumentError("meta", f'must give values by name, as {{"source": "import"}}, got {_echo(meta)}')
    try:
        text = encode(dict(meta))
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise PayloadError("meta", f"cannot be stored as JSON: {error}") from error
    if len(text) > _META_LIMIT_CHARACTERS:
        raise PayloadError("meta", f"takes {len(text)} characters, {_META_LIMIT_CHARACTERS} are allowed")
    return text
