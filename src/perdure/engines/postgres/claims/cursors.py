"""Where claims of this store begin to scan, and when they must scan farther back.

A snapshot held open anywhere (a backup, a long report) stops vacuum, and then every job ever claimed leaves a dead
entry at the front of the index of `ready`, where each look begins. So a store remembers, for each queue and priority,
the number up to which it has taken jobs, and starts there. A job that enters `ready` for the first time gets a new,
higher number. One that comes back takes an older number; each claim finds those by an index of their own, which holds
nothing else. So only two kinds of job can be missed: those of a transaction that commits late, and those that another
claimant gave back by dying before its commit. Nearly all of them come within seconds. The look back finds
those: every second, from where the store was five seconds ago. The full look, from the beginning, finds the rest: at
each queue every ten seconds, and whenever nothing else is found. Neither takes more than a twentieth of the time. If
one of them finds more jobs than it may take, the store continues from there, until it is back where it was.

A full look takes the urgent jobs first, and may never reach the others while there are enough urgent ones. So the
query for the next jobs of each priority, which serves ageing, starts from the beginning just as often.

Jobs with a fair key lie between and ahead of the numbers of the sequence, so the claimed ones say nothing about
those still to come. A new one enters behind the front of its lane; if just then a claim is on its way that takes jobs
without a key from there, it may fall behind the place where the next look begins, and waits for the look back. So
their numbers never move that place on.

A lane that others empty moves on too: the number that was the newest a second ago is safe to start from once a look
has found the lane empty. If the newest number is ever lower than before, the database was restored from an older
copy, and all cursors start again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from perdure.domain.jobs.job import PRIORITIES

LOOK_BACK_INTERVAL_SECONDS: Final = 1.0
LOOK_BACK_SECONDS: Final = 5.0
FULL_LOOK_INTERVAL_SECONDS: Final = 10.0
SHARE_OF_TIME: Final = 0.05
_ANY: Final = -1  # stands for the number of a job that had come back: says nothing of where the others are
LATE_AFTER_SECONDS: Final = 1.0  # seconds after which a number's transaction has surely ended, or counts as late

Place = tuple[str, int, int, bool, bool]
"""The queue, the priority and the number of a job, whether it has a fair key, and whether it had come back."""


class Cursors:
    """The memory of one store about the queues it serves. Pure but for the monotonic clock that it is given."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lanes: dict[str, list[int]] = {}
        self._found_nothing = True
        self._full_looks = _Turns()
        self._full_fronts = _Turns()
        self._next_look_back = float("-inf")
        self._past: deque[tuple[float, dict[str, list[int]]]] = deque([(float("-inf"), {})])
        self._mark: tuple[float, int] = (float("-inf"), 0)
        self._settled = 0

    def wants_full_look(self, queues: Iterable[str]) -> bool:
        """Whether the next scan of these queues should start at the beginning."""
        now = self._monotonic()
        if self._found_nothing:
            return self._full_looks.may_come(now)
        return self._full_looks.must_come(queues, now)

    def may_look_fully(self) -> bool:
        """Whether a look from the beginning would not cost too much now."""
        return self._full_looks.may_come(self._monotonic())

    def wants_look_back(self) -> bool:
        """Whether the next look, if it is no full one, should begin where the store was a while ago."""
        return self._monotonic() >= self._next_look_back

    def wants_mark(self) -> bool:
        """Whether it is time to ask for the newest number."""
        return self._monotonic() - self._mark[0] >= LATE_AFTER_SECONDS

    def mark(self, newest: int) -> None:
        """Note the newest number given out so far; the one noted before has settled by now."""
        self._settled = max(self._settled, self._mark[1])
        if newest < self._mark[1]:
            self._forget()
        self._mark = (self._monotonic(), newest)

    def starts(self, queue: str) -> list[int]:
        """For each priority, the number after which to look."""
        lanes = self._lanes.get(queue)
        if lanes is None:
            lanes = self._lanes[queue] = [0] * len(PRIORITIES)
        return lanes

    def earlier_starts(self, queue: str) -> list[int]:
        """The same, as it was a while ago."""
        _, lanes = self._past[0]
        return lanes.get(queue, [0] * len(PRIORITIES))

    def looked(self, wanted: dict[str, int], found: Iterable[Place]) -> None:
        """Learn from a look: how many were wanted of each queue, and where each that was found stood."""
        taken = dict.fromkeys(wanted, 0)
        last = dict.fromkeys(wanted, (0, _ANY))
        for queue, priority, number, is_fair, came_back in found:
            lanes = self.starts(queue)
            if not is_fair:
                lanes[priority] = max(lanes[priority], number)
            taken[queue] += 1
            last[queue] = max(last[queue], (priority, _ANY if came_back else number))
        for queue, limit in wanted.items():
            if limit > 0:
                lanes = self.starts(queue)
                emptied = len(PRIORITIES)
                if taken[queue] >= limit:
                    emptied, number = last[queue]
                    if number != _ANY:
                        lanes[emptied] = min(lanes[emptied], number)
                lanes[:emptied] = [max(lane, self._settled) for lane in lanes[:emptied]]
        self._found_nothing = not any(taken.values())

    def looked_fully(self, queues: Iterable[str], took: float) -> None:
        """Note that a full scan of these queues has just ended, and how many seconds it took."""
        self._full_looks.came(queues, self._monotonic(), took)
        self._remember()

    def looked_back(self, took: float) -> None:
        """Note that a look back has just ended, and what it cost in seconds."""
        self._remember()
        self._next_look_back = max(self._next_look_back, self._monotonic() + _rest_after(took))

    def wants_full_fronts(self, queues: Iterable[str]) -> bool:
        """Whether what comes next in each priority should be asked for from the beginning."""
        return self._full_fronts.must_come(queues, self._monotonic())

    def saw_fronts(self, queues: Iterable[str], fronts: Iterable[tuple[str, int, int]], took: float) -> None:
        """Learn from the queue, priority and number of what comes next, from the beginning: lanes begin before it."""
        self._full_fronts.came(queues, self._monotonic(), took)
        for queue, priority, number in fronts:
            lanes = self.starts(queue)
            lanes[priority] = min(lanes[priority], number - 1)

    def _forget(self) -> None:
        """Start again: the database is an older copy of itself, and claimed numbers come again."""
        self._lanes.clear()
        self._past = deque([(float("-inf"), {})])
        self._settled = 0

    def _remember(self) -> None:
        """Keep where the store is now; of what is older than the look back goes, only the newest is kept."""
        now = self._monotonic()
        self._next_look_back = now + LOOK_BACK_INTERVAL_SECONDS
        self._past.append((now, {queue: list(lanes) for queue, lanes in self._lanes.items()}))
        while len(self._past) > 1 and self._past[1][0] <= now - LOOK_BACK_SECONDS:
            self._past.popleft()


class _Turns:
    """When each queue was last looked through from the beginning."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._next = float("-inf")

    def may_come(self, now: float) -> bool:
        """Whether the next such look would not cost too much."""
        return now >= self._next

    def must_come(self, queues: Iterable[str], now: float) -> bool:
        """Whether it may come, and one of these queues has waited for long."""
        if not self.may_come(now):
            return False
        never = float("-inf")
        return any(now - self._last.get(queue, never) >= FULL_LOOK_INTERVAL_SECONDS for queue in queues)

    def came(self, queues: Iterable[str], now: float, took: float) -> None:
        """A look at these queues has just ended, and took so many seconds."""
        self._last.update(dict.fromkeys(queues, now))
        self._next = now + _rest_after(took)


def _rest_after(took: float) -> float:
    return took * (1 / SHARE_OF_TIME - 1)
