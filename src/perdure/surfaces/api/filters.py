"""The filter of a request: the same names as query parameters and in a JSON object."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.search.parse import parse_search
from perdure.storage.records import JobFilter
from perdure.surfaces.api.route import Given
from perdure.surfaces.api.values import Instant

_LIST_MARK_CHARACTERS: Final = 8  # characters that identify a list
_CURSOR_LIMIT_CHARACTERS: Final = 500


class Filter(Given, frozen=True, kw_only=True):
    """Which jobs match; every given condition must hold. `state` may be the app's own word.

    `search` is a text such as `kind:mail state:dead args.user.id=42 error~timeout since:1h`.
    """

    search: str | None = None
    id: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    kind: str | None = None
    queue: str | None = None
    tag: str | None = None
    error: str | None = None
    mark: str | None = None
    marked: bool | None = None
    ref: str | None = None
    fingerprint: str | None = None
    created_before: Instant | None = None
    created_after: Instant | None = None
    finished_before: Instant | None = None
    finished_after: Instant | None = None

    @property
    def conditions(self) -> dict[str, object]:
        """The conditions without the page: two lists with the same conditions are the same list."""
        return {name: value for name, value in asdict(self).items() if name not in {"limit", "cursor"}}

    async def read(self, desk: Desk) -> JobFilter:
        """The filter; refuses a condition that the search contains as well."""
        found = JobFilter() if self.search is None else parse_search(self.search, now=await desk.now())
        if self.state:
            meant = await desk.meaning(self.state, self.kind)
            found = _narrowed(found, states=meant.states, kind=None if self.kind else meant.kind)
        if self.id:
            try:
                found = _narrowed(found, ids=self.id)
            except ArgumentError as error:
                raise ArgumentError("id", str(error).removeprefix("ids ")) from None
        return _narrowed(
            found,
            kind=self.kind,
            queue=self.queue,
            tag=self.tag,
            error=self.error,
            mark=self.mark,
            marked=self.marked,
            ref=self.ref,
            fingerprint=self.fingerprint,
            created_before=self.created_before,
            created_after=self.created_after,
            finished_before=self.finished_before,
            finished_after=self.finished_after,
        )


def _narrowed(found: JobFilter, **conditions: Any) -> JobFilter:
    given = {name: value for name, value in conditions.items() if value is not None}
    for name in given:
        if getattr(found, name) is not None:
            raise ArgumentError(name, "is in the search too: give it once")
    return replace(found, **given)


def write_cursor(listed: object, place: str | int | None) -> str | None:
    """The cursor of the next page; `listed` identifies the list and its filter."""
    return None if place is None else base64.urlsafe_b64encode(f"{_mark(listed)}{place}".encode()).decode().rstrip("=")


def read_cursor(listed: object, cursor: str | None) -> str | None:
    """The place that a cursor points to; refuses the cursor of another list."""
    if cursor is None:
        return None
    if len(cursor) > _CURSOR_LIMIT_CHARACTERS:
        raise _refused(f"has {len(cursor)} characters")
    try:
        text = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise _refused(f"is not a cursor: {cursor[:80]!r}") from None
    if len(text) <= _LIST_MARK_CHARACTERS:
        raise _refused(f"is not a cursor: {cursor[:80]!r}")
    if text[:_LIST_MARK_CHARACTERS] != _mark(listed):
        raise _refused("belongs to another list or filter")
    return text[_LIST_MARK_CHARACTERS:]


def _refused(problem: str) -> ArgumentError:
    return ArgumentError("cursor", f"{problem}; take it from `next` of the page before, with the same filter")


def _mark(listed: object) -> str:
    return hashlib.blake2b(
        msgspec.json.encode(listed, order="sorted"), digest_size=_LIST_MARK_CHARACTERS // 2
    ).hexdigest()
