"""What `perdure jobs` shows of a job that takes steps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.builders.jobs import apply, start
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits, Progress, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition, parked, paused, succeeded
from perdure.storage.port import Store

HOUR = timedelta(hours=1)


def test_show_prints_the_steps_and_the_progress_of_a_job(cli: Cli, arrange: Arrange[Any]) -> None:
    async def take_steps(store: Store) -> JobId:
        claim, now = await start(store), await store.now()
        fetched = StepRecord(
            key="fetch", kind=StepKind.CALL, state=StepState.DONE, result='{"n":1}', tries=3, begun_at=now
        )
        shots = StepRecord(
            key="shots", kind=StepKind.CALL, state=StepState.GIVEN_UP, note="no \x1b[31m camera", tries=1, begun_at=now
        )
        asked = StepRecord(key="event:paid", kind=StepKind.EVENT, state=StepState.BEGUN, due_at=now, begun_at=now)
        assert all(await store.save_steps([StepWrite(claim, step) for step in (fetched, shots, asked)]))
        await store.save_progress({claim.job_id: (claim, Progress(current=3, total=10, note="pages", at=now))})
        return claim.job_id

    job_id = arrange(take_steps)
    page = cli("jobs", "show", job_id).out
    assert "3 of 10, pages" in page
    assert "fetch       call, done, 3 tries" in page
    assert "shots       call, given up: no" in page
    assert "event:paid  event, begun, until" in page
    assert "\x1b" not in page
    document = cli("jobs", "show", job_id, "--json").json
    assert [(step["key"], step["state"], step["result"]) for step in document["steps"]] == [
        ("fetch", "done", {"n": 1}),
        ("shots", "given up", None),
        ("event:paid", "begun", None),
    ]
    assert (document["progress"]["current"], document["progress"]["note"]) == (3, "pages")


def test_c12_show_shows_what_a_job_has_cost(cli: Cli, arrange: Arrange[Any]) -> None:
    async def spend(store: Store) -> JobId:
        claim = await start(store)
        await store.spend(claim, "openai", 0.25)
        await store.spend(claim, "openai", 0.5)
        return claim.job_id

    job_id = arrange(spend)
    assert "cost      0.75 of openai" in cli("jobs", "show", job_id).out
    assert cli("jobs", "show", job_id, "--json").json["costs"] == [
        {"budget": "openai", "spent": 0.75, "estimated": None}
    ]


def test_of_very_many_steps_the_last_are_shown(cli: Cli, arrange: Arrange[Any]) -> None:
    async def take_steps(store: Store) -> JobId:
        claim, now = await start(store), await store.now()
        steps = [
            StepRecord(key=f"page {number}", kind=StepKind.CALL, state=StepState.DONE, tries=1, begun_at=now)
            for number in range(60)
        ]
        await store.save_steps([StepWrite(claim, step) for step in steps])
        return claim.job_id

    page = cli("jobs", "show", arrange(take_steps)).out
    assert "… 10 before these: --json has all" in page
    assert "page 9  " not in page
    assert "page 59  call, done" in page


def test_e4_a_job_that_is_done_with_warnings_says_so_everywhere(
    cli: Cli, arrange: Arrange[Any], engine_url: str
) -> None:
    async def warn(store: Store) -> JobId:
        claim = await start(store)
        await apply(store, succeeded(claim, None, ("step shots gave up: OSError",)))
        return claim.job_id

    job_id = arrange(warn)
    listed = cli("jobs", "list").out
    assert "succeeded (!)" in listed
    assert "(!) done with warnings" in listed
    assert "step shots gave up: OSError" in run_cli("jobs", "list", "--url", engine_url, env={"COLUMNS": "200"}).out
    assert cli("jobs", "list", "--json").json["jobs"][0]["warnings"] == ["step shots gave up: OSError"]
    assert "SUCCEEDED  done with warnings" in cli("jobs", "show", job_id).out
    assert "Warning: step shots gave up" in cli("jobs", "why", job_id).out


def test_b14_a_wide_list_shows_what_each_job_waits_for(arrange: Arrange[Any], engine_url: str) -> None:
    async def park(store: Store) -> None:
        await apply(store, parked_for(await start(store), "paid:42"))
        asking = await start(store)
        await apply(store, parked_for(asking, approval_event(asking.job_id, "refund")))
        note = "issued, poll 3: no answer yet"
        await apply(store, parked(await start(store), Reason.STILL_PENDING, HOUR, None, note))
        await apply(store, paused(await start(store), Reason.RATE_LIMITED, HOUR, "mail: 6 of 6 starts"))

        several = await start(store)
        also = (Awaits(event=approval_event(several.job_id, "stop")), Awaits(event="bounced:1"))
        await apply(store, parked(several, Reason.AWAITING_EVENT, None, Awaits(event="sent:1"), None, also))

    arrange(park)
    page = run_cli("jobs", "list", "--url", engine_url, env={"COLUMNS": "200"}).out
    assert "waiting for an event: paid:42" in page
    assert "waiting for an event: sent:1; or answer stop; or event bounced:1" in page
    assert "waiting for an answer: refund" in page
    assert "still pending: issued, poll 3: no answer yet" in page
    assert "rate limited: mail: 6 of 6 starts" in page


def test_b14_the_page_of_a_job_is_headed_by_what_it_waits_for(cli: Cli, arrange: Arrange[Any]) -> None:
    async def park(store: Store) -> JobId:
        claim = await start(store)
        await apply(store, parked_for(claim, "paid:42"))
        return claim.job_id

    assert "WAITING  waiting for an event: paid:42" in cli("jobs", "show", arrange(park)).out


def parked_for(claim: Claim, event: str) -> Transition:
    return parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=event), None)
