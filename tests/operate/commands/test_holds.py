"""What operators hold back: pauses, breakers by hand, and what was spent."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import DAY, HOUR, apply, employ, job_in, start, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.gate import BreakerState, Pause
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.commands.holds import Holds
from perdure.operate.desk import Desk
from perdure.policy.limits.pausing import covers
from perdure.storage.port import Store


@pytest.fixture
def holds(store: Store) -> Holds:
    return Desk(store, "ada").holds


def audited(engine_url: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in query(engine_url, "SELECT actor, action FROM {audit} ORDER BY id")]


async def test_a_pause_is_kept_as_it_was_said(holds: Holds, clock: ManualClock, engine_url: str) -> None:
    until = clock.now() + HOUR
    made = await holds.pause(queue="mail", kind="send", args={"tenant": 7}, until=until, why="their quota")
    assert await holds.pauses() == [made]
    assert (made.queue, made.kind, json.loads(made.args or ""), made.until) == ("mail", "send", {"tenant": 7}, until)
    assert (made.why, made.actor, made.at) == ("their quota", "ada", clock.now())
    assert ("ada", "pause") in audited(engine_url)


async def test_a_pause_is_over_when_its_time_is(holds: Holds, clock: ManualClock) -> None:
    await holds.pause(queue="mail", until=clock.now() + HOUR)
    clock.move(HOUR)
    assert await holds.pauses() == []


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({}, "queue"),
        ({"args": {"n": 1}, "queue": "mail"}, "args"),
        ({"kind": "send", "args": {}}, "args"),
        ({"kind": "send", "args": [1]}, "args"),
        ({"kind": "send", "args": {"n": object()}}, "args"),
        ({"kind": "send", "args": {"n": "x" * 20_000}}, "args"),
        ({"queue": " "}, "queue"),
        ({"queue": "mail\x1b[2J"}, "queue"),
        ({"kind": "k" * 101}, "kind"),
        ({"kind": "send", "why": "w" * 501}, "why"),
        ({"kind": "send", "until": datetime(2030, 1, 1)}, "until"),  # noqa: DTZ001 - what is refused
    ],
)
async def test_what_cannot_be_meant_by_a_pause_is_refused_by_name(said: Any, field: str, holds: Holds) -> None:
    with pytest.raises(ArgumentError) as refused:
        await holds.pause(**said)
    assert refused.value.field == field
    assert await holds.pauses() == []


async def test_a_pause_cannot_end_in_the_past(holds: Holds, clock: ManualClock) -> None:
    with pytest.raises(ArgumentError, match="until must be a future time"):
        await holds.pause(queue="mail", until=clock.now())


async def test_resume_by_id_makes_held_jobs_ready(store: Store, holds: Holds, engine_url: str) -> None:
    pause, other = await holds.pause(kind="greet"), await holds.pause(kind="other")
    claim = await start(store)
    await apply(store, transition.paused(claim, Reason.ON_HOLD, None, f"pause {pause.id}: greet"))
    done = await holds.resume(pause.id)
    assert (done.pauses, done.jobs) == ((pause,), 1)
    assert await state_of(store, claim.job_id) is JobState.READY
    assert await holds.pauses() == [other]
    assert ("ada", "resume") in audited(engine_url)


async def test_resume_by_what_pauses_name(holds: Holds) -> None:
    mail, send = await holds.pause(queue="mail"), await holds.pause(kind="send")
    both = await holds.pause(queue="mail", kind="send")
    assert (await holds.resume(queue="mail", kind="send")).pauses == (both,)
    assert (await holds.resume(queue="mail")).pauses == (mail,)
    assert (await holds.resume(queue="mail")).pauses == ()
    assert (await holds.resume(everything=True)).pauses == (send,)


async def test_an_unknown_id_resumes_nothing(holds: Holds) -> None:
    pause = await holds.pause(queue="mail")
    with pytest.raises(NotFoundError, match="nonsense"):
        await holds.resume([pause.id, "nonsense"])
    assert await holds.pauses() == [pause]


@pytest.mark.parametrize("ids", [77, [77], b"pause", object()])
async def test_an_id_that_is_no_text_is_refused_by_name(ids: Any, holds: Holds) -> None:
    with pytest.raises(ArgumentError, match="id of a pause must be text, got"):
        await holds.resume(ids)


@pytest.mark.parametrize("said", [{}, {"ids": "a", "queue": "b"}, {"queue": "b", "everything": True}])
async def test_resume_takes_one_way_of_naming_a_pause(said: Any, holds: Holds) -> None:
    with pytest.raises(ArgumentError, match="one of them"):
        await holds.resume(**said)


async def test_a_breaker_is_opened_until_it_is_closed(holds: Holds, clock: ManualClock, engine_url: str) -> None:
    opened = await holds.open_breaker("digicert", why="their outage")
    assert await holds.breakers() == [opened]
    assert (opened.state, opened.by_hand, opened.until) == (BreakerState.OPEN, True, None)
    assert (opened.note, opened.changed_at) == ("their outage", clock.now())
    closed = await holds.close_breaker("digicert")
    assert await holds.breakers() == [closed]
    assert closed.state is BreakerState.CLOSED
    with pytest.raises(ConflictError, match="closed already"):
        await holds.close_breaker("digicert")
    assert [actor for actor, _ in audited(engine_url)] == ["ada", "ada"]


async def test_a_breaker_opened_for_a_while_is_tried_again_by_itself(holds: Holds, clock: ManualClock) -> None:
    opened = await holds.open_breaker("digicert", for_="1h", why="maintenance")
    assert (opened.by_hand, opened.until) == (False, clock.now() + HOUR)
    assert (opened.note, opened.by) == ("maintenance", "ada")


async def test_closing_lets_the_jobs_behind_a_breaker_look_again(store: Store, holds: Holds) -> None:
    await holds.open_breaker("digicert")
    claim = await start(store)
    await apply(store, transition.paused(claim, Reason.BREAKER_OPEN, HOUR, "digicert: opened by hand"))
    await holds.close_breaker("digicert")
    assert await state_of(store, claim.job_id) is JobState.READY


async def test_breakers_that_cannot_be_meant_are_refused(holds: Holds) -> None:
    with pytest.raises(NotFoundError, match="none was met yet"):
        await holds.close_breaker("digicert")
    for span in ("0s", "soon"):
        with pytest.raises(ArgumentError, match="for "):
            await holds.open_breaker("digicert", for_=span)
    with pytest.raises(ArgumentError, match="name"):
        await holds.open_breaker(" ")
    assert await holds.breakers() == []


async def test_spending_is_summed_over_three_windows(store: Store, holds: Holds, clock: ManualClock) -> None:
    claim = await start(store)
    for wait, amount in ((timedelta(0), 1.0), (10 * DAY, 2.0), (5 * DAY, 4.0)):
        clock.move(wait)
        assert await store.spend(claim, "tokens", amount)
    spent = await holds.spent("tokens")
    assert (spent.daily, spent.weekly, spent.monthly) == (4.0, 6.0, 7.0)
    with pytest.raises(NotFoundError, match=r"under the name 'nobody' in the last month; known are .*'tokens'"):
        await holds.spent("nobody")
    assert "tokens" in await store.budgets(10)
    assert await store.budgets(0) == []


@pytest.mark.parametrize(
    ("pause", "fits"),
    [
        ({"queue": "mail"}, True),
        ({"queue": "other"}, False),
        ({"kind": "send"}, True),
        ({"kind": "send", "queue": "other"}, False),
        ({"kind": "send", "args": '{"tenant": 1}'}, True),
        ({"kind": "send", "args": '{"tenant": 1.0}'}, True),
        ({"kind": "send", "args": '{"tenant": true}'}, False),
        ({"kind": "send", "args": '{"tenant": "1"}'}, False),
        ({"kind": "send", "args": '{"absent": null}'}, False),
        ({"kind": "send", "args": '{"to": {"a": [1, 2]}}'}, True),
        ({"kind": "send", "args": '{"to": {"a": [1]}}'}, False),
        ({"kind": "send", "args": '{"tenant": 1, "to": {}}'}, False),
    ],
)
def test_a_pause_covers_what_it_says(pause: dict[str, Any], fits: bool, clock: ManualClock) -> None:
    made = Pause(id="1", actor="ada", at=clock.now(), **pause)
    assert covers(made, "mail", "send", '{"tenant":1,"to":{"a":[1,2]}}') is fits


def test_damaged_arguments_fit_no_values(clock: ManualClock) -> None:
    pause = Pause(id="1", kind="send", args='{"n": 1}', actor="ada", at=clock.now())
    assert not covers(pause, "mail", "send", "{")
    assert not covers(pause, "mail", "send", "[1]")
    assert not covers(replace(pause, args="{"), "mail", "send", '{"n": 1}')


async def test_a_pause_of_a_name_that_nothing_uses_is_made_and_similar_names_are_suggested(
    holds: Holds, store: Store
) -> None:
    await job_in(JobState.SUCCEEDED, store, queue="mail", kind="send_mail")
    await employ(store, queues=("reports",))
    for queue in ("mail", "reports"):
        assert (await holds.check_pause(await holds.pause(queue=queue))).unknown == ()
    assert (await holds.check_pause(await holds.pause(kind="send_mail"))).unknown == ()
    found = await holds.check_pause(await holds.pause(queue="report", kind="send_mial"))
    assert found.unknown == (
        "no job, schedule or running worker uses queue 'report' yet; did you mean 'reports'?",
        "no job or schedule is of kind 'send_mial' yet; did you mean 'send_mail'?",
    )
    [plain] = (await holds.check_pause(await holds.pause(queue="xyz"))).unknown
    assert plain == "no job, schedule or running worker uses queue 'xyz' yet"


async def test_only_pauses_that_hold_every_job_of_a_pause_are_named_beside_it(holds: Holds) -> None:
    whole, narrow = await holds.pause(queue="mail"), await holds.pause(queue="mail", kind="send")
    await holds.pause(queue="mail", kind="send", args={"tenant": 7})
    assert (await holds.check_pause(narrow)).others == (whole,)
    again = await holds.pause(queue="mail")
    assert (await holds.check_pause(again)).others == (whole,)
    assert (await holds.check_pause(whole)).others == (again,)
