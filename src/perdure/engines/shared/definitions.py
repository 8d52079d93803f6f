"""Schedules as text: how both engines store their definition."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from perdure.domain.schedule import Schedule

_READER: Final = msgspec.json.Decoder(Schedule)


def definition_text(schedule: Schedule) -> str:
    """The stored text."""
    return msgspec.json.encode(schedule).decode()


def read_definition(text: str) -> Schedule:
    """The schedule of a text.

    One that this release cannot read, as a later one wrote it, must not hold up the others: it gets an expression that
    says so and never comes due here.
    """
    try:
        return _READER.decode(text)
    except msgspec.MsgspecError as error:
        known: dict[str, Any] = msgspec.json.decode(text)
        return Schedule(name=known["name"], kind=str(known.get("kind")), expression=f"unreadable here: {error}")
