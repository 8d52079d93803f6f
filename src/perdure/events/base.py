"""The base class of all events."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Event(Struct, frozen=True):
    """Base class of all events."""

    sentence: ClassVar[str] = ""
    level: ClassVar[str] = "info"
