"""The plan of a bulk command."""

from __future__ import annotations

from msgspec import Struct

from perdure.storage.operate.bulk import BulkParams, BulkView
from perdure.storage.records import JobFilter


class BulkPlan(Struct, frozen=True, kw_only=True):
    """The counted dry run of a bulk command.

    `jobs` match (`capped`: a lower bound), and the action applies to `able` of them in their current state. `notes` are
    sentences for the person who confirms. `token` confirms action, filter and count: `start_bulk` accepts it for ten
    minutes.
    """

    action: str
    filter: JobFilter
    params: BulkParams
    jobs: int
    capped: bool
    able: int
    notes: tuple[str, ...]
    token: str


class BulkPage(Struct, frozen=True):
    """A page of bulk commands, newest first. `next` is the `before` of the following page; None: the end."""

    bulks: tuple[BulkView, ...]
    next: str | None
