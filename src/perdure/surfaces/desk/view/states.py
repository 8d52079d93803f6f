"""States as chips: nine states, six colours."""

from __future__ import annotations

from typing import Final

COLOURS: Final = {
    "scheduled": "waiting",
    "ready": "ready",
    "running": "running",
    "retrying": "retrying",
    "waiting": "waiting",
    "paused": "retrying",
    "succeeded": "ok",
    "dead": "dead",
    "cancelled": "none",
    # workers, schedules, breakers, bulk commands
    "opening": "waiting",
    "open": "running",
    "quiet": "retrying",
    "closing": "retrying",
    "closed": "none",
    "lost": "dead",
    "half open": "retrying",
    "done": "ok",
    "stopped": "none",
    "failed": "dead",
}


def colour(word: str) -> str:
    """The name of a state's colour: one of the six, or `none`."""
    return COLOURS.get(word, "none")
