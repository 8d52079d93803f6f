"""Failures by group (same kind, error type and message, ignoring numbers and ids), and search suggestions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from perdure.operate.search.suggest import Suggestion
from perdure.operate.views.failure_groups import GROUPS_PER_PAGE, FailureGroup
from perdure.surfaces.api.filters import Filter, read_cursor, write_cursor
from perdure.surfaces.api.route import Call, Given


class GroupsQuery(Filter, frozen=True, kw_only=True):
    """Which dead letters, and which page of their groups."""

    limit: Annotated[int, Meta(ge=1, le=GROUPS_PER_PAGE)] = 50
    cursor: str | None = None


class SuggestQuery(Given, frozen=True, kw_only=True):
    """The search typed so far, and the position of the cursor; omitted: at the end."""

    text: Annotated[str, Meta(max_length=1_000)] = ""
    cursor: Annotated[int, Meta(ge=0, le=1_000)] | None = None


class GroupList(Struct, frozen=True, kw_only=True):
    """A page of groups, last failure first. `next` is the `cursor` of the following page; null: the end.

    `only_newest`: only this many of the newest matching dead letters were read; older ones may form other groups.
    """

    groups: tuple[FailureGroup, ...]
    next: str | None = None
    only_newest: int | None = None


class Suggestions(Struct, frozen=True):
    """Replacements for the word at the cursor."""

    suggestions: tuple[Suggestion, ...]


async def list_failure_groups(call: Call[GroupsQuery, None]) -> GroupList:
    """List dead letters by group, with count, first and last seen, and trend."""
    query = call.query
    listed = ["groups", query.conditions]
    which = await query.read(call.desk)
    page = await call.desk.failure_groups(which, limit=query.limit, before=read_cursor(listed, query.cursor))
    return GroupList(groups=page.groups, next=write_cursor(listed, page.next), only_newest=page.only_newest)


async def show_failure_group(call: Call[None, None]) -> FailureGroup:
    """Show a group of failures."""
    return await call.desk.failure_group(call.path["fingerprint"])


async def suggest_search(call: Call[SuggestQuery, None]) -> Suggestions:
    """Suggest completions of a search: keys, states, kinds, queues, paths."""
    return Suggestions(tuple(await call.desk.suggestions(call.query.text, call.query.cursor)))
