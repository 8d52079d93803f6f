"""The outcome of an attempt becomes a transition by the policy of its job, at the time of the database."""

from __future__ import annotations

from datetime import timedelta

from tests.support.bench import a_claim
from tests.support.chance import seeded

from perdure import App, JobState, Retry, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs.outcome import Done, Failed, Failure
from perdure.domain.jobs.states import Reason
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.running import Running
from perdure.worker.execution.decider import Decider


def attempt(**changes: object) -> Running:
    app = App("sqlite:///unused.db")

    @app.job(retry=Retry(attempts=2, within="1h"))
    async def plain() -> None: ...

    return Running(a_claim("plain", **changes), app.kinds["plain"], StopFlag(), 100.0)


def decider(clock: ManualClock) -> Decider:
    return Decider(clock, WorkerSettings(), seeded())


def test_failures_are_judged_by_the_policy_of_the_kind(clock: ManualClock) -> None:
    failed = Failed(Failure("ValueError", "no"))
    assert decider(clock).decide(attempt(), failed, 101.0).to is JobState.RETRYING
    last = decider(clock).decide(attempt(failures=1), failed, 101.0)
    assert (last.to, last.reason) == (JobState.DEAD, Reason.EXHAUSTED)


def test_the_time_is_that_of_the_claim_plus_what_was_measured_here(clock: ManualClock) -> None:
    """The date of this machine does not matter: an hour of work is over the policy's hour."""
    running = attempt()
    assert decider(clock).now(running, 160.0) == running.claim.claimed_at + timedelta(minutes=1)
    late = decider(clock).decide(running, Failed(Failure("ValueError", "no")), 100.0 + 3_601)
    assert late.to is JobState.DEAD


def test_secrets_of_the_job_are_in_no_failure(clock: ManualClock) -> None:
    running = attempt(args='{"card":{"$secret":"hunter2"}}')
    move = decider(clock).decide(running, Failed(Failure("ValueError", "no hunter2")), 101.0)
    assert str(move.failure) == "ValueError: no ***"
    warned = decider(clock).decide(running, Done(None, ("took hunter2",)), 101.0)
    assert warned.warnings == ("took ***",)


def test_a_parent_that_is_done_waits_for_its_children(clock: ManualClock) -> None:
    running = attempt()
    assert decider(clock).decide(running, Done("1")).to is JobState.SUCCEEDED
    running.spawned = True
    assert decider(clock).decide(running, Done("1"), 101.0).is_parent
