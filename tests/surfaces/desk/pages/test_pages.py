"""Overview, queues and kinds: what they show and what their buttons do, on both engines."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import HOSTILE, employ, enqueue, job_in
from tests.support.web.desk_site import desk_site

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.access import Scope
from perdure.domain.operate.statistics import EMPTY, Ending
from perdure.operate.desk import Desk
from perdure.storage.operate.statistics import MINUTE, Counted, Flush
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller
from perdure.surfaces.desk.pages.overview import worst_queues

ONE_SECOND = (*(1 if bucket == 13 else 0 for bucket in range(len(EMPTY))),)


async def count(store: Store, clock: ManualClock, **ends: int) -> None:
    """Count attempts of the minute before the last one."""
    minute = clock.now().replace(second=0, microsecond=0) - 2 * MINUTE
    counts = tuple(
        Counted(
            minute=minute,
            queue="mail",
            kind="send_mail",
            ending=Ending(ending),
            jobs=jobs,
            waited=float(jobs),
            ran=float(jobs),
            waits=tuple(jobs * one for one in ONE_SECOND),
            runs=tuple(jobs * one for one in ONE_SECOND),
        )
        for ending, jobs in ends.items()
    )
    await store.add_statistics(Flush("test", 1, counts))


async def test_the_overview_of_an_empty_database_says_that_all_is_well(pages: AsyncClient) -> None:
    page = (await pages.get("/")).text
    assert "All is well" in page
    assert "nothing needs a person" in page
    assert "No queues yet." in page


async def test_the_overview_begins_with_what_needs_a_person(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    await job_in(JobState.DEAD, store, kind="send_mail", queue="mail")
    await enqueue(store, queue="reports")
    await count(store, clock, succeeded=540, retried=50, died=10)
    page = (await pages.get("/")).text
    assert "2 things need a person" in page
    assert "<b>Queue reports</b> has 1 job and no worker" in page
    assert '<a class="btn" href="/queues/reports">See queue</a>' in page
    assert 'title="550 jobs in 1 h"' in page  # finished
    assert "10 %</p>" in page  # 60 of 600 attempts
    assert "60 failed, 10 died" in page
    assert page.index("need a person") < page.index("Failed attempts") < page.index("Finished and failed, per")


async def test_rows_of_needs_keep_their_ids_while_others_come_and_go(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    """Two workers of one name are lost: each has a row and an id of its own."""
    for _ in range(2):
        await employ(store, name="web 1")
    clock.move(timedelta(minutes=2))
    before = re.findall(r'id="(need-(?!rows)[^"]+)"', (await pages.get("/")).text)
    assert before == ["need-worker-web-1", "need-worker-web-1-2"]
    await job_in(JobState.DEAD, store, kind="send_mail", queue="mail")
    after = re.findall(r'id="(need-(?!rows)[^"]+)"', (await pages.get("/")).text)
    assert len(after) > len(before)
    assert set(before) < set(after)


async def test_the_overview_counts_living_workers_only(pages: AsyncClient, store: Store, clock: ManualClock) -> None:
    await employ(store, name="silent", concurrency=100)
    clock.move(timedelta(minutes=2))
    await employ(store, name="alive", concurrency=7)
    page = re.sub("<[^>]+>", "", (await pages.get("/")).text)
    assert "of 7" in page
    assert "1 worker on 1 host" in page
    assert re.search(r"Workers\s+1\b", page)


async def test_the_overview_of_many_queues_shows_those_without_a_worker_and_the_fullest(store: Store) -> None:
    for number in range(4):
        await employ(store, name=f"w{number}", queues=(f"q{number}",))
        for _ in range(number):
            await enqueue(store, queue=f"q{number}")
    await enqueue(store, queue="stuck")
    queues = await Desk(store, "ada").queues()
    assert [view.name for view in worst_queues(queues, most=3)] == ["stuck", "q3", "q2"]
    assert worst_queues(queues, most=5) == queues


@pytest.mark.parametrize("path", ["/queues", "/queues/mail", "/kinds", "/kinds/send_mail"])
async def test_queues_and_kinds_show_rates_percentiles_and_failures(
    pages: AsyncClient, store: Store, clock: ManualClock, path: str
) -> None:
    await employ(store, queues=("mail",))
    await job_in(JobState.DEAD, store, kind="send_mail", queue="mail")
    await count(store, clock, succeeded=75, died=25)
    page = await pages.get(path)
    assert page.status_code == 200
    assert "25 %" in page.text
    assert re.search(r'title="[01]\.\d+ s"', page.text)
    assert "mail" in page.text


async def test_pausing_asks_first_then_pauses_with_the_reason_and_resumes(pages: AsyncClient, store: Store) -> None:
    await enqueue(store, queue="mail", kind="send_mail")
    for what, name in (("queues", "mail"), ("kinds", "send_mail")):
        asked = await pages.post(f"/{what}/{name}/pause")
        assert asked.status_code == 200
        assert f"Pause the {what[:-1]} {name}?" in asked.text
        assert await store.pauses() == []
        done = await pages.post(f"/{what}/{name}/pause", data={"confirmed": "yes", "why": "the provider is down"})
        assert (done.status_code, done.headers["location"]) == (303, f"/{what}/{name}")
        [pause] = await store.pauses()
        assert (pause.why, pause.actor) == ("the provider is down", "ada")
        page = (await pages.get(f"/{what}/{name}")).text
        assert "the provider is down" in page
        assert f"{name} is paused. Running jobs continue." in page
        assert f"{name} is paused." not in (await pages.get(f"/{what}/{name}")).text  # said once
        await pages.post(f"/{what}/{name}/resume", data={"back": f"/{what}"})
        assert await store.pauses() == []


async def test_the_overview_shows_what_is_wrong_with_the_database(store: Store) -> None:
    """The clock of a test's database stands months behind this machine's: the desk says so, and what to do."""
    async with AsyncClient(transport=ASGITransport(desk_site(store)), base_url="http://127.0.0.1") as client:
        page = await client.get("/")
    assert "All is well" not in page.text
    assert re.search(r"the database is \d+ d( \d+ h)? behind this machine", re.sub("<[^>]+>", "", page.text))
    assert "run NTP on both" in page.text


async def test_a_caller_who_may_only_read_is_refused_and_sees_why(store: Store) -> None:
    await enqueue(store, queue="mail")
    reader = Caller(name="eve", scope=Scope.READ, source="desk")
    async with AsyncClient(transport=ASGITransport(desk_site(store, caller=reader)), base_url="http://d") as pages:
        page = (await pages.get("/queues")).text
        assert 'disabled title="needs the scope operate; yours is read"' in page
        for path, scope in (("/schedules", "operate"), ("/alerts", "operate"), ("/webhooks", "admin")):
            form = (await pages.get(path, params={"form": "new"})).text
            assert f'<button class="btn main" disabled title="needs the scope {scope}"' in form
        refused = await pages.post("/queues/mail/pause", data={"confirmed": "yes"})
        assert refused.status_code == 403
        assert "This needs the scope operate." in refused.text
    assert await store.pauses() == []
    async with AsyncClient(transport=ASGITransport(desk_site(store, read_only=True)), base_url="http://d") as pages:
        assert (await pages.post("/queues/mail/pause", data={"confirmed": "yes"})).status_code == 403


async def test_names_may_be_anything(pages: AsyncClient, store: Store) -> None:
    names = [name for name in HOSTILE if name.strip() and "\n" not in name]
    names += ["a/b c?d#e%f", "../jobs", "<script>alert(1)</script>"]
    for name in names:
        await enqueue(store, queue=name, kind=name)
    page = (await pages.get("/queues")).text
    for link in re.findall(r'class="name" href="([^"]+)"', page):
        answer = await pages.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200, link
        assert "<script>alert" not in answer.text
    assert (await pages.get("/queues/nowhere")).status_code == 404
    assert (await pages.get("/kinds/nothing")).status_code == 404


async def test_a_command_leads_back_to_pages_of_this_desk_only(pages: AsyncClient, store: Store) -> None:
    await enqueue(store, queue="mail")
    for foreign in ("https://evil.example", "//evil.example", "/\\evil.example"):
        answer = await pages.post("/queues/mail/resume", data={"back": foreign})
        assert answer.headers["location"] == "/queues/mail"
