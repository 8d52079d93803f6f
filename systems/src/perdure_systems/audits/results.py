"""The results of an audit's steps. Each is stored before the next step begins."""

from __future__ import annotations

from typing import Literal

import msgspec

Strategy = Literal["mobile", "desktop"]
Rating = Literal["good", "fair", "poor", "unknown"]
Size = Literal["desktop", "mobile"]


class Metric(msgspec.Struct, frozen=True):
    """One measured value, with the text that people read."""

    name: str
    title: str
    value: float
    text: str
    rating: Rating


class Opportunity(msgspec.Struct, frozen=True):
    """What would make the page better, and what that would save."""

    title: str
    text: str = ""
    saves_ms: int = 0
    saves_bytes: int = 0


class PageSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one page. Scores go from 0 to 100, by category."""

    source: Literal["pagespeed", "browser"]
    final_url: str
    scores: dict[str, int]
    metrics: list[Metric]
    opportunities: list[Opportunity]
    requests: int | None = None
    bytes: int | None = None


class Screenshot(msgspec.Struct, frozen=True):
    """One picture: a file of the audit's folder."""

    file: str
    width: int
    height: int
    bytes: int


class Screenshots(msgspec.Struct, frozen=True):
    """The pictures that could be taken, and why the others could not."""

    taken: dict[Size, Screenshot]
    errors: dict[Size, str]


class Report(msgspec.Struct, frozen=True):
    """The printed report: a file of the audit's folder. `included` are the screenshots that are really in it."""

    file: str
    bytes: int
    included: list[Size]
    missing: dict[Size, str]


class HandedOver(msgspec.Struct, frozen=True):
    """The webhook of the audit; None: there is none."""

    webhook_id: str | None
    url: str | None
