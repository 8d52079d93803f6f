"""What it means that an attempt was stopped, and whose settings hold for it: its job's own before those of its kind."""

from __future__ import annotations

from datetime import timedelta

from tests.support.bench import a_claim

from perdure import App, Retry
from perdure.domain.jobs.outcome import Cancelled, Failed, Released
from perdure.policy.own_settings import settings_text
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.running import Running, Stop


def attempt(settings: str | None = None) -> Running:
    app = App("sqlite:///unused.db")

    @app.job(timeout="1m", retry=Retry(attempts=3))
    async def plain() -> None: ...

    return Running(a_claim("plain", settings=settings), app.kinds["plain"], StopFlag(), 0.0)


def test_settings_of_a_job_alone_come_before_those_of_its_kind() -> None:
    kinds = attempt()
    assert (kinds.timeout, kinds.retry) == (timedelta(minutes=1), Retry(attempts=3))
    own = attempt(settings_text(Retry(attempts=9), timedelta(seconds=5)))
    assert (own.timeout, own.retry) == (timedelta(seconds=5), Retry(attempts=9))
    half = attempt(settings_text(Retry(attempts=9), None))
    assert (half.timeout, half.retry) == (timedelta(minutes=1), Retry(attempts=9))


def test_each_stop_has_its_outcome() -> None:
    running = attempt()
    running.stop = Stop.TIMED_OUT
    timed_out = running.outcome_when_stopped()
    assert isinstance(timed_out, Failed)
    assert timed_out.timed_out
    assert timed_out.failure.message == "the attempt exceeded its time limit of 1m"
    running.stop, running.why = Stop.CANCELLED, "wrong customer"
    assert running.outcome_when_stopped() == Cancelled("wrong customer")
    running.why = None
    assert running.outcome_when_stopped() == Cancelled("cancelled while running")
    running.stop = Stop.CLOSING
    assert running.outcome_when_stopped() == Released()
    running.stop = Stop.LOST
    assert running.outcome_when_stopped() is None, "it is no longer ours"
