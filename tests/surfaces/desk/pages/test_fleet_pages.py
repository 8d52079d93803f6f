"""Schedules, workers, flows, gates, approvals and audit: what they show and what their buttons do, on both engines."""

from __future__ import annotations

import re
from datetime import timedelta

from httpx import ASGITransport, AsyncClient
from tests.support.builders.families import KEY, awaiting, start_parent
from tests.support.builders.jobs import HOUR, MINUTE, apply, claim_some, employ, enqueue, show, start
from tests.support.builders.schedules import make
from tests.support.web import desk_shop
from tests.support.web.desk_site import desk_site

from perdure.clock import ManualClock
from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits
from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.schedule import Missed
from perdure.domain.worker import Phase
from perdure.operate.desk import Desk
from perdure.storage.port import Store

GO = {"confirmed": "yes", "why": "the night shift asked"}
NIGHTLY = {"name": "nightly", "kind": "report", "expression": "0 2 * * *", "tz": "Europe/Berlin", "args": "{}"}


async def _ask(store: Store, kind: str = "refund") -> JobId:
    """A job that waits for an approval."""
    claim = await start(store, kind=kind)
    event = approval_event(claim.job_id, "over 500")
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event=event), None))
    return claim.job_id


async def test_spans_have_one_form_in_needs_and_in_the_words_of_a_schedule(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    await make(store, await store.now() + MINUTE, name="digest", expression="@every 1500ms")
    clock.move(2 * HOUR)
    for path, words in (
        ("/", "is overdue by 1 h 59 m"),
        ("/schedules", "every 1.5 s"),
        ("/schedules/digest", "fires every 1.5 s"),
    ):
        assert words in re.sub("<[^>]+>", "", (await pages.get(path)).text)


async def test_a_schedule_is_made_by_a_form_shown_in_plain_words_and_acted_on(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    made = await pages.post("/schedules", data=NIGHTLY)
    assert (made.status_code, made.headers["location"]) == (303, "/schedules/nightly")
    page = (await pages.get("/schedules")).text
    assert "every day at 02:00, Berlin time" in page
    assert "did not run yet" in page
    for command in ("trigger", "pause", "backfill", "delete"):
        asked = await pages.post(f"/schedules/nightly/{command}", data={"from": "3d"})
        assert (asked.status_code, "nightly" in asked.text) == (200, True)
    assert (await Desk(store, "ada").calendar.schedule("nightly")).fires == ()
    await pages.post("/schedules/nightly/trigger", data=GO)
    await pages.post("/schedules/nightly/pause", data=GO)
    page = (await pages.get("/schedules/nightly")).text
    assert "Paused" in page
    assert "by hand" in page
    await pages.post("/schedules/nightly/resume")
    assert "Next times" in (await pages.get("/schedules/nightly")).text
    assert "up to <b>3 jobs</b>" in (await pages.get("/schedules/nightly", params={"from": "3d"})).text
    await pages.post("/schedules/nightly/backfill", data={**GO, "from": "3d"})
    fires = (await Desk(store, "ada").calendar.schedule("nightly")).fires
    assert len(fires) == 4
    clock.move(timedelta(days=2))
    assert "It is late." in (await pages.get("/schedules/nightly")).text
    await pages.post("/schedules/nightly/delete", data=GO)
    assert (await pages.get("/schedules/nightly")).status_code == 404
    trail = (await Desk(store, "ada").audit(action="schedule.delete")).entries
    assert trail[0].why == GO["why"]


async def test_a_schedule_that_makes_no_sense_comes_back_in_its_form_with_the_field_named(
    pages: AsyncClient, store: Store
) -> None:
    for field, value, said in (
        ("expression", "61 * * * *", "minute 61 is out of range"),
        ("tz", "Europe/Berln", "did you mean Europe/Berlin"),
        ("args", "[1]", "must be a JSON object"),
        ("args", '{"password":"\u2022\u2022\u2022"', "is not JSON"),
        ("priority", "99", "from 0 to 9"),
        ("name", "", "is missing"),
    ):
        answer = await pages.post("/schedules", data={**NIGHTLY, field: value})
        assert answer.status_code == 422, field
        assert said in answer.text
        assert 'aria-invalid="true"' in answer.text or field == "args"
        assert 'value="report"' in answer.text  # nothing that was written is lost
    assert await store.schedules() == []
    assert (await pages.get("/schedules/nowhere")).status_code == 404
    await pages.post("/schedules", data={**NIGHTLY, "missed": "once"})
    form = (await pages.get("/schedules?form=change&name=nightly")).text
    assert 'value="once" selected' in form
    await pages.post("/schedules", data={**NIGHTLY, "missed": "all", "replaces": "nightly"})
    assert (await store.schedules())[0].schedule.missed is Missed.ALL
    for begin in ("yesterday", "-1", "2030-01-01", "9999999d"):
        assert 'role="alert"' in (await pages.get("/schedules/nightly", params={"from": begin})).text, begin


async def test_a_thousand_schedules_are_found_by_name_and_turned_page_by_page(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    desk = Desk(store, "ada")
    for number in range(101):
        await make(store, await store.now() + MINUTE, name=f"night-{number:03d}", kind="report")
    await make(store, await store.now() + MINUTE, name="other", kind="bill")
    await desk.calendar.pause("night-007")
    page = (await pages.get("/schedules")).text
    assert "102 schedules" in page
    assert page.count("<tr id=") == 100
    [after] = re.findall(r'href="([^"]+)" rel="next"', page)
    rest = (await pages.get(after.replace("&amp;", "&"))).text
    assert re.findall(r'<tr id="schedule-([^"]+)"', rest) == ["night-100", "other"]
    for query, names in (("name=BILL", ["other"]), ("name=t-02", [f"night-{n:03d}" for n in range(20, 30)])):
        page = (await pages.get(f"/schedules?{query}")).text
        assert re.findall(r'<tr id="schedule-([^"]+)"', page) == names
        assert f"{len(names)} of them match" in page
    assert (await pages.get("/schedules?show=paused")).text.count("<tr id=") == 1
    assert (await pages.get("/schedules?show=late&name=007")).text.count("<tr id=") == 0
    clock.move(HOUR)
    assert (await pages.get("/schedules?show=late&name=-00")).text.count("<tr id=") == 9
    assert "No schedule matches." in (await pages.get("/schedules?show=unreadable")).text
    wrong = await pages.get("/schedules?show=purple")
    assert (wrong.status_code, "must be late, paused or unreadable" in wrong.text) == (400, True)


async def test_a_command_to_copy_quotes_names_for_the_shell(pages: AsyncClient, store: Store) -> None:
    await pages.post("/schedules", data={**NIGHTLY, "name": "x; rm -rf ~"})
    page = (await pages.get("/schedules/x%3B%20rm%20-rf%20~")).text
    assert "<code>perdure schedules show &#39;x; rm -rf ~&#39;</code>" in page


async def test_workers_show_what_they_run_and_become_quiet(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    assert "No worker runs." in (await pages.get("/workers")).text
    worker = await employ(store, name="web-1", queues=("default",))
    opening = await employ(store, name="web-2")
    await store.report(opening, Phase.OPENING)
    await enqueue(store, kind="resize")
    [claim] = await claim_some(store, worker, 1)
    clock.move(MINUTE / 2)
    await store.beat(worker)
    page = (await pages.get("/workers")).text
    assert f'href="/jobs/{claim.job_id}">resize' in page
    assert "✿" in page
    assert ">30 s<" in page
    assert (await pages.post(f"/workers/{worker}/quiet")).status_code == 200
    assert not await store.wants_quiet(worker)
    await pages.post(f"/workers/{worker}/quiet", data=GO)
    assert await store.wants_quiet(worker)
    assert "Let it claim" in (await pages.get("/workers")).text
    await pages.post(f"/workers/{worker}/loud")
    assert not await store.wants_quiet(worker)
    clock.move(HOUR)
    assert "It sends no heartbeat" in (await pages.get("/workers")).text


async def test_workers_of_one_name_are_distinguished_in_the_command_to_copy(pages: AsyncClient, store: Store) -> None:
    twins = [await employ(store, name="web", queues=("default",)) for _ in range(2)]
    await employ(store, name="mail", queues=("default",))
    page = (await pages.get("/workers")).text
    assert all(f'data-cli="perdure quiet {twin}"' in page for twin in twins)
    assert 'data-cli="perdure quiet mail"' in page


async def test_workers_of_one_process_show_their_own_jobs(pages: AsyncClient, store: Store, clock: ManualClock) -> None:
    """Workers of several apps in one process have one name, host:pid."""
    busy = await employ(store, name="vm:4711", queues=("pulse",))
    await employ(store, name="vm:4711", queues=("mail",))
    twin = await employ(store, name="vm:4711", queues=("pulse",))
    await enqueue(store, kind="analyse", queue="pulse")
    await claim_some(store, busy, 1, "pulse")
    page = (await pages.get("/workers")).text
    shown = dict(re.findall(r'id="worker-(\d+)">(.*?)</section>', page, re.DOTALL))
    assert [name for name, panel in shown.items() if ">analyse</a>" in panel] == [str(busy)]
    assert str(twin) in shown


async def test_many_workers_are_rows_of_a_table_and_lost_ones_come_first(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    lost = await employ(store, name="web-99", queues=("default",))
    await enqueue(store, kind="resize")
    [claim] = await claim_some(store, lost, 1)
    clock.move(HOUR)
    living = [await employ(store, name=f"web-{number:02d}", queues=("mail",)) for number in range(12)]
    page = (await pages.get("/workers")).text
    assert re.findall(r'<tr id="worker-(\d+)"', page) == [str(worker) for worker in (lost, *living)]
    assert f'href="/jobs/{claim.job_id}">resize' in page
    assert page.count('data-cli="perdure quiet web-') == 12, "a lost worker hears nothing"


async def test_the_page_of_a_queue_says_that_its_worker_is_lost(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    worker = await employ(store, name="web", queues=("default",))
    await Desk(store, "ada").quiet([str(worker)])
    assert ">quiet</span>" in (await pages.get("/queues/default")).text
    clock.move(HOUR)
    page = (await pages.get("/queues/default")).text
    assert ">lost</span>" in page
    assert "It sends no heartbeat" in page


async def test_a_pause_of_some_jobs_is_ended_on_the_page_of_their_kind(pages: AsyncClient, store: Store) -> None:
    await enqueue(store, kind="mail")
    made = await Desk(store, "ada").holds.pause(kind="mail", args={"tenant": "acme"})
    page = (await pages.get("/kinds/mail")).text
    assert f'action="/gates/pauses/{made.id}/resume"' in page
    assert ">Pause…</button>" in page, "the kind as a whole is not paused"
    done = await pages.post(f"/gates/pauses/{made.id}/resume", data={**GO, "back": "/kinds/mail"})
    assert done.headers["location"] == "/kinds/mail"
    assert await store.pauses() == []


async def test_what_was_done_is_reported_in_the_time_zone_of_the_viewer(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    end = (await store.now() + HOUR).replace(microsecond=0)
    await pages.post("/gates/breakers/bank/open", data={**GO, "for": "1h"})
    said = (await pages.get("/gates")).text.partition('id="said"')[2].partition("</div>")[0]
    assert f'<time datetime="{end.isoformat()}" data-as="full"' in said


async def test_flows_draw_parents_and_name_what_other_jobs_wait_for(pages: AsyncClient, store: Store) -> None:
    assert "No job waits." in (await pages.get("/flows")).text
    parent, children = await start_parent(store, 10)
    await apply(store, awaiting(parent))
    await _ask(store)
    napping = await start(store, kind="nap")
    await apply(store, transition.waiting(napping, Reason.SLEEPING, HOUR))
    page = (await pages.get("/flows")).text
    assert 'aria-label="Children of ingest"' in page
    assert f'href="/jobs/{children[0]}"' in page
    assert "and 2 more" in page
    assert "0 of 10" in page
    assert "over 500" in page
    assert "a time" in page
    assert KEY in page
    flows = await Desk(store, "ada").flows(limit=1)
    assert (len(flows.flows), flows.next) == (1, flows.flows[0].job.id)
    assert (await pages.get("/flows", params={"before": "nonsense"})).status_code == 400


async def test_gates_show_pauses_breakers_with_their_history_and_budgets(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    page = (await pages.get("/gates")).text
    assert "Nothing is paused." in page
    desk = Desk(store, "ada")
    pause = await desk.holds.pause(queue="mail", why="the provider is down")
    await desk.holds.open_breaker("bank", why="it charges twice")
    claim = await start(store)
    await store.spend(claim, "openai", 4.25)
    page = (await pages.get("/gates")).text
    assert "the provider is down" in page
    assert "it charges twice" in page
    assert ">4.25<" in page
    assert (await pages.post(f"/gates/pauses/{pause.id}/resume", data={})).status_code == 200
    assert await store.pauses() == [pause]
    await pages.post(f"/gates/pauses/{pause.id}/resume", data=GO)
    assert await store.pauses() == []
    await pages.post("/gates/breakers/bank/close", data=GO)
    assert [view.state for view in await store.breakers()] == [BreakerState.CLOSED]
    again = await pages.post("/gates/breakers/bank/close", data=GO)
    assert again.status_code == 409
    await pages.post("/gates/breakers/bank/open", data=GO)
    page = (await pages.get("/gates")).text
    assert page.count("opened it") == 2
    assert "closed it" in page
    assert re.search(r"Open since <time[^>]*>[^<]*</time> by ada", page)
    await desk.holds.open_breaker("zebra")
    await desk.holds.close_breaker("bank")
    page = (await pages.get("/gates")).text
    assert page.index('id="breaker-zebra"') < page.index('id="breaker-bank"'), "what holds jobs comes first"
    assert isinstance((await store.breakers())[0], BreakerView)


async def test_without_the_app_limits_are_known_as_a_worker_stored_them(pages: AsyncClient, store: Store) -> None:
    claim = await start(store, kind="summarise")
    await store.spend(claim, "openai", 4.25)
    assert "No kind declares a rate or slots." in (await pages.get("/gates")).text
    await store.declare_kinds(tuple(desk_shop.app.kind_records.values()))
    page = (await pages.get("/gates")).text
    for said in ("85 % used in the last 24 h", "near its limit", "6 starts in 1 m", "0 of 2 slots in use"):
        assert said in page
    assert ">budget openai</a>" in (await pages.get(f"/jobs/{claim.job_id}")).text


async def test_with_the_app_at_hand_limits_are_known_and_schedules_checked(store: Store) -> None:
    claim = await start(store, kind="summarise")
    await store.spend(claim, "openai", 4.25)
    site = desk_site(store, app=desk_shop.app)
    async with AsyncClient(transport=ASGITransport(site), base_url="http://127.0.0.1") as pages:
        page = (await pages.get("/gates")).text
        assert "85 % used in the last 24 h" in page  # of 5.0 a day
        assert "near its limit" in page
        assert "6 starts in 1 m" in page
        assert "0 of 2 slots in use" in page
        assert ">budget openai</a>" in (await pages.get(f"/jobs/{claim.job_id}")).text
        job = (await pages.get(f"/jobs/{await enqueue(store, kind='nightly_report')}")).text
        assert all(f">{gate}</a>" in job for gate in ("6 starts in 1 m", "2 at a time"))
        for change, said in (({"kind": "nobody"}, "is not declared"), ({"args": '{"document":"x"}'}, "expected `int`")):
            answer = await pages.post("/schedules", data={**NIGHTLY, "kind": "summarise", **change})
            assert (answer.status_code, said in answer.text) == (422, True)
    assert await store.schedules() == []


async def test_approvals_are_answered_once_with_a_note(pages: AsyncClient, store: Store) -> None:
    assert "No job waits for an answer." in (await pages.get("/approvals")).text
    job_id = await _ask(store)
    page = (await pages.get("/approvals")).text
    assert "over 500" in page
    answer = {"name": "over 500", "verdict": "deny", "note": "the customer changed their mind"}
    assert (await pages.post(f"/approvals/{job_id}/answer", data={**answer, "verdict": "maybe"})).status_code == 400
    for path in (f"/approvals/{job_id}/answer", f"/jobs/{job_id}/answer"):
        asked = await pages.post(path, data=answer)
        assert f"Deny &#39;over 500&#39; of job {job_id} with the note" in asked.text
        assert 'name="verdict" value="deny"' in asked.text
    assert (await show(store, job_id)).state is JobState.WAITING
    done = await pages.post(f"/approvals/{job_id}/answer", data=answer | GO)
    assert done.headers["location"] == "/approvals"
    assert (await show(store, job_id)).state is JobState.READY
    page = (await pages.get("/approvals")).text
    assert "denied" in page
    assert "the customer changed their mind" in page
    assert (await pages.post(f"/approvals/{job_id}/answer", data=answer | GO)).status_code == 409


async def test_every_open_question_is_on_some_page(pages: AsyncClient, store: Store) -> None:
    jobs = {str(await _ask(store)) for _ in range(52)}
    first = (await pages.get("/approvals")).text
    [after] = re.findall(r'href="([^"]+)" rel="next"', first)
    rest = (await pages.get(after)).text
    seen = [re.findall(r'id="question-([^"]+)-over 500"', page) for page in (first, rest)]
    assert ([len(ids) for ids in seen], {*seen[0], *seen[1]}) == ([50, 2], jobs)
    assert "No question is left on this page." in (await pages.get("/approvals?page=3")).text
    for bad in ("0", "x", "11", "9" * 30):
        answer = await pages.get("/approvals", params={"page": bad})
        assert (answer.status_code, "must be a number from 1 to 10" in answer.text) == (400, True), bad


async def test_an_entry_with_much_in_it_is_folded(pages: AsyncClient, store: Store) -> None:
    many = {f"setting {number}": number for number in range(40)}
    await Desk(store, "ada").record("change", details={"ticket": 7, "after": many})
    page = (await pages.get("/audit")).text
    shown, _, folded = page.partition("<summary><small>25 more</small></summary>")
    assert "setting 14" in shown
    assert "setting 15" not in shown
    assert "setting 39" in folded


async def test_the_trail_is_filtered_paged_and_says_what_changed(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    assert "No entries yet." in (await pages.get("/audit")).text
    for number in range(60):
        await Desk(store, "ada", "cli").record("note", details={"before": {"state": "dead"}, "after": {"n": number}})
    clock.move(HOUR)
    await Desk(store, "<b>eve", "api 10.0.0.7").record("look", why="curious")
    page = (await pages.get("/audit")).text
    assert "&lt;b&gt;eve" in page
    assert "<del>dead</del>" in page
    [after] = re.findall(r'href="([^"]+)" rel="next"', page)
    older = (await pages.get(after.replace("&amp;", "&"))).text
    assert older.count("<tr id=") == 11
    for query, rows in (("actor=ada", 50), ("action=look", 1), ("source=api", 1), ("since=30m", 1), ("until=2h", 0)):
        assert (await pages.get(f"/audit?{query}")).text.count("<tr id=") == rows, query
    page = (await pages.get("/audit?actor=a+b&since=2h")).text
    assert "perdure audit list --actor=&#39;a b&#39; --since=-2h" in page
    for bad in ("before=x", "since=soon", "before=-1", "job=nobody"):
        assert (await pages.get(f"/audit?{bad}")).status_code in {400, 404}, bad
