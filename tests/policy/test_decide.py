"""One pure function says what an outcome means; every move it makes is in the table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.chance import seeded

from perdure.domain.duration import LONGEST_DURATION
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import (
    BadArguments,
    Cancelled,
    Crashed,
    Done,
    Failed,
    Failure,
    Outcome,
    Paused,
    Permanent,
    Released,
    Snoozed,
    StillPending,
    UnknownKind,
)
from perdure.domain.jobs.states import FINAL, JobState, Reason, is_legal
from perdure.domain.jobs.transition import Transition
from perdure.policy.decide import DEFAULT_LIMITS, Limits, MissingHandler, decide
from perdure.policy.failures import lineage
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry, RetrySource

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OOPS = Failure("ValueError", "oops", "trace")
FAILED = Failed(OOPS)
CRASHED = Crashed(Failure("Crashed", "killed by signal 9"))


def claim(failures: int = 0, crashes: int = 0, crash_limit: int = 3, since: datetime = NOW) -> Claim:
    return Claim(JobId("j"), 7, "send", "default", "{}", failures, crashes, crash_limit, since, NOW)


def decided(
    held: Claim,
    outcome: Outcome,
    retry: RetrySource | None = None,
    now: datetime = NOW,
    limits: Limits = DEFAULT_LIMITS,
) -> Transition:
    return decide(held, outcome, retry, now, seeded(), limits)


def life(retry: RetrySource, outcome: Outcome = FAILED) -> list[Transition]:
    """All that happens to a job which fails each time, at once."""
    now, found = NOW, list[Transition]()
    while not found or found[-1].to not in FINAL:
        counts = (found[-1].failures, found[-1].crashes) if found else (0, 0)
        found.append(decided(claim(*counts), outcome, retry, now))
        now += found[-1].wait or timedelta(0)
    return found


def seconds(transitions: list[Transition]) -> list[float]:
    return [step.wait.total_seconds() for step in transitions if step.wait is not None]


def test_f3_done_and_done_with_warnings() -> None:
    done = decided(claim(), Done("42"))
    assert (done.to, done.reason, done.result, done.failure) == (JobState.SUCCEEDED, Reason.DONE, "42", None)
    warned = decided(claim(), Done(None, ("no screenshots",)))
    assert (warned.reason, warned.warnings) == (Reason.DONE_WITH_WARNINGS, ("no screenshots",))


def test_a5_success_keeps_the_count_of_failures() -> None:
    assert decided(claim(failures=2), Done()).failures == 2


def test_a3_a4_the_first_failure_is_armed_and_the_fifth_is_dead() -> None:
    steps = life(Retry(attempts=5, backoff=Backoff.exponential("1m", cap="1h"), jitter=Jitter.none()))
    assert [step.to for step in steps] == [JobState.RETRYING] * 4 + [JobState.DEAD]
    assert seconds(steps) == [60, 120, 240, 480]
    assert (steps[-1].reason, steps[-1].failures) == (Reason.EXHAUSTED, 5)
    assert all(step.failure == OOPS for step in steps)


@pytest.mark.parametrize("max_retries", [0, 3, 5, 10])
def test_b8_b9_max_retries_means_one_run_more(max_retries: int) -> None:
    steps = life(
        Retry(attempts=max_retries + 1, backoff=Backoff.exponential("2m", cap="1h"), jitter=Jitter.plus("30s"))
    )
    assert len(steps) == max_retries + 1
    for n, wait in enumerate(seconds(steps)):
        nominal = min(120 * 2**n, 3600)
        assert nominal <= wait <= nominal + 30


def test_c9_two_retries_at_once_and_the_third_failure_is_dead() -> None:
    steps = life(Retry(attempts=3, backoff=Backoff.none()))
    assert [step.to for step in steps] == [JobState.READY, JobState.READY, JobState.DEAD]


def test_d4_a_time_limit_gives_one_last_attempt_at_the_deadline() -> None:
    polls = Backoff.table("5s", "15s", "45s", "2m", "5m")
    steps = life(Retry(attempts=None, backoff=polls, jitter=Jitter.none(), within="600s"))
    moments, moment = [0.0], 0.0
    for wait in seconds(steps):
        moment += wait
        moments.append(moment)
    assert moments == [0, 5, 20, 65, 185, 485, 600]
    assert len(steps) == 7
    assert steps[-1].reason is Reason.OUT_OF_TIME


def test_e6_settings_are_read_when_used() -> None:
    base = ["30s"]

    def source() -> Retry:
        return Retry(attempts=3, backoff=Backoff.exponential(base[0]), jitter=Jitter.none())

    assert seconds(life(source)) == [30, 60]
    base[0] = "1m"
    assert seconds(life(source)) == [60, 120]


def test_e6_settings_that_cannot_be_read_strand_no_job() -> None:
    def source() -> Retry:
        return Retry(attempts=int("many"))

    step = decided(claim(), FAILED, source)
    assert step.to is JobState.RETRYING
    assert step.failure is not None
    assert step.failure.message.startswith(
        "oops (its retry setting could not be read, so the default applies: ValueError:"
    )
    assert decided(claim(), FAILED, lambda: "5 times").to is JobState.RETRYING  # type: ignore[arg-type]


def test_e9_a_webhook_is_tried_five_times_around_30_60_300_900_seconds() -> None:
    steps = life(Retry(attempts=5, backoff=Backoff.table(30, 60, 300, 900), jitter=Jitter.ratio(0.2)))
    assert all(0.8 * n <= wait <= 1.2 * n for n, wait in zip([30, 60, 300, 900], seconds(steps), strict=True))
    assert len(steps) == 5


def test_a_wait_asked_for_overrides_the_backoff_within_the_limits() -> None:
    asked = Failed(OOPS, retry_after=timedelta(hours=2))
    assert decided(claim(), asked, Retry()).wait == timedelta(hours=2)
    assert decided(claim(), asked, Retry(within="1h")).wait == timedelta(hours=1)
    assert decided(claim(failures=4), asked, Retry(attempts=5)).to is JobState.DEAD


def test_a_timeout_is_a_failure_with_its_own_reason() -> None:
    assert decided(claim(), Failed(OOPS, timed_out=True), Retry()).reason is Reason.TIMED_OUT


def test_errors_are_judged_by_their_types() -> None:
    retry = Retry(permanent=ValueError, by_error={OSError: Backoff.fixed("3s")}, jitter=Jitter.none())
    permanent = decided(claim(), Failed(OOPS, kinds=lineage(UnicodeError)), retry)
    assert (permanent.to, permanent.reason) == (JobState.DEAD, Reason.PERMANENT)
    assert decided(claim(), Failed(OOPS, kinds=lineage(TimeoutError)), retry).wait == timedelta(seconds=3)


def test_f3_permanent_failures_and_bad_arguments_are_dead_at_once() -> None:
    assert decided(claim(), Permanent(OOPS), Retry()).reason is Reason.PERMANENT
    assert decided(claim(), BadArguments(OOPS), Retry()).reason is Reason.BAD_ARGUMENTS


def test_f2_a_crash_has_its_own_limit_and_the_nth_is_the_last() -> None:
    """Without any knowledge of the job's retry, as a rescuer decides."""
    first, second, third = (decided(claim(failures=9, crashes=n), CRASHED) for n in range(3))
    assert (first.to, first.reason, first.crashes, first.failures) == (JobState.READY, Reason.CRASHED, 1, 9)
    assert second.to is JobState.READY
    assert (third.to, third.reason, third.crashes) == (JobState.DEAD, Reason.CRASH_LIMIT, 3)
    assert decided(claim(crash_limit=1), CRASHED).to is JobState.DEAD


