"""Asks for confirmation on a terminal."""

from __future__ import annotations

import signal
import sys

import typer

from perdure.errors import ArgumentError


def require_terminal(*, as_json: bool, hint: str = "") -> None:
    """Refuse to continue without a terminal: a script passes --yes."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ArgumentError("--yes", f"is needed, because this is not a terminal{hint}")


def agreed(what_will_be: str) -> bool:
    """Ask; quoted text must be sanitized already.

    An event loop would handle Ctrl-C in its next iteration, which never comes while this waits for an answer. So Ctrl-C
    is handled here.
    """
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(f"{what_will_be}. Go on?")
    except typer.Abort:
        typer.echo()  # the next output begins on a line of its own
        raise
    finally:
        signal.signal(signal.SIGINT, kept)


def some(count: int, thing: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
