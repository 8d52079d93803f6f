"""Completes a search: keys, states, kinds, queues, and paths of arguments seen in the newest jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.condition import FIELDS
from perdure.domain.plain_records import unpacked
from perdure.operate.search.parse import KEYS
from perdure.operate.search.words import quoted
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

SUGGESTIONS_SHOWN: Final = 20
_JOBS_LOOKED_AT: Final = 100  # the newest jobs
_PATH_LIMIT_PARTS: Final = 4
_DOCUMENTS: Final = ("args", "meta", "result")


class Suggestion(Struct, frozen=True):
    """A word in place of the one at the cursor, and what it means."""

    text: str
    hint: str = ""


async def suggest(store: Store, text: str, cursor: int | None = None) -> list[Suggestion]:
    """At most 20 words that begin with the text before the cursor."""
    place = len(text) if cursor is None else max(0, min(cursor, len(text)))
    begun = text[:place].rsplit(maxsplit=1)[-1] if place and not text[place - 1].isspace() else ""
    offered = [word for word in await _offers(store, begun) if word.text.startswith(begun) and word.text != begun]
    return list({word.text: word for word in offered}.values())[:SUGGESTIONS_SHOWN]


async def _offers(store: Store, begun: str) -> list[Suggestion]:
    key, colon, _ = begun.partition(":")
    if colon and key in _VALUES:
        return _named(key, await _VALUES[key](store))
    field, dot, _ = begun.removeprefix("has:").partition(".")
    if dot and field in _DOCUMENTS:
        return await _paths(store, field, "has:" if begun.startswith("has:") else "")
    keys = [Suggestion(f"{word}:", hint) for word, hint in KEYS.items()]
    fields = [Suggestion(f"{name}." if name in _DOCUMENTS else f"{name}~", f"a condition on {name}") for name in FIELDS]
    return [*keys, *fields]


async def _states(_: Store) -> list[str]:
    return list(JobState)


async def _marked(_: Store) -> list[str]:
    return ["marked", "unmarked"]


async def _kinds(store: Store) -> list[str]:
    known = [record.name for record in await store.kinds()]
    return [*known, *(job.kind for job in await store.jobs(JobFilter(), Page(_JOBS_LOOKED_AT)))]


async def _queues(store: Store) -> list[str]:
    return [count.queue for count in await store.counts(cap=1)]


async def _tags(store: Store) -> list[str]:
    return [tag for job in await store.jobs(JobFilter(), Page(_JOBS_LOOKED_AT)) for tag in job.tags]


_VALUES: Final[dict[str, Callable[[Store], Awaitable[list[str]]]]] = {
    "state": _states,
    "kind": _kinds,
    "queue": _queues,
    "tag": _tags,
    "is": _marked,
}


def _named(key: str, names: Iterable[str]) -> list[Suggestion]:
    return [Suggestion(f"{key}:{quoted(name)}") for name in sorted(set(names))]


async def _paths(store: Store, field: str, lead: str) -> list[Suggestion]:
    found: dict[str, str] = {}
    for job in await store.jobs(JobFilter(), Page(_JOBS_LOOKED_AT)):
        for path, kind in _steps(unpacked(getattr(job, field)), (), job.kind):
            found.setdefault(".".join((field, *path)), kind)
    sign = "" if lead else "="
    return [Suggestion(f"{lead}{path}{sign}", f"as in {kind}") for path, kind in sorted(found.items())]


def _steps(value: Any, path: tuple[str, ...], kind: str) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and len(path) < _PATH_LIMIT_PARTS:
        for key, inner in value.items():
            yield from _steps(inner, (*path, quoted(str(key), is_step=True)), kind)
    elif path:
        yield path, kind
