"""Limits on labels, and how often metrics read the database."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from perdure.domain.duration import Duration, read_spans
from perdure.errors import SettingsError

_NUMBERS: Final = ("kinds", "queues", "names", "cap")
_LABELS_LIMIT: Final = 100_000


class MetricsSettings(Struct, frozen=True, kw_only=True):
    """Limits of `/metrics`.

    `kinds`, `queues` and `names` (of schedules, loops, breakers and budgets, each) have labels up to this number; the
    rest is summed up as "other". `cap` is the most jobs that are counted in one queue and state. `fresh` is how
    long an answer of the database is used again: at least 20 times as long as its read took, but 10 s at most; with 0
    each scrape reads. A worker that is silent for `silence` does not count as alive.
    """

    kinds: int = 100
    queues: int = 50
    names: int = 100
    cap: int = 10_000
    fresh: timedelta = timedelta(seconds=1)
    silence: timedelta = timedelta(seconds=30)

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            *,
            kinds: int = ...,
            queues: int = ...,
            names: int = ...,
            cap: int = ...,
            fresh: Duration = ...,
            silence: Duration = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        for field in _NUMBERS:
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LABELS_LIMIT:
                raise SettingsError(
                    f"metrics.{field}", f"must be a whole number from 1 to {_LABELS_LIMIT:,}, got {value!r}"
                )
        read_spans("metrics", self, ("fresh", "silence"))
