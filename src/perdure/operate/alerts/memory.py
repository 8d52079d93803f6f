"""The state that evaluations carry over: stored in the alert book, with its version.

Deaths are read from the counts of failure groups by the hour, which the engine writes with each death. The counts of
the last look are stored: the difference is what happened since, no matter in which order transactions became visible,
which process looks, or how long none did.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from perdure.domain.schedule import Fire
from perdure.policy.alerts.broken_channels import Broken
from perdure.policy.alerts.incidents import Incident
from perdure.storage.operate.alerts import RecentFailure

LOOK_BACK: Final = timedelta(minutes=2)
"""How far before its last look an evaluation looks again: transactions take their time before they commit."""
LONGEST_WITHIN: Final = timedelta(hours=6)
GROUPS_KEPT: Final = 2_000
_HOUR: Final = timedelta(hours=1)
_FINE_STEP: Final = timedelta(seconds=10)
_COARSE_STEP: Final = timedelta(minutes=1)
_FINE_FOR: Final = timedelta(minutes=10)
"""Deaths are counted in steps of ten seconds for this long, then by the minute."""


class Died(Struct, frozen=True, kw_only=True):
    """Failures of one group since the last look. `is_new`: it was not known before."""

    fingerprint: str
    kind: str
    error_type: str
    message: str
    deaths: int
    is_new: bool


class Memory(Struct, kw_only=True):
    """Counts by group and hour, deaths by time and kind, causes that do not last long enough yet, broken channels.

    `sorts` is what each rule looked for at its last look. `incidents` are open, by their keys.
    """

    looked_at: datetime | None = None
    seen: dict[str, dict[str, int]] = {}
    deaths: dict[str, dict[str, int]] = {}
    missed: dict[str, datetime] = {}
    lasting: dict[str, dict[str, datetime]] = {}
    broken: dict[str, Broken] = {}
    sorts: dict[str, str] = {}
    incidents: dict[str, Incident] = {}

    def look_from(self, now: datetime) -> datetime | None:
        """From when to read failures and fires; None: the first look, which only learns the current counts.

        After the clock was set back, the last look may be in the future.
        """
        return None if self.looked_at is None else min(self.looked_at, now) - LOOK_BACK

    def learn_failures(self, failures: Iterable[RecentFailure], now: datetime, since: datetime) -> list[Died]:
        """What failed since the last look, or, at the first one, groups that have failed only since then."""
        floor = self.look_from(now) or since
        found: list[Died] = []
        for group in failures:
            before = self.seen.get(group.fingerprint)
            counted = before or {}
            deaths = sum(max(number - counted.get(_stamp(hour), 0), 0) for hour, number in group.deaths.items())
            self.seen[group.fingerprint] = counted | {_stamp(hour): number for hour, number in group.deaths.items()}
            is_new = before is None and group.first_at > floor
            if self.looked_at is None and not is_new:
                continue
            if deaths or is_new:
                found.append(
                    Died(
                        fingerprint=group.fingerprint,
                        kind=group.kind,
                        error_type=group.error_type,
                        message=group.message,
                        deaths=deaths,
                        is_new=is_new,
                    )
                )
                if deaths:
                    self._count_deaths(_floor(now, _FINE_STEP), {group.kind: deaths})
        return found

    def learn_missed(self, fires: Iterable[Fire]) -> list[Fire]:
        """The nominal times missed since the last look."""
        fresh = [fire for fire in fires if f"{fire.schedule} {_stamp(fire.nominal_at)}" not in self.missed]
        self.missed |= {f"{fire.schedule} {_stamp(fire.nominal_at)}": fire.at for fire in fresh}
        return [] if self.looked_at is None else fresh

    def died_within(self, within: timedelta, kind: str | None, now: datetime) -> dict[str, int]:
        """How many jobs of each kind, or of this one, died in this time, up to 10 s longer, or a minute after 10m."""
        since = _stamp(_floor(now - within, _FINE_STEP if within <= _FINE_FOR else _COARSE_STEP))
        sums: dict[str, int] = {}
        for at, kinds in self.deaths.items():
            for name, number in kinds.items() if at >= since else ():
                if kind in {None, name}:
                    sums[name] = sums.get(name, 0) + number
        return sums

    def forget(self, now: datetime) -> None:
        """Drop what no look needs any more."""
        hour = _stamp(now - 2 * _HOUR)
        self.seen = {name: kept for name, hours in self.seen.items() if (kept := _since(hours, hour))}
        deaths, self.deaths = self.deaths, {}
        for at, kinds in deaths.items():
            moment = min(datetime.fromisoformat(at), _floor(now, _FINE_STEP))
            if moment >= now - LONGEST_WITHIN - _HOUR:
                is_old = moment < now - _FINE_FOR - _COARSE_STEP
                self._count_deaths(_floor(moment, _COARSE_STEP) if is_old else moment, kinds)
        self.missed = {key: at for key, at in self.missed.items() if at >= now - 2 * LOOK_BACK}
        self.looked_at = now

    def _count_deaths(self, at: datetime, kinds: dict[str, int]) -> None:
        counted = self.deaths.setdefault(_stamp(at), {})
        for kind, number in kinds.items():
            counted[kind] = counted.get(kind, 0) + number


def read_memory(text: str) -> Memory:
    """The memory that the last evaluation stored."""
    return msgspec.json.decode(text, type=Memory) if text else Memory()


def _stamp(moment: datetime) -> str:
    return moment.isoformat()


def _floor(moment: datetime, step: timedelta) -> datetime:
    """The begin of the step, which divides a minute, in which a moment lies."""
    into = timedelta(seconds=moment.second, microseconds=moment.microsecond) % step
    return moment - into


def _since(hours: dict[str, int], hour: str) -> dict[str, int]:
    return {at: number for at, number in hours.items() if at >= hour}
