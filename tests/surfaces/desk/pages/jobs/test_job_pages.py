"""Jobs, one job, dead letters and bulk commands on the desk: what they show, and what their buttons do."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from httpx import AsyncClient
from tests.support.builders.families import claim_children, start_parent
from tests.support.builders.gate_requests import held_by_rate, past_gates
from tests.support.builders.jobs import HOUR, apply, claim_one, claim_some, employ, enqueue, start, state_of

from perdure.domain.flows.flow import Awaits, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import died, parked, paused, succeeded
from perdure.errors import StoreUnavailable
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.surfaces.desk.pages.jobs.job import CHILDREN_DRAWN


async def dead_letters(store: Store, number: int, kind: str = "charge_card") -> list[JobId]:
    """So many jobs of one kind that died of one cause, but for its numbers."""
    worker = await employ(store, queues=("payments",))
    for place in range(number):
        await enqueue(store, kind=kind, queue="payments", args=f'{{"order":{place}}}')
    claims = await claim_some(store, worker, number, "payments")
    for place, claim in enumerate(claims):
        failure = Failure("TimeoutError", f"gateway {7 + place} gave up")
        await apply(store, died(claim, Reason.EXHAUSTED, failure))
    return [claim.job_id for claim in claims]


async def test_a_search_shows_what_it_means_and_keeps_itself_in_every_link(pages: AsyncClient, store: Store) -> None:
    await dead_letters(store, 2)
    await enqueue(store, kind="send_mail", args='{"to":"ada"}')
    page = await pages.get("/jobs", params={"q": "kind:charge_card args.order=1"})
    assert page.status_code == 200
    assert page.text.count('id="job-') == 1
    assert "send_mail" not in page.text
    assert "/jobs?q=kind%3Acharge_card+args.order%3D1+state%3Adead" in page.text
    assert "perdure jobs list --search" in page.text


async def test_a_search_that_is_not_understood_names_the_word(pages: AsyncClient) -> None:
    page = await pages.get("/jobs", params={"q": "colour:red"})
    assert page.status_code == 400
    assert "does not understand colour:red" in page.text


async def test_a_job_of_the_wrong_page_or_ref_is_reported_with_404(pages: AsyncClient) -> None:
    assert (await pages.get("/jobs/order-77")).status_code == 404
    assert (await pages.get("/dead/0000000000000000")).status_code == 404
    assert (await pages.get("/bulk/nothing")).status_code == 404
    assert (await pages.get("/jobs", params={"before": "x"})).status_code == 400


async def test_a_paused_job_says_why_and_its_button_resumes_the_queue(pages: AsyncClient, store: Store) -> None:
    job_id = await enqueue(store, kind="report", queue="reports")
    desk = Desk(store, "grace")
    pause = await desk.holds.pause(queue="reports", why="month end")
    page = await pages.get(f"/jobs/{job_id}")
    assert "Why is it not running?" in page.text
    assert "month end" in page.text
    form = {"action": "resume", "target": pause.id, "why": "the month is over"}
    answer = await pages.post(f"/jobs/{job_id}/remedy", data=form)
    assert answer.status_code == 303
    assert await desk.holds.pauses() == []
    [entry] = (await desk.audit(action="resume")).entries
    assert (entry.why, entry.actor) == ("the month is over", "ada")


async def test_the_button_of_a_job_that_waits_for_an_event_leads_to_the_form_with_its_name(
    pages: AsyncClient, store: Store
) -> None:
    claim = await start(store)
    wait = parked(claim, Reason.AWAITING_EVENT, timedelta(hours=1), Awaits(event="paid 42"), None)
    await apply(store, wait)
    assert 'href="/emit?event=paid+42">Emit the event…</a>' in (await pages.get(f"/jobs/{claim.job_id}")).text


async def test_the_page_of_a_job_held_by_a_budget_calls_its_due_time_the_next_look(
    pages: AsyncClient, store: Store
) -> None:
    for reason, is_next_look in ((Reason.BUDGET_EXCEEDED, True), (Reason.RATE_LIMITED, False)):
        claim = await start(store)
        await apply(store, paused(claim, reason, HOUR, "ai: 9 of 5 spent in 1d"))
        page = (await pages.get(f"/jobs/{claim.job_id}")).text
        assert ("<dt>Next look at its gate</dt>" in page, "<dt>Next</dt>" in page) == (is_next_look, not is_next_look)
        assert ("The first time is the next look at its gate" in page) == is_next_look


async def test_a_remedy_that_no_longer_helps_does_nothing(pages: AsyncClient, store: Store) -> None:
    [job_id] = await dead_letters(store, 1)
    answer = await pages.post(f"/jobs/{job_id}/remedy", data={"action": "resume", "target": "whatever"})
    assert answer.status_code == 303
    assert await state_of(store, job_id) is JobState.DEAD


async def test_commands_of_a_job_act_and_are_audited_with_their_reason(pages: AsyncClient, store: Store) -> None:
    [job_id] = await dead_letters(store, 1)
    await pages.post(f"/jobs/{job_id}/requeue", data={"why": "the gateway is back", "confirmed": "yes"})
    assert await state_of(store, job_id) is JobState.READY
    again = await pages.post(f"/jobs/{job_id}/requeue", data={"why": "twice", "confirmed": "yes"})
    assert again.status_code == 409
    await pages.post(f"/jobs/{job_id}/cancel", data={"why": "not needed", "confirmed": "yes"})
    assert await state_of(store, job_id) is JobState.CANCELLED
    page = await pages.get(f"/jobs/{job_id}", params={"tab": "audit"})
    assert "the gateway is back" in page.text
    assert "not needed" in page.text


async def test_a_new_time_is_read_as_a_span_from_now(pages: AsyncClient, store: Store) -> None:
    job_id = await enqueue(store, kind="report", delay=timedelta(hours=5))
    refused = await pages.post(f"/jobs/{job_id}/reschedule", data={"delay": "soon"})
    assert refused.status_code == 400
    await pages.post(f"/jobs/{job_id}/reschedule", data={"delay": "30m"})
    found = await store.job(job_id)
    assert found is not None
    assert found.due_at is not None
    assert found.due_at - await store.now() <= timedelta(minutes=30)


async def test_dead_letters_come_in_groups_with_retries_and_the_whole_error_in_a_tooltip(
    pages: AsyncClient, store: Store
) -> None:
    await dead_letters(store, 3)
    page = await pages.get("/dead")
    assert page.text.count('id="group-') == 1
    assert "TimeoutError: gateway … gave up" in unescape(page.text)
    [path] = set(re.findall(r'href="(/dead/[0-9a-f]+)"', page.text))
    group = await pages.get(path)
    assert group.text.count('id="job-') == 3
    assert re.search(r'title="[^"]*gateway 7 gave up"', unescape(group.text))


async def test_what_a_search_leaves_of_a_group_is_what_its_button_is_for(pages: AsyncClient, store: Store) -> None:
    ids = await dead_letters(store, 3)
    page = unescape((await pages.get("/dead", params={"q": f"id:{ids[0]}"})).text)
    assert 'action="/dead"' in page  # the box searches in what is shown
    assert f'href="/jobs?q=id%3A{ids[0]}"' in page
    [plan] = re.findall(r'href="(/bulk/plan[^"]+)">Requeue 1…', page)
    assert "<b>1</b> job matches now" in (await pages.get(plan)).text


async def test_one_of_a_group_is_requeued_as_a_probe_after_a_question(pages: AsyncClient, store: Store) -> None:
    ids = await dead_letters(store, 3)
    [group] = (await Desk(store, "ada").failure_groups()).groups
    question = await pages.post(f"/dead/{group.fingerprint}/probe", data={})
    assert "as a probe?" in question.text
    assert [await state_of(store, job_id) for job_id in ids] == [JobState.DEAD] * 3
    done = await pages.post(f"/dead/{group.fingerprint}/probe", data={"confirmed": "yes"})
    assert done.headers["location"] == f"/jobs/{group.newest}"
    assert sorted([await state_of(store, job_id) for job_id in ids]) == ["dead", "dead", "ready"]


async def test_a_bulk_command_is_counted_confirmed_done_and_shown(pages: AsyncClient, store: Store) -> None:
    await dead_letters(store, 5)
    plan = await pages.get("/bulk/plan", params={"action": "requeue", "q": "state:dead"})
    assert "Requeue 5 jobs" in plan.text
    [token] = re.findall(r'name="token" value="([^"]+)"', plan.text)
    started = await pages.post("/bulk", data={"token": unescape(token), "why": "the gateway is back"})
    assert started.status_code == 303
    desk = Desk(store, "ada")
    bulk_id = started.headers["location"].rsplit("/", 1)[1]
    async for _ in desk.work_on_bulk(bulk_id):
        pass
    page = await pages.get(f"/bulk/{bulk_id}")
    assert "the gateway is back" in page.text
    assert (await desk.count(JobFilter(states="dead"))).jobs == 0
    assert bulk_id in (await pages.get("/bulk")).text
    twice = await pages.post("/bulk", data={"token": unescape(token)})
    assert twice.status_code == 409


async def test_chosen_rows_are_changed_and_what_could_not_be_is_reported(pages: AsyncClient, store: Store) -> None:
    ids = await dead_letters(store, 2)
    ready = await enqueue(store, kind="report")
    answer = await pages.post("/jobs", data={"id": [*ids, ready], "action": "requeue", "confirmed": "yes"})
    assert answer.status_code == 303
    assert "1+job+could+not+be+changed" in answer.headers["set-cookie"]
    assert [await state_of(store, job_id) for job_id in ids] == [JobState.READY] * 2
    assert (await pages.post("/jobs", data={"action": "requeue", "confirmed": "yes"})).status_code == 400
    assert (await pages.post("/jobs", data={"id": ids, "action": "explode"})).status_code == 400


async def test_of_many_children_each_has_a_square_and_those_that_failed_a_box(pages: AsyncClient, store: Store) -> None:
    parent, children = await start_parent(store, CHILDREN_DRAWN + 6)
    claims = await claim_children(store)
    await apply(
        store,
        *[succeeded(claims[child], None, ()) for child in children[:-2]],
        died(claims[children[-1]], Reason.PERMANENT, Failure("ValueError", "broken")),
    )
    page = (await pages.get(f"/jobs/{parent.job_id}", params={"tab": "children"})).text
    assert page.count('class="cell ') == len(children)
    tree = page[page.index('class="family"') :].partition("</svg>")[0]
    assert tree.count("/jobs/") == CHILDREN_DRAWN
    assert children[-1] in tree  # dead
    assert children[-2] in tree  # not final
    assert "those that failed first" in page
    few = (await pages.get(f"/jobs/{parent.job_id}", params={"tab": "data"})).text
    assert f"Children <b>{len(children)}</b>" in few
    assert children[0] not in few


async def test_a_job_of_many_attempts_begins_with_its_last_error_and_names_itself_in_the_tab(
    pages: AsyncClient, store: Store
) -> None:
    [job_id] = await dead_letters(store, 1)
    page = (await pages.get(f"/jobs/{job_id}", params={"tab": "attempts"})).text
    assert page.index('id="last-error"') < page.index('id="attempts"')
    assert "<title>charge_card, dead · perdure</title>" in page


async def test_of_very_many_steps_all_but_the_last_are_folded(pages: AsyncClient, store: Store) -> None:
    claim = await start(store, kind="walk")
    for number in range(25):
        begun = await store.now()
        step = StepRecord(key=f"step-{number}", kind=StepKind.CALL, state=StepState.DONE, begun_at=begun, tries=1)
        await store.save_steps([StepWrite(claim, step)])
    page = (await pages.get(f"/jobs/{claim.job_id}", params={"tab": "steps"})).text
    assert re.search(r"The first 15 steps <small>all done", page)
    assert [int(found) for found in re.findall(r'id="step-(\d+)"', page)] == list(range(1, 26))
    assert page.index("step-14</b>") < page.index("</details>") < page.index("step-15</b>")


async def test_a_question_and_a_refusal_lead_back_to_where_the_button_was(pages: AsyncClient, store: Store) -> None:
    [job_id] = await dead_letters(store, 1)
    here = {"referer": "http://127.0.0.1/jobs?q=state%3Adead"}
    asked = (await pages.post(f"/jobs/{job_id}/requeue", headers=here)).text
    assert '<a class="btn" href="/jobs?q=state%3Adead">Back</a>' in asked
    assert 'data-every="0" data-posted' in asked
    await Desk(store, "grace").requeue(job_id)
    form = {"confirmed": "yes", "came_from": "/jobs?q=state%3Adead"}
    refused = await pages.post(f"/jobs/{job_id}/requeue", data=form, headers={"referer": "http://127.0.0.1/x/requeue"})
    assert (refused.status_code, 'href="/jobs?q=state%3Adead">Back</a>' in refused.text) == (409, True)
    for foreign in ("https://evil.example/jobs", "http://127.0.0.1//evil.example"):
        page = (await pages.post(f"/jobs/{job_id}/cancel", headers={"referer": foreign})).text
        assert '<a class="btn" href="/">Back</a>' in page


async def test_a_command_whose_answer_is_lost_says_that_it_may_have_been_done(
    pages: AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job_id] = await dead_letters(store, 1)

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the connection was lost")

    monkeypatch.setattr(store, "requeue", away)
    page = await pages.post(f"/jobs/{job_id}/requeue", data={"confirmed": "yes"})
    assert page.status_code == 503
    assert "The command may have run or not" in page.text


async def test_suggestions_are_words_that_could_come_next(pages: AsyncClient, store: Store) -> None:
    await dead_letters(store, 1)
    answer = await pages.get("/suggestions", params={"q": "state:de"})
    assert [each["text"] for each in answer.json()] == ["state:dead"]


async def test_c11_the_gates_of_each_attempt_are_shown_with_holds_and_passes(pages: AsyncClient, store: Store) -> None:
    claim = await start(store)
    await apply(store, held_by_rate(claim, await store.now(), HOUR, "mail:<b>7</b>"))
    held = (await pages.get(f"/jobs/{claim.job_id}", params={"tab": "gates"})).text
    assert "not passed" in held
    await Desk(store, "ada").run_now(claim.job_id)
    again = await claim_one(store, await employ(store))
    await apply(store, succeeded(past_gates(again, await store.now(), "mail:<b>7</b>"), None, ()))
    page = (await pages.get(f"/jobs/{claim.job_id}", params={"tab": "gates"})).text
    assert "mail:<b>7</b>" not in page
    assert "mail:&lt;b&gt;7&lt;/b&gt;" in page
    words = " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert re.search(r"rate mail:<b>7</b> held .+ to .+: 3 of 3 starts in 1 m passed \d", words)
    assert "budget ai with estimate 0.3 passed" in words


async def test_a_job_that_has_met_no_gates_says_so(pages: AsyncClient, store: Store) -> None:
    page = await pages.get(f"/jobs/{await enqueue(store)}", params={"tab": "gates"})
    assert "No gates." in page.text
