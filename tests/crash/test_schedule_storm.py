"""G6 through kills, stops and jumps of the clock: fifty schedules of 1 to 5 seconds on four processes."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct
from tests.crash.conftest import House, Tell
from tests.crash.harness.fleet import Fleet, Member, stop_between_writes
from tests.crash.programs.scheduled import INTERVALS, SCHEDULES, MovedClock, move_clock
from tests.support.chance import seeded

from perdure import App, JobState
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import ACTIVE, FINAL
from perdure.domain.schedule import Cause, Fate, Fire
from perdure.storage.records import JobFilter, Page

SHORT: Final = 14.0
LONG: Final = float(os.environ.get("PERDURE_PROOF_SECONDS", "60"))
SEED: Final = int(os.environ.get("PERDURE_CRASH_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
PROCESSES: Final = 4
JUMPS: Final = (3600.0, 0.0, -3600.0, 0.0)
CALM: Final = 60.0  # seconds without progress, until processes that were hurt are given up
LATEST: Final = 1.5
LONGEST: Final = timedelta(seconds=max(INTERVALS))
_WRONG: Final = frozenset({JobState.DEAD, JobState.CANCELLED})


class Stretch(Struct):
    """A time without a jump, by the clock of the house; what was due in it was dealt with before the next."""

    start: datetime
    end: datetime


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.proof)], ids=["short", "long"])
def test_g6_every_nominal_time_fires_once_through_kills_stops_and_clock_jumps(
    house: House, tmp_path: Path, seconds: float, tell: Tell
) -> None:
    clock_file = tmp_path / "clock"
    move_clock(clock_file, 0.0)
    with Fleet(house.url, tmp_path) as fleet:
        storm = Storm(fleet, clock_file, seeded(SEED))
        storm.rage(seconds)
        fires = storm.fires()
        told = "\n".join(f"  {name}: {count}" for name, count in sorted(storm.faults.items()))
        late = storm.lateness(fires)
        p99 = statistics.quantiles(late, n=100)[98]
        tell(
            f"{house.engine}, schedules in a storm of {seconds:g} s (PERDURE_CRASH_SEED={SEED})\n{told}\n"
            f"  fired: {len(fires)}, p50 late {statistics.median(late):.3f} s, p99 {p99:.3f} s"
        )
        assert storm.missing(fires) == []
        assert storm.doubled() == {}
        assert storm.unfinished() == []
        assert len(late) > 4 * seconds  # enough to say something; how many depends on how the storm has cut its time
        if seconds > SHORT:  # a short one may have met a neighbour that takes the processors
            assert p99 <= LATEST


class Storm:
    """What happens to the processes, and what became of the schedules."""

    def __init__(self, fleet: Fleet, clock_file: Path, chance: random.Random) -> None:
        self.faults: Counter[str] = Counter()
        self._fleet = fleet
        self._clock_file = clock_file
        self._clock = MovedClock(clock_file)
        self._chance = chance
        self._stretches: list[Stretch] = []
        self._app = App(fleet.url, clock=self._clock)

    def rage(self, seconds: float) -> None:
        """Kill, stop, wake and put the clock wrong for so long; then let everything come to rest."""
        members = [self._start(number) for number in range(PROCESSES)]
        self._fleet.opened(*members)
        self._fleet.wait(lambda: len(self.fires()) > 0)
        jumps = JUMPS[:2] if seconds <= SHORT else JUMPS
        for offset in (*jumps, None):
            self._live(members, seconds / (len(jumps) + 1))
            if offset is not None:
                move_clock(self._clock_file, offset)
                self.faults[f"clock {offset:+.0f} s"] += 1
        for job_id in self._begun():
            self._fleet.wait(partial(self._has_ended, job_id), CALM)
        self._fleet.opened(*members)  # one that is only starting would not heed that it is to end in good order
        codes = [member.end() for member in members]
        assert set(codes) == {0}

    def fires(self) -> list[Fire]:
        """The record of every nominal time."""

        async def read() -> list[Fire]:
            store = await self._app.store()
            return [fire for name, _ in SCHEDULES for fire in await store.fires(name, 100_000)]

        return self._app.run_sync(read())

    def lateness(self, fires: list[Fire]) -> list[float]:
        """How late the nominal times of undisturbed stretches fired."""
        prompt = [fire for fire in fires if fire.fate is Fate.FIRED and self._is_expected(fire.nominal_at)]
        return [(fire.at - fire.nominal_at).total_seconds() for fire in prompt]

    def missing(self, fires: list[Fire]) -> list[str]:
        """Nominal times of undisturbed stretches that have no job."""
        fired = defaultdict(set)
        for fire in fires:
            if fire.fate is Fate.FIRED and fire.cause is Cause.TIME:
                fired[fire.schedule].add(fire.nominal_at)
        return [
            f"{name} at {nominal.isoformat()}"
            for name, every in SCHEDULES
            for stretch in self._stretches
            for nominal in _nominal(stretch, every)
            if nominal not in fired[name]
        ]

    def doubled(self) -> dict[str, set[str]]:
        """Nominal times for which more than one job ran."""
        jobs: dict[str, set[str]] = defaultdict(set)
        for line in self._fleet.ledger.read_text().splitlines():
            match line.split(" "):
                case ["ran", schedule, nominal, job_id]:
                    jobs[f"{schedule} {nominal}"].add(job_id)
        return {time: ids for time, ids in jobs.items() if len(ids) > 1}

    def unfinished(self) -> list[str]:
        """Jobs that went wrong; those made while the workers closed may still be ready."""

        async def count() -> list[str]:
            store = await self._app.store()
            counts = await store.counts(1_000_000)
            return [f"{count.jobs} {count.state}" for count in counts if count.state in _WRONG]

        return self._app.run_sync(count())

    def _live(self, members: list[Member], seconds: float) -> None:
        start, deadline = self._clock.now(), time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, self._chance.uniform(0.3, 0.9)))
            self._harm(members)
        self._wake(members)
        end = self._clock.now()
        self._fleet.wait(lambda: self._is_past(end), CALM)
        self._stretches.append(Stretch(start, end))

    def _wake(self, members: list[Member]) -> None:
        for member in members:
            if member.stopped:
                member.wake()

    def _harm(self, members: list[Member]) -> None:
        self._wake(members)
        place = self._chance.randrange(PROCESSES)
        match self._chance.choice(["kill", "stop", "calm"]):
            case "kill":
                members[place].kill()
                members[place] = self._start(place)
                self.faults["killed"] += 1
            case "stop":
                stop_between_writes(members[place], self._fleet.url)
                self.faults["stopped"] += 1

    def _start(self, number: int) -> Member:
        return self._fleet.scheduled(f"s{number}", self._clock_file)

    def _is_expected(self, nominal: datetime) -> bool:
        return any(stretch.start <= nominal <= stretch.end for stretch in self._stretches)

    def _is_past(self, end: datetime) -> bool:
        """Whether all that was due by then has been dealt with, and no schedule is ahead of the clock."""

        async def look() -> bool:
            store = await self._app.store()
            views = await store.schedules()
            latest = self._clock.now() + LONGEST
            return len(views) == len(SCHEDULES) and all(view.next_at and end < view.next_at <= latest for view in views)

        return self._app.run_sync(look())

    def _begun(self) -> list[JobId]:
        """The jobs that have not ended yet; others are made while these are waited for."""

        async def read() -> list[JobId]:
            store = await self._app.store()
            return [view.id for view in await store.jobs(JobFilter(states=ACTIVE), Page(limit=100_000))]

        return self._app.run_sync(read())

    def _has_ended(self, job_id: JobId) -> bool:
        view = self._app.run_sync(self._app.view(job_id))
        return view is not None and view.state in FINAL


def _nominal(stretch: Stretch, every: int) -> list[datetime]:
    """The multiples of an interval within a stretch."""
    first = -(-int(stretch.start.timestamp() * 1_000_000) // (every * 1_000_000))
    last = int(stretch.end.timestamp() * 1_000_000) // (every * 1_000_000)
    return [datetime.fromtimestamp(number * every, stretch.start.tzinfo) for number in range(first, last + 1)]
