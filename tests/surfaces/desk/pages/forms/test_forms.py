"""Forms that act: enqueue, mark, emit, pause, tokens; each audited, refused with what was typed, on both engines."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import HOUR, apply, enqueue, job_in, show, start
from tests.support.web import desk_shop
from tests.support.web.desk_site import desk_site

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.access import Scope
from perdure.domain.operate.audit import AuditEntry
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.access.caller import Caller

WHY = "the night shift asked"
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'"
CHARGE = {"kind": "charge_card", "args": '{"order": 7}', "why": WHY}


@pytest.fixture
async def shop_pages(store: Store) -> AsyncIterator[AsyncClient]:
    """The pages of a desk that knows the shop's code."""
    async with AsyncClient(transport=ASGITransport(desk_site(store, app=desk_shop.app)), base_url="http://d") as client:
        yield client


async def last_entry(store: Store) -> AuditEntry:
    return (await Desk(store, "ada").audit(limit=1)).entries[0]


async def test_a_job_is_enqueued_by_a_form_and_the_reason_is_kept(shop_pages: AsyncClient, store: Store) -> None:
    form = (await shop_pages.get("/enqueue", params={"kind": "charge_card"})).text
    assert 'value="charge_card"' in form
    assert "<code>order</code>, <code>gateway</code> (optional)" in form
    made = await shop_pages.post(
        "/enqueue", data={**CHARGE, "queue": "slow", "delay": "2h", "priority": "2", "ref": "o-7"}
    )
    assert made.status_code == 303
    [job] = await store.jobs(JobFilter(), Page(5))
    assert made.headers["location"] == f"/jobs/{job.id}"
    assert (job.kind, job.queue, job.priority, job.ref) == ("charge_card", "slow", 2, "o-7")
    assert job.state is JobState.SCHEDULED
    entry = await last_entry(store)
    assert (entry.action, entry.why, entry.actor) == ("enqueue", WHY, "ada")


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"args": '{"order": "x"}'}, 422, "argument order"),
        ({"args": "{\n"}, 422, "is not JSON"),
        ({"args": "[]"}, 422, "must be a JSON object"),
        ({"args": '{"order": 1, "ordr": 2}'}, 422, "argument ordr"),
        ({"kind": HOSTILE}, 404, "charge_card"),
        ({"kind": ""}, 422, "kind is missing"),
        ({"delay": "soon"}, 422, "delay"),
        ({"priority": "12"}, 422, "number from 0 to 9"),
        ({"why": "x" * 501}, 422, "501 characters"),
    ],
)
async def test_a_refused_form_keeps_what_was_typed_and_stores_nothing(
    shop_pages: AsyncClient, store: Store, wrong: dict[str, str], status: int, said: str
) -> None:
    typed = {**CHARGE, "queue": "<img src=x>", "ref": "kept-ref", **wrong}
    answer = await shop_pages.post("/enqueue", data=typed)
    assert answer.status_code == status
    alert = re.search(r'role="alert">(.*?)</p>', answer.text, re.DOTALL)
    assert alert is not None
    assert said in unescape(alert[1])
    assert "<img" not in answer.text
    assert 'value="kept-ref"' in answer.text
    assert "&lt;img src=x" in answer.text
    assert 'aria-invalid="true"' in answer.text or "why" in wrong
    assert await store.jobs(JobFilter(), Page(5)) == []
    assert (await Desk(store, "ada").audit()).entries == ()


async def test_the_command_of_a_form_is_shown_without_doing_it(shop_pages: AsyncClient, store: Store) -> None:
    for path, fields, words in (
        ("/enqueue", {**CHARGE, "args": '{"order": "a b"}'}, ["enqueue", "charge_card", "--args", '{"order": "a b"}']),
        ("/emit", {"event": "a; b", "payload": "1"}, ["emit", "a; b", "--payload", "1"]),
        ("/pause", {"kind": "x y", "until": "2h"}, ["pause", "--kind", "x y", "--until", "+2h"]),
        ("/tokens", {"name": "o'neil", "scope": "read"}, ["token", "create", "--name", "o'neil", "--scope", "read"]),
    ):
        page = (await shop_pages.post(path, data={**fields, "show": "command"})).text
        [line] = re.findall(r"<code>(perdure [^<]*)</code>", page)
        assert shlex.split(unescape(line))[1 : 1 + len(words)] == words
    assert (await Desk(store, "ada").audit()).entries == ()


