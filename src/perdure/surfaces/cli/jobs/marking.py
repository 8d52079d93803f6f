"""`perdure jobs mark`: a mark that is stored with a job."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name
from perdure.operate.commands.actions import mark_as
from perdure.storage.checking import MARK_LIMIT_CHARACTERS
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.option_groups import Care, JobFilters, with_option_groups

Word = Annotated[str | None, typer.Option("--as", metavar="WORD", help="The mark, such as read; up to 50 characters.")]
Clear = Annotated[bool, typer.Option("--clear", help="Remove the mark.")]


@with_option_groups
def mark(
    ids: options.JobIds = None,
    *,
    word: Word = None,
    clear: Clear = False,
    url: options.Url = None,
    filters: JobFilters,
    marked: options.Mark = None,
    unmarked: options.Unmarked = False,
    care: Care,
) -> None:
    """Set a mark on jobs, such as read, or remove it.

    Lists and counts can filter by it. It stays through retries; a requeue removes it.
    """
    if (word is None) is not clear:
        raise ArgumentError("--as", "or --clear must be given, and not both")
    if word is not None:
        checked_name("--as", word, MARK_LIMIT_CHARACTERS)
    chosen = replace(filters.chosen(ids, everything=care.everything), mark=marked, unmarked=unmarked)
    care.order(mark_as(word), mark=word).carry_out(url, chosen)
