"""When `/readyz` warns, and which checks of your own it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.duration import Duration, parse_duration
from perdure.errors import SettingsError


class Condition(StrEnum):
    """The condition of a part."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    status: Condition
    seen: str


class HealthSettings(Struct, frozen=True, kw_only=True):
    """When `/readyz` warns.

    `depth`: a queue has more ready jobs than this. `failures`: more attempts than this failed in an hour. `disk`: the
    disk of the SQLite file has less free space than this, in MB. `silence`: a worker without a heartbeat for this long
    does not count as alive. `checks`: your own coroutine functions that return a `Check`, such as whether a browser is
    installed.
    """

    depth: int = 100
    failures: int = 10
    disk: int = 500
    silence: Duration = timedelta(seconds=30)
    checks: tuple[Callable[[], Awaitable[Check]], ...] = ()

    def __post_init__(self) -> None:
        for field in ("depth", "failures", "disk"):
            if isinstance(value := getattr(self, field), bool) or not isinstance(value, int) or value < 0:
                raise SettingsError(f"health.{field}", f"must be a whole number of at least 0, got {value!r}")
        force_setattr(self, "silence", parse_duration("health.silence", self.silence, error=SettingsError))
        for look in self.checks:
            if not callable(look):
                raise SettingsError("health.checks", f"must be coroutine functions that return a Check, got {look!r}")