async def test_without_the_app_the_form_says_where_to_enqueue(pages: AsyncClient, store: Store) -> None:
    page = await pages.get("/enqueue")
    assert page.status_code == 200
    assert "does not know the app" in page.text
    assert "/enqueue" not in (await pages.get("/jobs")).text
    assert (await pages.post("/enqueue", data=CHARGE)).status_code == 409
    assert await store.jobs(JobFilter(), Page(5)) == []


async def test_a_job_is_marked_and_its_mark_removed(pages: AsyncClient, store: Store) -> None:
    job = await enqueue(store)
    assert f"perdure jobs mark {job} --as seen" in (await pages.get(f"/jobs/{job}")).text
    await pages.post(f"/jobs/{job}/mark", data={"mark": "<img src=x>", "why": WHY})
    assert (await show(store, job)).mark == "<img src=x>"
    assert "<img" not in (await pages.get(f"/jobs/{job}")).text
    entry = await last_entry(store)
    assert (entry.action, entry.why, entry.job_id) == ("mark", WHY, job)
    await pages.post(f"/jobs/{job}/mark", data={"mark": ""})
    assert (await show(store, job)).mark is None
    assert (await pages.post(f"/jobs/{job}/mark", data={"mark": "x" * 51})).status_code == 400


async def test_jobs_leads_to_the_dry_runs_of_reschedule_mark_and_delete(pages: AsyncClient, store: Store) -> None:
    dead = await job_in(JobState.DEAD, store)
    page = (await pages.get("/jobs", params={"q": "kind:greet"})).text
    links = [unescape(link) for link in re.findall(r'href="(/bulk/plan[^"]+)"', page)]
    actions = {re.findall(r"action=(\w+)", link)[0]: link for link in links}
    assert {"reschedule", "mark", "delete"} <= set(actions)
    assert "Wait from now" in (await pages.get(actions["reschedule"])).text
    assert "cannot be undone" in (await pages.get(actions["delete"])).text
    asked = (await pages.get(actions["mark"])).text
    assert 'name="mark"' in asked
    assert 'name="token"' not in asked
    plan = (await pages.get(actions["mark"], params={"action": "mark", "q": "state:dead", "mark": "seen"})).text
    assert "perdure jobs mark --as seen --search state:dead" in plan
    [token] = re.findall(r'name="token" value="([^"]+)"', plan)
    started = await pages.post("/bulk", data={"token": unescape(token), "why": WHY})
    async for _ in Desk(store, "ada").work_on_bulk(started.headers["location"].removeprefix("/bulk/")):
        pass
    assert (await show(store, dead)).mark == "seen"
    cleared = (await pages.get("/bulk/plan", params={"action": "mark", "q": "state:dead", "mark": ""})).text
    assert "perdure jobs mark --clear --search state:dead" in cleared


async def test_jobs_offers_for_all_that_match_what_their_states_allow(pages: AsyncClient) -> None:
    allowed = {
        "": {"requeue", "run_now", "cancel", "reschedule", "mark", "purge", "delete"},
        "state:running": {"cancel", "mark", "delete"},
        "state:ready,running,paused": {"cancel", "mark", "delete"},
        "state:waiting,scheduled": {"run_now", "cancel", "reschedule", "mark", "delete"},
        "state:dead": {"requeue", "mark", "purge", "delete"},
        "state:dead,running": {"mark", "delete"},
    }
    for states, actions in allowed.items():
        page = (await pages.get("/jobs", params={"q": f"kind:greet {states}"})).text
        links = [unescape(link) for link in re.findall(r'href="(/bulk/plan[^"]+)"', page)]
        assert {re.findall(r"action=(\w+)", link)[0] for link in links} == actions, states
        for link in links:
            assert (await pages.get(link)).status_code == 200


