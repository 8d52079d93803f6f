"""Why is this job not running? One call, one answer, whatever the reason."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.support.builders.families import KEY, as_parent, awaiting, claim_children, start_parent
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    MINUTE,
    a_key,
    apply,
    claim_one,
    employ,
    enqueue,
    job_in,
    only,
    start,
)
from tests.support.working import at_work, found, seen

from perdure import App, Context
from perdure.clock import ManualClock
from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits, Progress
from perdure.domain.gate import Pause
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import GATED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.domain.worker import Phase
from perdure.errors import NotFoundError
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.records import Remedy
from perdure.operate.wording import utc_text
from perdure.storage.port import Store

SECOND = timedelta(seconds=1)


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, "ada")


async def hold(store: Store, claim: Claim, reason: Reason, note: str | None, wait: timedelta | None = HOUR) -> JobId:
    """Hold a running job back for this reason."""
    await apply(store, transition.paused(claim, reason, wait, note))
    return claim.job_id


async def park(
    store: Store, claim: Claim, reason: Reason, awaits: Awaits | None = None, note: str | None = None
) -> JobId:
    """Let a running job wait for an hour, or for what it awaits."""
    await apply(store, transition.parked(claim, reason, HOUR, awaits, note))
    return claim.job_id


async def test_b14_a_job_that_is_not_there_is_named(desk: Desk) -> None:
    missing = new_job_id()
    with pytest.raises(NotFoundError, match=missing):
        await desk.why(missing)
    with pytest.raises(NotFoundError, match="there is no job with the ref 'seven'"):
        await desk.why("seven")


async def test_b14_scheduled_for_later(store: Store, desk: Desk, clock: ManualClock) -> None:
    found = await desk.why(await enqueue(store, delay=HOUR))
    assert found.answer == "It is scheduled for later."
    assert found.until == clock.now() + HOUR
    assert "run-now" in (found.what_to_do or "")


async def test_b14_a_retry_shows_which_attempt_and_the_last_error(store: Store, desk: Desk, clock: ManualClock) -> None:
    found = await desk.why(await job_in(JobState.RETRYING, store, max_attempts=5))
    assert found.answer == "Attempt 1 did not succeed; attempt 2 of 5 comes later."
    assert found.facts == ("The last error was builtins.ValueError: no such host",)
    assert found.until == clock.now() + HOUR


async def test_b14_a_crash_is_not_reported_as_one_of_the_attempts_allowed(store: Store, desk: Desk) -> None:
    claim = await start(store, max_attempts=1)
    await apply(store, transition.returning(transition.crashed(claim, A_FAILURE), HOUR))
    assert (await desk.why(claim.job_id)).answer == "Attempt 1 did not succeed; attempt 2 of 2 comes later."


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (Reason.SNOOZED, "asked to be run again"),
        (Reason.SLEEPING, "sleeps"),
        (Reason.STILL_PENDING, "polls"),
        (Reason.STEP_FAILED, "steps failed"),
    ],
)
async def test_b14_waits_by_its_own_wish(
    reason: Reason, word: str, store: Store, desk: Desk, clock: ManualClock
) -> None:
    found = await desk.why(await park(store, await start(store), reason, note="certificate, poll 3"))
    assert word in found.answer
    assert "Noted: certificate, poll 3" in found.facts
    assert found.until == clock.now() + HOUR


async def test_b14_an_event_that_was_not_emitted(store: Store, desk: Desk, clock: ManualClock) -> None:
    job_id = await park(store, await start(store), Reason.AWAITING_EVENT, Awaits(event="paid 42"))
    found = await desk.why(job_id)
    assert found.answer == "It waits for event 'paid 42', which was not emitted yet."
    assert found.until == clock.now() + HOUR
    assert "perdure emit 'paid 42'" in (found.what_to_do or "")
    assert found.remedy == Remedy("emit", "paid 42", "Emit the event")


async def test_b14_what_is_waited_for_at_the_same_time_is_reported(store: Store, desk: Desk) -> None:
    parent, _ = await start_parent(store, 1)
    both = transition.parked(parent, Reason.AWAITING_EVENT, None, Awaits(event="paid"), None, (Awaits(family="parts"),))
    await apply(store, both)
    assert "It also waits for its children 'parts'." in (await desk.why(parent.job_id)).facts


async def test_b14_an_approval_that_was_not_given(store: Store, desk: Desk) -> None:
    claim = await start(store)
    event = approval_event(claim.job_id, "deploy")
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=event), None))
    found = await desk.why(claim.job_id)
    assert found.answer == "It waits for an answer to 'deploy'."
    assert found.until is None
    assert f"perdure approve {claim.job_id} deploy" in (found.what_to_do or "")


async def test_b14_children_are_counted_and_the_unfinished_named(store: Store, desk: Desk) -> None:
    parent, children = await start_parent(store, 3, quorum=2)
    await apply(store, awaiting(parent))
    claims = await claim_children(store)
    await apply(store, transition.succeeded(claims[children[0]], None, ()))
    found = await desk.why(parent.job_id)
    assert found.answer == f"It waits for its children {KEY!r}: 1 of 3 are final."
    text = " ".join(found.facts)
    assert "1 succeeded, 0 died" in text
    assert "once 2 have succeeded" in text
    assert children[0] not in text
    assert f"{children[1]} (load, running)" in text


@pytest.mark.parametrize("reason", sorted(GATED - {Reason.ON_HOLD}))
async def test_b14_a_gate_is_reported_with_its_note(
    reason: Reason, store: Store, desk: Desk, clock: ManualClock
) -> None:
    found = await desk.why(await hold(store, await start(store), reason, "mail: 5 in 1m"))
    assert found.answer[:4] in {"Its ", "As m", "It i"}
    assert "5 in 1m" in " ".join((found.answer, *found.facts))
    is_looked_at_again = reason in {Reason.BUDGET_EXCEEDED, Reason.CONCURRENCY_REACHED}
    assert found.until == (None if is_looked_at_again else clock.now() + HOUR)


async def test_b14_a_breaker_is_shown_as_it_stands_now(store: Store, desk: Desk, clock: ManualClock) -> None:
    await desk.holds.open_breaker("digi", why="never this one")
    await desk.holds.open_breaker("digi: cert", why="their outage")
    job_id = await hold(
        store, await start(store), Reason.BREAKER_OPEN, "digi: cert: opened by hand, until it is closed"
    )
    found = await desk.why(job_id)
    assert found.answer.startswith("Circuit breaker 'digi: cert' is open")
    assert any("by ada: their outage" in fact for fact in found.facts)
    assert found.what_to_do == "perdure breakers close 'digi: cert'"


async def test_b14_a_breaker_opened_by_hand_has_no_end_but_the_hand(store: Store, desk: Desk) -> None:
    """That its jobs look again within the hour is no time to tell anybody."""
    await desk.holds.open_breaker("digicert", why="their outage")
    note = "digicert: opened by hand: their outage, until it is closed by hand"
    found = await desk.why(await hold(store, await start(store), Reason.BREAKER_OPEN, note))
    assert found.until is None


async def test_b14_a_breaker_opened_for_a_while_shows_once_by_whom(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    await desk.holds.open_breaker("digicert", why="maintenance", for_="1h")
    note = "digicert: opened by ada: maintenance, until then"
    found = await desk.why(await hold(store, await start(store), Reason.BREAKER_OPEN, note))
    assert any(fact.endswith(", by ada: maintenance") for fact in found.facts)
    assert found.until == clock.now() + HOUR


async def test_b14_a_breaker_that_is_closed_again_is_not_said_to_be_left_alone(store: Store, desk: Desk) -> None:
    await desk.holds.open_breaker("digicert")
    await desk.holds.close_breaker("digicert")
    note = "digicert: closed again, jobs are let through slowly"
    found = await desk.why(await hold(store, await start(store), Reason.BREAKER_OPEN, note))
    assert found.answer == "Circuit breaker 'digicert' is closed again: jobs are let through slowly at first."
    assert found.what_to_do == "look again"


async def test_b14_a_pause_shows_by_whom_why_and_until_when(store: Store, desk: Desk, clock: ManualClock) -> None:
    until = clock.now() + 2 * HOUR
    other = await desk.holds.pause(queue="default")
    clock.move(SECOND)
    pause = await desk.holds.pause(kind="greet", until=until, why="the template is wrong")
    found = await desk.why(await hold(store, await start(store), Reason.ON_HOLD, f"pause {pause.id}: greet", None))
    assert found.answer == f"An operator has paused kind 'greet' (pause {pause.id})."
    assert "paused by ada" in found.facts[0]
    assert found.facts[0].endswith(": the template is wrong")
    assert found.until == until
    assert found.what_to_do == f"perdure resume {pause.id}"
    assert other.id not in str(found)


async def test_b14_a_ready_job_of_a_paused_queue(store: Store, desk: Desk) -> None:
    await employ(store)
    job_id, elsewhere = await enqueue(store), await enqueue(store, queue="other")
    pause = await desk.holds.pause(queue="default")
    assert f"queue 'default' (pause {pause.id})" in (await desk.why(job_id)).answer
    assert pause.id not in str(await desk.why(elsewhere))


async def test_b14_a_pause_ahead_is_a_fact(store: Store, desk: Desk) -> None:
    pause = await desk.holds.pause(kind="greet", args={"name": "Ada"})
    held, free = await enqueue(store, delay=HOUR), await enqueue(store, delay=HOUR, args='{"name":"Eve"}')
    assert f"Pause {pause.id} will hold it back when it is due." in (await desk.why(held)).facts
    assert (await desk.why(free)).facts == ()


async def test_b14_a_pause_that_is_gone_is_not_blamed(store: Store, desk: Desk) -> None:
    job_id = await hold(store, await start(store), Reason.ON_HOLD, "pause 0123abcd: old")
    assert "a pause that is over" in (await desk.why(job_id)).answer


async def test_b14_a_handler_that_paused_itself(store: Store, desk: Desk) -> None:
    found = await desk.why(await hold(store, await start(store), Reason.PAUSED, "quota", None))
    assert (found.answer, found.until) == ("Its handler paused it.", None)
    assert "Noted: quota" in found.facts


async def test_b14_no_worker_serves_the_queue(store: Store, desk: Desk) -> None:
    job_id = await enqueue(store, queue="reports")
    assert "No worker is alive." in (await desk.why(job_id)).facts
    await employ(store, queues=("mail", "default"))
    found = await desk.why(job_id)
    assert found.answer == "No worker serves its queue 'reports'."
    assert found.facts[0] == "Alive is 1 worker, for 'default', 'mail'."
    assert "--queues reports" in (found.what_to_do or "")


async def test_b14_silent_workers_are_no_help(store: Store, desk: Desk, clock: ManualClock) -> None:
    job_id = await enqueue(store)
    await employ(store)
    clock.move(ASSUMED_LEASE + SECOND)
    found = await desk.why(job_id)
    assert found.answer == "The workers of its queue send no heartbeat."
    assert "worker-1" in found.facts[0]


@pytest.mark.parametrize("phase", [Phase.QUIET, Phase.CLOSING])
async def test_b14_quiet_workers_claim_nothing(phase: Phase, store: Store, desk: Desk) -> None:
    job_id = await enqueue(store)
    await store.report(await employ(store), phase)
    found = await desk.why(job_id)
    assert found.answer == "All workers of its queue are quiet: they claim nothing."
    assert "perdure quiet --off" in (found.what_to_do or "")


async def test_b14_a_worker_that_was_asked_to_be_quiet_counts_as_quiet(store: Store, desk: Desk) -> None:
    job_id = await enqueue(store)
    await employ(store)
    await desk.quiet()
    assert "quiet" in (await desk.why(job_id)).answer


async def test_b14_all_workers_are_busy(store: Store, desk: Desk) -> None:
    worker_id = await employ(store, concurrency=1)
    await enqueue(store)
    await claim_one(store, worker_id)
    quiet = await employ(store, name="calm")
    await store.report(quiet, Phase.QUIET)
    found = await desk.why(await enqueue(store))
    assert found.answer == "All workers of its queue are busy."
    assert "1 of 1 places are taken" in found.facts[0]
    assert any("calm" in fact and fact.startswith("Quiet") for fact in found.facts)


async def test_b14_its_place_in_line_is_reported_roughly(store: Store, desk: Desk) -> None:
    await employ(store)
    for _ in range(2):
        await enqueue(store)
    found = await desk.why(await enqueue(store))
    assert found.answer == "It is ready, and waits for its turn."
    assert any(fact.startswith("2 other jobs of its queue are ready too") for fact in found.facts)


async def test_b14_a_kind_that_no_worker_has_a_handler_for(store: Store, desk: Desk) -> None:
    found = await desk.why(await hold(store, await start(store), Reason.UNKNOWN_KIND, None))
    assert found.answer == "The worker that took it has no handler for kind 'greet'."
    assert "deploy a worker" in (found.what_to_do or "")


async def test_b14_the_holder_of_the_unique_key_is_named(store: Store, desk: Desk, clock: ManualClock) -> None:
    key = a_key(states=[JobState.READY, JobState.RUNNING])
    claim = await start(store, unique=key)
    await apply(store, transition.waiting(claim, Reason.SNOOZED, MINUTE))
    holder = await enqueue(store, unique=key)
    clock.move(MINUTE)
    await store.promote(10)
    found = await desk.why(claim.job_id)
    assert found.job.reason == Reason.KEY_HELD
    assert found.answer == f"Job {holder} holds its unique key."
    assert "That job is ready, of kind greet." in found.facts
    await desk.cancel(holder)
    assert "now the key is free" in (await desk.why(claim.job_id)).answer


async def test_b14_a_job_whose_time_has_come_without_a_worker(store: Store, desk: Desk, clock: ManualClock) -> None:
    job_id = await enqueue(store, delay=HOUR)
    clock.move(HOUR)
    found = await desk.why(job_id)
    assert found.answer == "It is due, and no worker is running to make it ready."
    assert found.facts[0] == "It is scheduled for later."
    await employ(store)
    assert "ready in a moment" in (await desk.why(job_id)).answer


async def test_b14_a_running_job_shows_since_when_where_and_how_far(
    store: Store, desk: Desk, clock: ManualClock
) -> None:
    claim = await start(store)
    progress = Progress(current=3, total=10, note="pages", at=clock.now())
    await store.save_progress({claim.job_id: (claim, progress)})
    await desk.cancel(claim.job_id)
    found = await desk.why(claim.job_id)
    assert found.answer == "It is running since 2026-01-01 00:00:00Z, on worker-1."
    assert found.facts[0].startswith("Progress: 3 of 10: pages")
    assert "asked to stop" in found.facts[1]
    assert found.what_to_do is None
    clock.move(ASSUMED_LEASE + MINUTE)
    assert (await desk.why(claim.job_id)).facts[-1] == "Its worker is silent for 1m30s."


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED])
async def test_b14_a_finished_job_says_so(state: JobState, store: Store, desk: Desk) -> None:
    found = await desk.why(await job_in(state, store))
    assert found.answer.startswith(f"It is finished: {state} at 2026-01-01 00:00:00Z")
    assert ("requeue" in (found.what_to_do or "")) is (state is not JobState.SUCCEEDED)


async def test_b14_a_parent_that_died_of_its_children_shows_whom_to_requeue_first(store: Store, desk: Desk) -> None:
    parent, children = await start_parent(store, 3)
    claims = await claim_children(store)
    for child in children[:2]:
        await apply(store, transition.died(claims[child], Reason.EXHAUSTED, A_FAILURE))
    await apply(store, as_parent(transition.died(parent, Reason.EXHAUSTED, A_FAILURE)))
    found = await desk.why(parent.job_id)
    told = " ".join(found.facts)
    assert all(f"{child} (dead)" in told for child in children[:2])
    assert f"{children[2]} (cancelled)" in told, "it was cancelled with its parent, which would miss it"
    assert f"requeue CHILD first, then {parent.job_id}" in (found.what_to_do or "")

    for child in children:
        assert "CHILD" in ((await desk.why(parent.job_id)).what_to_do or "")
        await store.requeue(only(child), By("ops"), 1)
    assert "CHILD" not in ((await desk.why(parent.job_id)).what_to_do or "")


async def test_b14_earlier_failures_are_reported_with_any_reason(store: Store, desk: Desk) -> None:
    claim = await start(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)))
    said = "It has failed before: builtins.ValueError: no such host"
    assert said in (await desk.why(claim.job_id)).facts
    again = await claim_one(store, await employ(store))
    await hold(store, again, Reason.RATE_LIMITED, "mail")
    assert said in (await desk.why(claim.job_id)).facts


async def test_b14_the_advice_on_a_budget_names_it(store: Store, desk: Desk) -> None:
    job_id = await hold(store, await start(store), Reason.BUDGET_EXCEEDED, "ai calls: 1 of 1 spent in 1d")
    assert "`perdure spent 'ai calls'`" in ((await desk.why(job_id)).what_to_do or "")


@pytest.mark.parametrize("reason", [Reason.BUDGET_EXCEEDED, Reason.CONCURRENCY_REACHED])
async def test_b14_the_next_look_at_a_gate_is_not_the_end_of_the_wait(
    reason: Reason, store: Store, desk: Desk, clock: ManualClock
) -> None:
    found = await desk.why(await hold(store, await start(store), reason, "ai: 9 of 5 spent in 1d"))
    assert found.until is None
    assert f"It is looked at again at {utc_text(clock.now() + HOUR)}." in found.facts


async def test_every_state_and_reason_has_an_answer(store: Store, desk: Desk) -> None:
    """Whatever a job is parked for, the answer is a sentence of its own, and never raises."""
    for reason in (*GATED, Reason.PAUSED, Reason.UNKNOWN_KIND, Reason.RELEASED, Reason.KEY_HELD):
        job_id = await hold(store, await start(store), reason, "note: with: colons")
        assert (await desk.why(job_id)).answer.endswith(".")


async def test_a_pause_of_another_id_that_fits_is_reported_if_its_own_is_gone(store: Store, desk: Desk) -> None:
    pause = Pause(id="ffff0000", kind="greet", actor="eve", at=await store.now())
    await store.pause(pause, By("ada"))
    job_id = await hold(store, await start(store), Reason.ON_HOLD, "pause 0123abcd: old")
    assert "ffff0000" in (await desk.why(job_id)).answer


async def test_b14_the_answers_fit_how_a_worker_waits(real_time_store: Store) -> None:
    """A question and an event, asked at once by a real handler: each is told until it is dealt with."""
    store, app = real_time_store, App("sqlite:///not-used.db")
    desk = Desk(store, "ada")

    @app.job
    async def deploy(ctx: Context) -> str:
        paid, asked = await asyncio.gather(ctx.wait_for("paid", "2h"), ctx.approval("go", "1h"))
        return f"{asked.by} {paid}"

    async def told() -> str:
        """All that is said of the job while it waits."""
        why = await desk.why(job_id)
        return " ".join((why.answer, *why.facts)) if why.job.state is JobState.WAITING else ""

    async with at_work(store, app):
        job_id = await enqueue(store, kind="deploy", args="{}")
        both = await found(told)
        assert "waits for an answer to 'go'" in both
        assert "waits for event 'paid'" in both
        until = (await desk.why(job_id)).until
        assert until is not None
        assert until > await store.now() + HOUR - MINUTE
        assert await desk.asks(job_id) == ["go"]
        assert [(asking.job.id, asking.name) for asking in await desk.approvals()] == [(job_id, "go")]
        await desk.answer(job_id, "go", approved=True)
        await desk.run_now(only(job_id))  # parked for the event, it would look for the answer half a minute later

        async def only_one() -> bool:
            said = await told()
            return "event 'paid'" in said and "'go'" not in said

        await found(only_one)
        assert (await desk.asks(job_id), await desk.approvals()) == ([], [])
        await desk.emit("paid", "3")
        assert (await seen(store, job_id)).result == '"ada 3"'


async def test_what_is_asked_at_once_is_listed_each_with_its_own_time_until_it_is_answered(
    real_time_store: Store,
) -> None:
    store, app = real_time_store, App("sqlite:///not-used.db")
    desk = Desk(store, "ada")

    @app.job
    async def deploy(ctx: Context) -> None:
        await asyncio.gather(ctx.approval("law", "2h"), ctx.approval("money"))

    async with at_work(store, app):
        job_id = await enqueue(store, kind="deploy", args="{}")
        await seen(store, job_id, JobState.WAITING)
        law, money = await desk.approvals()
        begun = (await desk.job(job_id)).steps[0].begun_at
        assert (law.name, law.until, money.name, money.until) == ("law", begun + 2 * HOUR, "money", None)
        await desk.answer(job_id, "money", approved=True)
        await seen(store, job_id, JobState.WAITING)
        assert [asking.name for asking in await desk.approvals()] == ["law"]


async def test_b14_the_answers_fit_how_a_worker_is_held(real_time_store: Store) -> None:
    store, app = real_time_store, App("sqlite:///not-used.db")
    desk = Desk(store, "ada")

    @app.job
    async def greet(name: str) -> str:
        return name

    pause = await desk.holds.pause(kind="greet", why="not now")
    job_id = await enqueue(store)
    async with at_work(store, app):
        view = await seen(store, job_id, JobState.PAUSED)
        assert view.reason == f"on hold: pause {pause.id}: not now"
        assert f"(pause {pause.id})" in (await desk.why(job_id)).answer
        assert (await desk.holds.resume(pause.id)).jobs == 1
        assert (await seen(store, job_id)).result == '"Ada"'
