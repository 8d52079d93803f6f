"""The plan of a bulk command."""

from __future__ import annotations

from msgspec import Struct

from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter


class BulkPlan(Struct, frozen=True, kw_only=True):
    """The counted dry run of a bulk command.

    `jobs` match (`capped`: at least so many), and to `able` of them the action can be done as they stand. `notes` are
    sentences for the person who confirms. `token` stands for action, filter and count: `start_bulk` takes it for ten
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