async def test_an_event_is_emitted_once_and_wakes_who_waits(pages: AsyncClient, store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event="paid:7"), None))
    assert 'href="/emit?event=paid%3A7"' in (await pages.get("/flows")).text
    refused = await pages.post("/emit", data={"event": "paid:7", "payload": "{oops", "why": WHY})
    assert refused.status_code == 422
    assert "payload is not JSON" in refused.text
    assert "{oops" in refused.text
    done = await pages.post("/emit", data={"event": "paid:7", "payload": '{"ok": true}', "why": WHY})
    assert done.status_code == 303
    assert "1+job" in done.headers["set-cookie"]
    assert (await show(store, claim.job_id)).state is JobState.READY
    entry = await last_entry(store)
    assert (entry.action, entry.why) == ("emit", WHY)
    again = await pages.post("/emit", data={"event": "paid:7"})
    assert "emitted+before" in again.headers["set-cookie"]
    assert (await pages.post("/emit", data={"event": ""})).status_code == 422


async def test_jobs_are_paused_by_arguments_and_until_a_time(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    await start(store, kind="mail")
    assert 'href="/pause?kind=mail"' in (await pages.get("/kinds/mail")).text
    for wrong in ({"until": "soon"}, {"until": "2001-01-01"}, {"args": "{}"}, {"args": "1"}, {"kind": ""}):
        answer = await pages.post("/pause", data={"kind": "mail", "args": '{"to": "x"}', "until": "2h", **wrong})
        assert answer.status_code == 422, wrong
        assert 'role="alert"' in answer.text
    assert await store.pauses() == []
    now = await store.now()
    await pages.post("/pause", data={"kind": "mail", "args": '{"to": "<b>"}', "until": "2h", "why": WHY})
    [pause] = await store.pauses()
    assert (pause.kind, pause.queue, pause.args, pause.why) == ("mail", None, '{"to":"<b>"}', WHY)
    assert pause.until is not None
    assert timedelta(0) <= pause.until - now - 2 * HOUR < timedelta(minutes=1)
    assert (await last_entry(store)).why == WHY
    assert "<b>&#34;" not in (await pages.get("/gates")).text
    await pages.post("/pause", data={"kind": "mial"})
    said = "Running jobs continue. But no job or schedule is of kind 'mial' yet; did you mean 'mail'?"
    assert said in unescape((await pages.get("/gates")).text)


async def test_a_token_is_shown_once_and_revoked_after_a_question(pages: AsyncClient, store: Store) -> None:
    desk = Desk(store, "ada")
    made = await pages.post("/tokens", data={"name": HOSTILE[:28], "scope": "operate", "expires": "30d", "why": WHY})
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    [secret] = re.findall(r'class="copyable"><code>([^<]+)</code>', made.text)
    assert await desk.check_token(secret) is not None
    assert (await last_entry(store)).why == WHY
    page = (await pages.get("/tokens")).text
    assert secret not in page
    assert "<img" not in made.text + page
    taken = await pages.post("/tokens", data={"name": HOSTILE[:28], "scope": "operate"})
    assert taken.status_code == 409
    assert (await pages.post("/tokens", data={"name": "x", "scope": "root"})).status_code == 422
    assert (await pages.post("/tokens", data={"name": "x", "scope": "read", "expires": "soon"})).status_code == 422
    [token] = await desk.tokens()
    assert 'name="confirmed"' in (await pages.post(f"/tokens/{token.id}/revoke")).text
    assert await desk.check_token(secret) is not None
    await pages.post(f"/tokens/{token.id}/revoke", data={"confirmed": "yes", "why": "gone"})
    assert await desk.check_token(secret) is None
    assert (await last_entry(store)).why == "gone"


async def test_only_admins_see_tokens_and_forms_carry_the_token_against_forgery(store: Store) -> None:
    operator = Caller(name="eve", scope=Scope.OPERATE, source="desk", csrf="t0ken")
    site = desk_site(store, caller=operator, app=desk_shop.app)
    async with AsyncClient(transport=ASGITransport(site), base_url="http://d") as pages:
        assert 'href="/tokens"' not in (await pages.get("/")).text
        for path in ("/enqueue", "/emit", "/pause"):
            main = (await pages.get(path)).text.partition("<main")[2]
            assert 'name="_csrf" value="t0ken"' in main, path
