"""G8 through kills: however often workers die with what they hold and were lent, no room is ever too full."""

from __future__ import annotations

import os
import random
import time
from itertools import accumulate
from pathlib import Path
from typing import Final

import pytest
from tests.crash.conftest import House, Tell
from tests.crash.harness.fleet import Fleet, Member
from tests.crash.programs.gated import PLACES, ROOMS, build_app
from tests.support.chance import seeded
from tests.support.databases.behind import query

from perdure import App, JobState
from perdure.storage.records import JobFilter, Page

SHORT: Final = 6.0
LONG: Final = float(os.environ.get("PERDURE_PROOF_SECONDS", "90"))
SEED: Final = int(os.environ.get("PERDURE_CRASH_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
WORKERS: Final = 3
WAVE: Final = 40
_UNTIL_FULL: Final = 60.0  # seconds
UNDONE: Final = JobFilter(states=frozenset(JobState) - {JobState.SUCCEEDED})


@pytest.mark.parametrize("seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.proof)], ids=["short", "long"])
def test_g8_no_room_is_too_full_however_often_its_workers_are_killed(
    house: House, tmp_path: Path, seconds: float, tell: Tell
) -> None:
    with Fleet(house.url, tmp_path) as fleet:
        storm = Storm(fleet, seeded(SEED))
        storm.rage(seconds)
        crowd = {room: storm.most_in(room) for room in ROOMS}
        tell(
            f"{house.engine}, rooms of {PLACES} in a storm of {seconds:g} s (PERDURE_CRASH_SEED={SEED})\n"
            f"  visits: {storm.visits}, killed: {storm.killed}, most at once: {crowd}, most lent: {storm.most_lent}"
        )
        assert max(crowd.values()) <= PLACES
        assert max(crowd.values()) > PLACES // 2
        assert storm.most_lent > 0
        assert query(house.url, "SELECT * FROM {gate_loan}") == []


class Storm:
    """What happens to the workers, and how full the rooms were."""

    def __init__(self, fleet: Fleet, chance: random.Random) -> None:
        self.killed = 0
        self.most_lent = 0
        self._fleet = fleet
        self._chance = chance
        self._app = build_app(fleet.url, fleet._pen)
        self._visit = self._app.job_named("visit")

    def rage(self, seconds: float) -> None:
        """Send visitors in waves and kill workers; then wait until every visitor has been there."""
        members = [self._start(number) for number in range(WORKERS)]
        self._fleet.opened(*members)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._send()
            self._count_lent()
            time.sleep(self._chance.uniform(0.05, 0.2))
            if self._chance.random() < 0.3:
                place = self._chance.randrange(WORKERS)
                members[place].kill()
                self.killed += 1
                members[place] = self._start(place)
        self._fleet.opened(*members)
        self._fill(deadline + _UNTIL_FULL)
        self._fleet.wait(self._is_over, within=90)
        assert {member.end() for member in members} == {0}
        self._app.run_sync(_recall(self._app))
        self._app.close_sync()

    def most_in(self, room: str) -> int:
        """How many were in a room at once; those of a process that was killed left when it was."""
        died = {member.pid: member.killed_at for member in self._fleet.members if member.killed_at}
        came, left = dict[tuple[str, str], int](), dict[tuple[str, str], int]()
        for line in self._fleet.ledger.read_text().splitlines():
            match line.split(" "):
                case ["in", where, job, pid, at] if where == room:
                    came[job, pid] = int(at)
                case ["out", where, job, pid, at] if where == room:
                    left[job, pid] = int(at)
        steps = [(at, 1) for at in came.values()]
        ends = [left.get(visit) or died.get(int(visit[1])) for visit in came]
        steps += [(at, -1) for at in ends if at is not None]
        return max(accumulate(change for _, change in sorted(steps)), default=0)

    @property
    def visits(self) -> int:
        """How often a room was entered."""
        return sum(line.startswith("in ") for line in self._fleet.ledger.read_text().splitlines())

    def _fill(self, until: float) -> None:
        """Send visitors without killing any worker until a room is more than half full, as a slow machine needs it."""
        while max(self.most_in(room) for room in ROOMS) <= PLACES // 2 and time.monotonic() < until:
            self._send()
            self._count_lent()
            time.sleep(0.2)

    def _send(self) -> None:
        for _ in range(WAVE):
            room = self._chance.choice(ROOMS)
            self._visit.enqueue_sync(room=room, seconds=self._chance.uniform(0.0, 0.06))

    def _count_lent(self) -> None:
        [[lent]] = query(self._fleet.url, "SELECT coalesce(sum(number), 0) FROM {gate_loan}")
        self.most_lent = max(self.most_lent, int(lent))

    def _is_over(self) -> bool:
        async def look() -> bool:
            return not await (await self._app.store()).jobs(UNDONE, Page(limit=1))

        return self._app.run_sync(look())

    def _start(self, number: int) -> Member:
        return self._fleet.gated(f"g{number}")


async def _recall(app: App) -> None:
    await (await app.store()).recall_loans()
