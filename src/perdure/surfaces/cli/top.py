"""`perdure top`: the live screen of the terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from perdure.errors import ArgumentError, SettingsError
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import shown_url, with_desk

Every = Annotated[float, typer.Option("--every", min=0.5, max=60, help="Seconds between two refreshes.")]


def top(url: options.Url = None, every: Every = 2.0) -> None:
    """Watch queues, workers, dead letters and kinds live, and act on them by keys.

    Needs the extra `top`: pip install 'perdure[top]'. In a script, use `perdure stats --json`.
    """
    try:
        from perdure.surfaces.top.screen import Top  # noqa: PLC0415 - Textual is an extra, and slow to load
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("textual"):
            raise
        raise SettingsError("top", "needs the extra `top`: pip install 'perdure[top]'") from error
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):  # Textual draws on stderr
        raise ArgumentError("perdure top", "needs a terminal; for a script use `perdure stats --json`")

    async def watch(desk: Desk) -> None:
        await Top(desk, shown_url(url), refresh_seconds=every).run_async()

    with_desk(url, watch)
