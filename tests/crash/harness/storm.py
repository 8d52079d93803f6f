"""A storm: producers and workers at work while everything that can be killed is killed, and then a calm.

The faults come from a deck that is shuffled and dealt again and again, so that each kind comes up even in a short
storm. In the calm nothing more is done to anybody; whatever was acknowledged must then come to its end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from tests.crash.conftest import House
from tests.crash.harness.checker import Report, check
from tests.crash.harness.contents import left_over, read_contents, unfinished
from tests.crash.harness.fleet import Fleet, Member, is_writable
from tests.crash.harness.leases import LeaseSampler
from tests.support.databases.behind import query
from tests.support.databases.postgres import PostgresServer

_WORKERS = 3
_PRODUCERS = 2
_LONGEST_SLEEP = 8.0
_TO_COME_ROUND = 2.0  # seconds in which a worker that was woken writes what it has
_PAUSE = (0.1, 0.7)
_TRIES = 50
_CALM = 60.0


class Storm:
    """One storm over one house."""

    def __init__(self, house: House, fleet: Fleet, chance: Random) -> None:
        self._house = house
        self._fleet = fleet
        self._chance = chance
        self._asleep: list[tuple[float, Member]] = []  # since when
        self._drowsy: dict[int, float] = {}  # until when, by pid
        self._crew: list[tuple[Member, Callable[[], Member]]] = []
        self.faults: Counter[str] = Counter()
        for number in range(_WORKERS):
            self._enlist(partial(fleet.worker, f"worker-{number}", "quick"))
        for number in range(_PRODUCERS):
            self._enlist(partial(fleet.producer, f"producer-{number}", number))

    def rage(self, seconds: float) -> None:
        """Let it all happen, each fault at least once."""
        deck = self._shuffled_deck()
        first = len(deck)
        deadline = time.monotonic() + seconds
        while first > 0 or time.monotonic() < deadline:
            deck = deck or self._shuffled_deck()
            deck.pop()()
            first -= 1
            time.sleep(self._chance.uniform(*_PAUSE))
            self._wake_sleepers()
            self._replace_the_dead()

    def calm(self) -> None:
        """Wake all processes, let producers finish, and wait until no job is left."""
        self._replace_the_dead()
        self._fleet.wait(self._wake_sleepers)
        self._fleet.opened(*(member for member, _ in self._crew))
        self._end_all("producer")
        try:
            self._fleet.wait(lambda: unfinished(self._house.url) == 0, _CALM)
        except AssertionError as error:
            raise AssertionError(f"left over: {left_over(self._house.url)}\n{error}") from None
        self._end_all("worker")

    def _shuffled_deck(self) -> list[Callable[[], None]]:
        deck = [self._kill_worker] * 4 + [self._kill_producer] * 3 + [self._put_worker_to_sleep]
        if (server := self._house.server) is not None:
            deck += [self._cut_connections] * 4 + [lambda: self._crash(server)]
        self._chance.shuffle(deck)
        return deck

    def _kill_worker(self) -> None:
        self._kill("worker")

    def _kill_producer(self) -> None:
        self._kill("producer")

    def _kill(self, program: str) -> None:
        self._chance.choice(self._awake(program)).kill()
        self.faults[f"{program}s killed"] += 1

    def _put_worker_to_sleep(self) -> None:
        """Stop a worker in the middle of a job that will not listen; one at a time, so that others can take over."""
        for _ in range(0 if self._asleep else _TRIES):
            member = self._chance.choice(self._awake("worker"))
            member.stop()
            if is_writable(self._house.url) and self._is_busy(member):
                self._asleep.append((time.monotonic(), member))
                self.faults["workers put to sleep past their lease"] += 1
                return
            member.wake()

    def _is_busy(self, member: Member) -> bool:
        time.sleep(0.02)  # what was on its way to the database has arrived
        return bool(
            query(
                self._house.url,
                "SELECT j.id FROM {lease} l JOIN {worker} w ON w.id = l.worker_id JOIN {job} j ON j.id = l.job_id"
                f" WHERE w.dead_at IS NULL AND w.pid = {member.pid} AND j.kind = 'insist'",
            )
        )

    def _cut_connections(self) -> None:
        cut = query(
            self._house.url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'perdure' AND random() < 0.5",
        )
        self.faults["connections cut"] += len(cut)

    def _crash(self, server: PostgresServer) -> None:
        server.kill()
        time.sleep(self._chance.uniform(0.0, 0.5))
        server.start()
        self.faults["servers killed"] += 1

    def _awake(self, program: str) -> list[Member]:
        """Those that can be hurt: those at work, if there are any."""
        now, opened = time.monotonic(), self._fleet.book().opened
        awake = [member for member, _ in self._crew if member.program == program and not member.stopped]
        fit = [member for member in awake if self._drowsy.get(member.pid, 0.0) < now]
        return [member for member in fit if member.pid in opened] or fit or awake

    def _wake_sleepers(self) -> bool:
        """Wake the processes that lost their lease; whether no process sleeps any more."""
        now = time.monotonic()
        for since, member in self._asleep:
            if self._is_buried(member) or now - since > _LONGEST_SLEEP:
                member.wake()
                self._drowsy[member.pid] = now + _TO_COME_ROUND
        self._asleep = [(since, member) for since, member in self._asleep if member.stopped]
        return not self._asleep

    def _is_buried(self, member: Member) -> bool:
        return not query(self._house.url, f"SELECT id FROM {{worker}} WHERE pid = {member.pid} AND dead_at IS NULL")

    def _replace_the_dead(self) -> None:
        """Start killed processes again; no other process may have ended."""
        for place, (member, start) in enumerate(self._crew):
            if not member.runs:
                assert member.killed_at, f"{member.name} ended by itself: {member.last_words()}"
                self._crew[place] = (start(), start)

    def _end_all(self, program: str) -> None:
        for member, _ in self._crew:
            if member.program == program:
                assert member.end() == 0, member.last_words()

    def _enlist(self, start: Callable[[], Member]) -> None:
        self._crew.append((start(), start))


def weather(house: House, folder: Path, seconds: float, chance: Random) -> tuple[Report, Counter[str]]:
    """A storm of so many seconds and the calm after it: what the checker says, and which faults there were."""
    with Fleet(house.url, folder) as fleet:
        storm = Storm(house, fleet, chance)
        fleet.opened(*fleet.members)
        sampler = LeaseSampler(house.url)
        try:
            storm.rage(seconds)
            storm.calm()
        finally:
            watch = sampler.stop()
        return check(fleet.book(), read_contents(house.url), watch), storm.faults
