"""What is counted from events: jobs of handlers and schedules, rescues, and the nominal times of schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from perdure.enqueue.counts import EnqueueCounts
from perdure.events import (
    Emitter,
    Event,
    FamilySpawned,
    JobsRescued,
    ScheduleFired,
    ScheduleMissed,
    ScheduleOverlapped,
)


class EventCounts:
    """Counts from now on. `on_fired` is called with each schedule that fired, and how late in seconds."""

    def __init__(self, events: Emitter, on_fired: Callable[[str, float], None]) -> None:
        self.spawned = EnqueueCounts()  # by handlers and schedules: the app does not see these
        self.rescued: Counter[str] = Counter()
        self.schedules: Counter[tuple[str, str]] = Counter()
        self._on_fired = on_fired
        self.close = events.subscribe(
            self._note, FamilySpawned, JobsRescued, ScheduleFired, ScheduleMissed, ScheduleOverlapped
        )
        """Stop counting."""

    def _note(self, event: Event) -> None:
        if isinstance(event, ScheduleFired):
            self.spawned.add(event.queue, event.kind)
            self.schedules[event.schedule, "fired"] += 1
            self._on_fired(event.schedule, event.late)
        elif isinstance(event, ScheduleMissed):
            self.schedules[event.schedule, "missed"] += event.missed
        elif isinstance(event, ScheduleOverlapped):
            self.schedules[event.schedule, "overlapped"] += 1
        elif isinstance(event, JobsRescued):
            self.rescued.update(ready=event.ready, dead=event.dead)
        elif isinstance(event, FamilySpawned):
            for queue, kind, jobs in event.stored:
                self.spawned.add(queue, kind, jobs)
