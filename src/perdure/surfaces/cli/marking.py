"""`perdure jobs mark`: a word that is kept with a job."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name
from perdure.operate.commands.actions import mark_as
from perdure.operate.desk import MOST_AT_ONCE
from perdure.storage.checking import LONGEST_MARK
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.acting import Order
from perdure.surfaces.cli.jobs.filters import Chosen, age

Word = Annotated[str | None, typer.Option("--as", metavar="WORD", help="The mark, as read: up to 50 characters.")]
Clear = Annotated[bool, typer.Option("--clear", help="Take the mark away.")]


def mark(
    ids: options.JobIds = None,
    *,
    word: Word = None,
    clear: Clear = False,
    url: options.Url = None,
    state: options.States = None,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    tag: options.Tag = None,
    error: options.ErrorText = None,
    older_than: options.CreatedBefore = None,
    marked: options.Mark = None,
    unmarked: options.Unmarked = False,
    everything: options.All = False,
    limit: options.CommandLimit = MOST_AT_ONCE,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Put a mark on jobs, such as read, or take it away.

    Lists and counts can ask for it. It stays through retries; a requeue takes it away.
    """
    if (word is None) is not clear:
        raise ArgumentError("--as", "or --clear must be given, and not both")
    if word is not None:
        checked_name("--as", word, LONGEST_MARK)
    chosen = Chosen(
        ids=tuple(ids or ()),
        states=tuple(state or ()),
        kind=kind,
        queue=queue,
        tag=tag,
        error=error,
        older_than=age(older_than),
        mark=marked,
        unmarked=unmarked,
        everything=everything,
    )
    order = Order(action=mark_as(word), as_json=as_json, yes=yes, dry_run=dry_run, limit=limit)
    order.carry_out(url, chosen)
