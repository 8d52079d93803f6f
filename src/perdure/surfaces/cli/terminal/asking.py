"""Asking whether a command is meant, where there is somebody to ask."""

from __future__ import annotations

import signal
import sys

import typer

from perdure.errors import ArgumentError


def check_somebody_is_there(*, as_json: bool, hint: str = "") -> None:
    """Refuse to guess where nobody can be asked: a script says --yes."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ArgumentError("--yes", f"is needed, since nobody can be asked here{hint}")


def agreed(what_will_be: str) -> bool:
    """Ask; what the question quotes must be safe already.

    An event loop keeps Ctrl-C for its next turn, and there is none while we wait for an answer. So here it is heard at
    once.
    """
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(f"{what_will_be}. Go on?")
    except typer.Abort:
        typer.echo()  # what follows begins on a line of its own
        raise
    finally:
        signal.signal(signal.SIGINT, kept)


def some(count: int, thing: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
