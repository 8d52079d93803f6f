"""When `/readyz` warns, and what else it looks at."""

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

    `depth`: more ready jobs in a queue. `failures`: more failed attempts in an hour. `disk`: less free space, in MB,
    where an SQLite file is. `silence`: how long a worker may be silent before it does not count as alive. `checks` are
    further ones of your own, such as whether a browser is installed: coroutine functions that return a `Check`.
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
