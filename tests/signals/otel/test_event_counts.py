"""What is counted from events."""

from __future__ import annotations

from typing import Any

from perdure.events import Emitter, FamilySpawned, JobsRescued, ScheduleFired, ScheduleMissed, ScheduleOverlapped
from perdure.signals.otel.event_counts import EventCounts


def made(event: type[Any], **values: Any) -> Any:
    """An event with these values, and any others."""
    return event(**dict.fromkeys(event.__struct_fields__) | values)


def test_jobs_of_handlers_and_schedules_rescues_and_nominal_times_are_counted() -> None:
    emitter = Emitter()
    late: list[tuple[str, float]] = []
    counts = EventCounts(emitter, lambda schedule, seconds: late.append((schedule, seconds)))
    for event in (
        made(ScheduleFired, schedule="nightly", queue="slow", kind="report", late=1.5),
        made(ScheduleMissed, schedule="nightly", missed=3),
        made(ScheduleOverlapped, schedule="nightly"),
        made(JobsRescued, ready=2, dead=1),
        made(JobsRescued, ready=1, dead=0),
        made(FamilySpawned, stored=(("slow", "report", 4), ("mail", "send", 2))),
    ):
        emitter.emit(event)
    assert counts.spawned.jobs == {("slow", "report"): 5, ("mail", "send"): 2}
    assert counts.rescued == {"ready": 3, "dead": 1}
    assert counts.schedules == {("nightly", "fired"): 1, ("nightly", "missed"): 3, ("nightly", "overlapped"): 1}
    assert late == [("nightly", 1.5)]
    counts.close()
    emitter.emit(made(JobsRescued, ready=9, dead=9))
    assert counts.rescued["ready"] == 3
