"""Every command that a page offers to copy can be pasted into a shell: it parses, and names stay one word."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from html import unescape
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import enqueue, job_in
from tests.support.web.desk_pages import paths
from tests.support.web.desk_site import desk_site
from typer.main import get_command

from perdure.app.connect import store_for
from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.operate.records import Remedy
from perdure.storage.port import Store
from perdure.surfaces.cli.commands import command_line

HOSTILE = "x; touch '$HOME' \"`id`\" & echo"
_OFFERED = re.compile(r'<code>(perdure [^<]*)</code>|data-cli="(perdure [^"]*)"')


def lines_of(page: str) -> set[str]:
    """The commands that a page offers."""
    return {unescape(shown or asked) for shown, asked in _OFFERED.findall(page)}


def parsed(line: str) -> dict[str, Any]:
    """What a command line would be called with; raises what click raises for one that is not understood."""
    program, *words = shlex.split(line)
    assert program == "perdure"
    return _parsed(get_command(command_line()), words)


def _parsed(command: Any, words: Sequence[str]) -> dict[str, Any]:
    context = command.make_context("perdure", list(words), resilient_parsing=False)
    rest = [*context._protected_args, *context.args]
    if not hasattr(command, "commands") or not rest:
        return dict(context.params)
    return _parsed(command.commands[rest[0]], rest[1:])


async def test_every_command_that_a_page_offers_is_one(shop: tuple[str, dict[str, str]]) -> None:
    url, names = shop
    store = store_for(url)
    await store.open()
    try:
        async with AsyncClient(transport=ASGITransport(desk_site(store)), base_url="http://127.0.0.1") as pages:
            more = [f"/bulk/plan?action={action}&q=state:dead" for action in ("requeue", "purge", "delete")]
            more += ["/bulk/plan?action=mark&mark=seen&q=", "/bulk/plan?action=reschedule&q=kind:charge_card"]
            more += [f"/jobs/{names['job']}", "/jobs?q=error~it's", "/dead?q=kind:charge_card"]
            seen = set[str]()
            for path in (*paths(names).values(), *more):
                seen |= lines_of((await pages.get(path)).text)
        seen |= {need.cli for need in await Desk(store, "ada").attention() if need.cli}
    finally:
        await store.close()
    seen |= {Remedy(each, "x y", "").cli for each in ("resume", "close_breaker", "run_now", "requeue", "loud")}
    assert len(seen) > 15
    for line in sorted(seen):
        parsed(line)
    assert any(line.startswith("perdure dead purge --search") for line in seen)
    assert any(line.startswith("perdure jobs mark --as seen") for line in seen)


async def test_every_button_that_changes_something_asks_and_offers_its_command(
    shop: tuple[str, dict[str, str]],
) -> None:
    url, names = shop
    store = store_for(url)
    await store.open()
    labels = set[str]()
    try:
        async with AsyncClient(transport=ASGITransport(desk_site(store)), base_url="http://127.0.0.1") as pages:
            for path in paths(names).values():
                page = (await pages.get(path)).text
                for form in re.findall(r'<form class="command" .*?</form>', page, re.DOTALL):
                    assert re.search(r'data-ask="[^"]+"', form), (path, form)
                    assert re.search(r'data-cli="perdure [^"]+"', form), (path, form)
                    labels.add(re.sub("<[^>]*>", "", form).strip())
    finally:
        await store.close()
    assert {"Resume…", "Pause…", "Trigger…", "Delete…", "Close…"} <= labels


@pytest.mark.parametrize(
    ("path", "form", "line"),
    [
        (
            "/schedules",
            {"name": "nightly", "kind": "report", "expression": "0 2 * * *", "tz": "Europe/Berlin", "overlap": "queue"},
            "perdure schedules create nightly --kind report --cron '0 2 * * *' --tz Europe/Berlin --overlap queue",
        ),
        (
            "/schedules",
            {"name": "often", "kind": "ping", "expression": "@every 90s", "args": '{"n": 1}', "why": "a test"},
            "perdure schedules create often --kind ping --every 90s --args '{\"n\": 1}' --why 'a test'",
        ),
        (
            "/alerts/rules",
            {"name": "s", "when": "wait_p95", "to": "ops, mail", "limit": "5m", "quiet": "1:00-7:00; 12:00-1:00"},
            "perdure alerts add s --when wait_p95 --to ops --to mail --limit 5m --quiet 1:00-7:00 --quiet 12:00-1:00",
        ),
        (
            "/alerts/rules",
            {"name": "quietly", "when": "job_died", "to": "ops", "recovery": "no", "kind": "pay"},
            "perdure alerts add quietly --when job_died --to ops --kind pay --no-recovery",
        ),
    ],
)
async def test_a_form_shows_its_command_and_changes_nothing(
    pages: AsyncClient, store: Store, path: str, form: dict[str, str], line: str
) -> None:
    shown = await pages.post(path, data={**form, "show": "command"})
    assert shown.status_code == 200
    assert line in lines_of(shown.text)
    assert f'value="{form["name"]}"' in shown.text, "what was typed is kept"
    assert parsed(line)["name"] == form["name"]
    assert (await Desk(store, "ada").audit()).entries == ()


async def test_without_the_app_the_command_that_enqueues_names_it(pages: AsyncClient) -> None:
    offered = lines_of((await pages.get("/enqueue?kind=greet")).text)
    assert any(line.startswith("perdure enqueue greet ") and "--app your_module:app" in line for line in offered)


async def test_forms_with_a_secret_show_a_command_without_it(pages: AsyncClient) -> None:
    secret = {"secret": "0123456789abcdef"}
    hook = await pages.post("/webhooks", data={"name": "crm", "url": "ftp://crm", "events": "job.died", **secret})
    assert "perdure webhooks save crm ftp://crm --event job.died --secret-env VARIABLE" in lines_of(hook.text)
    channel = await pages.post("/alerts/channels", data={"name": "ops", "address": "nonsense", **secret})
    assert "perdure alerts channels add ops --address - --secret env:VARIABLE" in lines_of(channel.text)
    for page in (hook, channel):
        assert page.status_code == 422
        assert secret["secret"] not in page.text
        for line in lines_of(page.text):
            parsed(line)


async def test_a_name_cannot_slip_a_command_into_what_is_copied(pages: AsyncClient, store: Store) -> None:
    await job_in(JobState.DEAD, store, queue=HOSTILE, kind=HOSTILE, tags=(HOSTILE,))
    await enqueue(store, queue=HOSTILE, kind=HOSTILE)
    found = {line for path in ("/queues", "/kinds") for line in lines_of((await pages.get(path)).text)}
    name = re.search(r'class="name" href="(/queues/[^"]+)"', (await pages.get("/queues")).text)
    assert name is not None
    found |= lines_of((await pages.get(unescape(name[1]))).text)
    found |= {need.cli for need in await Desk(store, "ada").attention() if need.cli}
    told = [parsed(line) for line in sorted(found)]
    assert sum(HOSTILE in shown.values() for shown in told) >= 3
    assert all("touch" not in str(value) or value == HOSTILE for shown in told for value in shown.values())


async def test_links_to_searches_find_what_they_name(pages: AsyncClient, store: Store) -> None:
    job = await job_in(JobState.DEAD, store, queue=HOSTILE, kind=HOSTILE, tags=(HOSTILE,))
    page = (await pages.get(f"/jobs/{job}")).text
    places = {unescape(link) for link in re.findall(r'href="(/(?:queues|kinds)/[^"]+|/jobs\?q=tag[^"]+)"', page)}
    assert len(places) == 3
    for place in list(places):
        answer = await pages.get(place)
        assert answer.status_code == 200, place
        places |= {
            unescape(link) for link in re.findall(r'href="(/(?:jobs|dead)\?q=(?:queue|kind)[^"]+)"', answer.text)
        }
    searches = [place for place in places if "?q=" in place]
    assert len(searches) == 5
    for search in searches:
        answer = await pages.get(search)
        assert answer.status_code == 200, search
        assert "row" in answer.text
        assert str(job) in answer.text or "group-" in answer.text, search


@pytest.mark.parametrize("name", ["a/b c?d#e%f", "../jobs", HOSTILE])
async def test_a_page_leads_back_to_itself_for_every_name(pages: AsyncClient, store: Store, name: str) -> None:
    await enqueue(store, queue=name)
    link = re.search(r'class="name" href="(/queues/[^"]+)"', (await pages.get("/queues")).text)
    assert link is not None
    page = (await pages.get(unescape(link[1]))).text
    week = re.search(r'href="([^"]+span=7d)"', page)
    assert week is not None
    assert unescape(week[1]) == f"{unescape(link[1])}?span=7d"
    asked = (await pages.post(f"{unescape(link[1])}/pause")).text
    again = re.search(r'method="post" action="(/queues/[^"]+)"', asked)
    assert again is not None
    await pages.post(unescape(again[1]), data={"confirmed": "yes"})
    [pause] = await store.pauses()
    assert pause.queue == name


async def test_commands_that_end_or_repeat_work_ask_first(pages: AsyncClient, store: Store) -> None:
    dead, job = await job_in(JobState.DEAD, store), await enqueue(store)
    for path, data in (
        (f"/jobs/{job}/cancel", {}),
        (f"/jobs/{dead}/requeue", {}),
        (f"/jobs/{dead}/delete", {}),
        ("/jobs", {"action": "cancel", "id": str(job)}),
    ):
        asked = await pages.post(path, data=data)
        assert asked.status_code == 200, path
        assert 'name="confirmed"' in asked.text, path
    assert "Cancel 1 job?" in asked.text
    assert f'name="id" value="{job}"' in asked.text
    assert [entry.action for entry in (await Desk(store, "ada").audit()).entries] == []
    for one in (job, dead):
        page = (await pages.get(f"/jobs/{one}")).text
        forms = re.findall(r'<form class="command" .*?</form>', page, re.DOTALL)
        assert forms
        assert all("data-ask=" in form and 'name="confirmed"' not in form for form in forms)
