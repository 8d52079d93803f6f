"""All output goes through here: for people on a terminal, and for scripts as JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import IO, Any, Final, cast

from rich.console import Console
from rich.text import Text

from perdure.domain.plain_records import plain as plain  # noqa: PLC0414 - every command takes it from here
from perdure.domain.plain_records import unpacked as unpacked  # noqa: PLC0414
from perdure.surfaces.cli.terminal.hostile import one_line, safe_json

STATE_STYLE: Final = {
    "scheduled": "blue",
    "ready": "cyan",
    "running": "bold green",
    "retrying": "yellow",
    "waiting": "blue",
    "paused": "magenta",
    "succeeded": "green",
    "dead": "bold red",
    "cancelled": "dim",
}
NARROWEST_COLUMNS: Final = 60  # room for an id, a state and a time
_PIPED_COLUMNS: Final = 20_000
_PADDING: Final = re.compile(r" +\n")


def console(stream: IO[str] | None = None) -> Console:
    """A console on standard output (or `stream`): colours on a terminal only, and no markup parsed.

    Output into a pipe or file is neither wrapped nor cut, unless COLUMNS gives a width.
    """
    chosen = stream or sys.stdout
    columns = os.environ.get("COLUMNS", "")
    is_terminal = chosen.isatty()
    width = max(int(columns), NARROWEST_COLUMNS) if columns.isdigit() else None if is_terminal else _PIPED_COLUMNS
    file = chosen if is_terminal else cast("IO[str]", _Unpadded(chosen))
    return Console(file=file, markup=False, highlight=False, emoji=False, soft_wrap=False, width=width)


class _Unpadded:
    """A stream that removes the spaces with which a table pads its last column."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text without trailing spaces."""
        self._stream.write(_PADDING.sub("\n", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def say(text: str, style: str = "") -> None:
    """One line for people; quoted text must be sanitized already."""
    out = console()
    out.print(Text(text, style=style), soft_wrap=not out.is_terminal)


def state_text(state: str) -> Text:
    """A state in its colour."""
    return Text(state, style=STATE_STYLE.get(state, ""))


def print_json(document: Any) -> None:
    """Write the one JSON document of this command to standard output."""
    sys.stdout.write(_encoded(document) + "\n")


def complain(message: str, *, as_json: bool, field: str | None = None, hint: str = "") -> None:
    """Print an error to standard error."""
    if as_json:
        sys.stderr.write(_encoded({"error": message, "field": field}) + "\n")
        return
    text = Text.assemble(("error: ", "bold red"), one_line(message, 10_000))
    if hint:
        text.append(f"\n{hint}", style="dim")
    out = console(sys.stderr)
    out.print(text, soft_wrap=not out.is_terminal)


def warn(message: str) -> None:
    """Print a warning for people to standard error."""
    out = console(sys.stderr)
    out.print(Text.assemble(("warning: ", "bold yellow"), one_line(message, 10_000)), soft_wrap=not out.is_terminal)


def _encoded(document: Any) -> str:
    return safe_json(json.dumps(document, ensure_ascii=False, indent=2))
