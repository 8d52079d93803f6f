"""The loops of a process as one crew: started, stopped and awaited together.

Work that must end before HTTP and database close is awaited in one place (A18): the loops, their current ticks, and
other work that the caller names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from perdure.domain.duration import Duration, parse_duration
from perdure.errors import StillRunning
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.timer import REAL_TIMER, Timer, pause
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits

_COMPLETION_TIMEOUT: Final = timedelta(seconds=30)
_POLL_INTERVAL_SECONDS: Final = 0.01  # only for work that cannot report its own end


class Loops:
    """A crew of loops. `started` is set when they are launched (A19)."""

    def __init__(
        self, loops: Iterable[Loop[Any]] = (), timer: Timer = REAL_TIMER, outage: OutageLimits = DEFAULT_OUTAGE
    ) -> None:
        self.started = asyncio.Event()
        self._timer = timer
        self._loops = list(loops)
        self._outage = outage
        self._tasks: dict[Loop[Any], asyncio.Task[None]] = {}
        self._stir = asyncio.Event()
        self._stopping = False

    def __iter__(self) -> Iterator[Loop[Any]]:
        return iter(self._loops)

    def add(self, loop: Loop[Any]) -> None:
        """Add a loop; it is launched at once if the others are."""
        self._loops.append(loop)
        if self.started.is_set() and not self._stopping:
            self._launch(loop)

    def start(self) -> None:
        """Launch every loop."""
        for loop in self._loops:
            self._launch(loop)
        self.started.set()

    def stop(self) -> None:
        """Let every loop end after its current tick, if any."""
        self._stopping = True
        for loop in self._loops:
            loop.stop()

    def under_way(self) -> tuple[str, ...]:
        """The loops with a current or abandoned tick, each with its duration."""
        return tuple(_described(loop, self._timer) for loop in self._loops if loop.running_since is not None)

    async def wait_for_completion(
        self,
        timeout: Duration = _COMPLETION_TIMEOUT,  # noqa: ASYNC109 - asyncio.timeout could not say what still runs
        also: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """Stop, and wait until the loops and their ticks are over, and `also` names no running work.

        Past the timeout StillRunning names what is not over. By then the ticks have been told to stop, and those that
        did not stop are abandoned.
        """
        self.stop()
        within = parse_duration("timeout", timeout).total_seconds()
        deadline = self._timer.monotonic() + max(
            within, _POLL_INTERVAL_SECONDS
        )  # a loop that only waits gets its turn to end
        while left := [*self._running(), *(also() if also is not None else ())]:
            remaining = deadline - self._timer.monotonic()
            if remaining <= 0:
                await self._call_off()
                raise StillRunning(tuple(left), within)
            self._stir.clear()
            await pause(self._timer, self._stir, remaining if also is None else min(remaining, _POLL_INTERVAL_SECONDS))

    async def _call_off(self) -> None:
        left = [task for task in self._tasks.values() if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _running(self) -> list[str]:
        """The loops that are not over, each with the duration of its tick."""
        return [_described(loop, self._timer) for loop, task in self._tasks.items() if not task.done()]

    def _launch(self, loop: Loop[Any]) -> None:
        loop.use_outage(self._outage)
        task = asyncio.get_running_loop().create_task(loop.run(), name=f"perdure {loop.name} loop")
        task.add_done_callback(lambda _: self._stir.set())
        self._tasks[loop] = task


def _described(loop: Loop[Any], timer: Timer) -> str:
    since = loop.running_since
    return loop.name if since is None else f"{loop.name} (for {timer.monotonic() - since:.1f} s)"