def test_f2_crashes_use_up_no_attempts_of_failures() -> None:
    assert decided(claim(failures=1, crashes=2), FAILED, Retry(attempts=3)).to is JobState.RETRYING


FREE = [
    (StillPending(timedelta(seconds=5)), JobState.WAITING, Reason.STILL_PENDING, 5),
    (Snoozed(timedelta(seconds=5)), JobState.WAITING, Reason.SNOOZED, 5),
    (Released(), JobState.READY, Reason.RELEASED, None),
    (Released(timedelta(0)), JobState.READY, Reason.RELEASED, None),
    (Released(timedelta(seconds=5)), JobState.PAUSED, Reason.RELEASED, 5),
    (Paused("rate_limited", timedelta(seconds=5)), JobState.PAUSED, Reason.PAUSED, 5),
    (Paused("by an operator"), JobState.PAUSED, Reason.PAUSED, None),
]


@pytest.mark.parametrize(("outcome", "to", "reason", "wait"), FREE)
def test_f2_a_stop_a_pause_a_park_and_a_gate_cost_no_attempt(
    outcome: Outcome, to: JobState, reason: Reason, wait: float | None
) -> None:
    step = decided(claim(failures=4, crashes=2), outcome, Retry(attempts=5))
    assert (step.to, step.reason) == (to, reason)
    assert (step.failures, step.crashes, step.failure) == (4, 2, None)
    assert step.wait == (None if wait is None else timedelta(seconds=wait))


def test_c11_a_pause_says_why() -> None:
    assert decided(claim(), Paused("budget_exceeded")).note == "budget_exceeded"


def test_f3_cancel() -> None:
    step = decided(claim(failures=1), Cancelled("order withdrawn"))
    assert (step.to, step.note, step.failures) == (JobState.CANCELLED, "order withdrawn", 1)
    assert decided(claim(), Cancelled()).note is None


@given(st.randoms(use_true_random=False), st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=1)))
def test_f6_an_unknown_kind_is_deferred_with_jitter_for_a_day_at_no_cost(random: Random, age: timedelta) -> None:
    step = decide(claim(failures=2), UnknownKind(), None, NOW + age, random)
    assert (step.to, step.reason, step.failures, step.failure) == (JobState.PAUSED, Reason.UNKNOWN_KIND, 2, None)
    assert step.wait is not None
    assert 10 <= step.wait.total_seconds() <= 30


