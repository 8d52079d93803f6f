"""The time of the stand-ins, which is that of this machine: authorities know nothing of our clocks."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The time on the wall."""
    return datetime.now(UTC)  # noqa: TID251 - as said above
