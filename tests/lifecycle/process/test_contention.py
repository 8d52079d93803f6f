"""What took too long in this process."""

from __future__ import annotations

from tests.support.builders.jobs import SECOND

from perdure.clock import ManualClock
from perdure.events import Emitter, EventLoopBlocked, HeartbeatStuck, WorkerLoud
from perdure.lifecycle.process.contention import IncidentLog


def test_the_newest_incidents_come_first_with_how_many_there_were(clock: ManualClock) -> None:
    emitter = Emitter()
    log = IncidentLog(emitter, clock)
    since = clock.now()
    for number in range(60):
        emitter.emit(EventLoopBlocked(seconds=float(number), stack="here"))
        clock.move(SECOND)
    emitter.emit(WorkerLoud("w", "test"))
    report = log.report()
    assert (report.since, report.total, len(report.incidents)) == (since, 60, 50)
    assert [incident.seconds for incident in report.incidents[:2]] == [59.0, 58.0]
    assert report.incidents[0].at == clock.now() - SECOND
    assert (report.incidents[0].event, report.incidents[0].what) == ("EventLoopBlocked", "event loop blocked")


def test_a_log_that_is_stopped_hears_no_more(clock: ManualClock) -> None:
    emitter = Emitter()
    log = IncidentLog(emitter, clock)
    log.stop()
    emitter.emit(HeartbeatStuck(seconds=1.0, stack="here"))
    assert log.report().total == 0