def test_f6_an_unknown_kind_is_dead_only_after_a_day() -> None:
    puzzling = replace(claim(), unknown_since=NOW)
    step = decided(puzzling, UnknownKind(), None, NOW + timedelta(days=1, seconds=1))
    assert (step.to, step.reason, step.failures) == (JobState.DEAD, Reason.UNKNOWN_KIND, 0)
    assert step.failure is not None
    assert "no handler for kind 'send'" in step.failure.message
    patient = Limits(unknown_kind_for=timedelta(days=7))
    assert decided(puzzling, UnknownKind(), None, NOW + timedelta(days=2), patient).to is JobState.PAUSED


def test_f6_an_old_job_that_meets_an_older_worker_is_deferred() -> None:
    """It has been retrying for a week; that one worker of a rolling deploy does not know it is no reason to die."""
    step = decided(claim(since=NOW - timedelta(days=7)), UnknownKind())
    assert (step.to, step.reason) == (JobState.PAUSED, Reason.UNKNOWN_KIND)


def test_a6_a_missing_handler_may_complete_or_bury_the_job_instead() -> None:
    closed = decided(claim(), UnknownKind(), limits=Limits(missing_handler=MissingHandler.COMPLETE))
    assert (closed.to, closed.reason) == (JobState.SUCCEEDED, Reason.DONE_WITH_WARNINGS)
    assert "no handler for kind 'send'" in closed.warnings[0]
    dead = decided(claim(), UnknownKind(), limits=Limits(missing_handler=MissingHandler.DEAD))
    assert (dead.to, dead.reason, dead.failures) == (JobState.DEAD, Reason.UNKNOWN_KIND, 0)


WAIT = st.timedeltas(min_value=timedelta(days=-1), max_value=LONGEST_DURATION)
FAILURE = st.builds(Failure, st.text(), st.text(), st.none() | st.text())
KINDS = st.sampled_from([(), lineage(KeyError), lineage(TimeoutError), lineage(ValueError)])
OUTCOMES = st.one_of(
    st.builds(Done, st.none() | st.text(), st.lists(st.text(), max_size=2).map(tuple)),
    st.builds(Failed, FAILURE, st.none() | WAIT, st.booleans(), KINDS),
    st.builds(Permanent, FAILURE),
    st.builds(BadArguments, FAILURE),
    st.builds(StillPending, WAIT),
    st.builds(Snoozed, WAIT),
    st.builds(Released, st.none() | WAIT),
    st.just(UnknownKind()),
    st.builds(Paused, st.text(), st.none() | WAIT),
    st.builds(Cancelled, st.text()),
    st.builds(Crashed, FAILURE),
)
COUNTS = st.integers(min_value=0, max_value=10**9)
CLAIMS = st.builds(
    claim, COUNTS, COUNTS, COUNTS, st.timedeltas(timedelta(days=-2), timedelta(days=2)).map(lambda age: NOW + age)
)
POLICIES = st.none() | st.builds(
    Retry,
    attempts=st.none() | st.integers(min_value=1, max_value=10),
    backoff=st.sampled_from([Backoff.none(), Backoff.fixed("1m"), Backoff.exponential("1s"), Backoff.table(1, 2)]),
    jitter=st.sampled_from([Jitter.none(), Jitter.full(), Jitter.plus("30s"), Jitter.ratio(0.5)]),
    within=st.none() | st.just("1d"),
    permanent=st.sampled_from([(), (ValueError,)]),
    by_error=st.sampled_from([{}, {OSError: Backoff.fixed("3s")}]),
)
LIMITS = st.builds(Limits, missing_handler=st.sampled_from(MissingHandler))
RANDOMS = st.randoms(use_true_random=False)


@given(CLAIMS, OUTCOMES, POLICIES, RANDOMS, LIMITS)
def test_f4_every_decision_is_a_legal_move_and_keeps_the_books(
    held: Claim, outcome: Outcome, retry: Retry | None, random: Random, limits: Limits
) -> None:
    step = decide(held, outcome, retry, NOW, random, limits)
    assert is_legal(JobState.RUNNING, step.to, step.reason)
    assert step.claim is held
    assert step.wait is None or step.wait >= timedelta(0)
    ran_and_failed = isinstance(outcome, Failed | Permanent | BadArguments)
    assert step.failures == held.failures + ran_and_failed
    assert step.crashes == held.crashes + isinstance(outcome, Crashed)
    if isinstance(outcome, Crashed) or ran_and_failed:
        assert step.failure is not None


@given(CLAIMS, OUTCOMES, POLICIES, st.integers())
def test_f7_the_same_chance_gives_the_same_decision(
    held: Claim, outcome: Outcome, retry: Retry | None, seed: int
) -> None:
    assert decide(held, outcome, retry, NOW, seeded(seed)) == decide(held, outcome, retry, NOW, seeded(seed))
