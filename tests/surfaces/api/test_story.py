"""What an operator does over HTTP, on both engines."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.support.builders.jobs import apply, job_in, start
from tests.support.web.http_site import client_of, token_of

from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import parked
from perdure.operate.desk import Desk
from perdure.surfaces.server.site import Site

JOBS = "/api/v1/jobs"
NONE = "01a1eec6-3e3b-74f1-ae9f-6ef3fe401207"


async def enqueue(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}, **more})
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()["job"]
    return document


async def test_a_job_is_enqueued_by_name_with_checked_arguments(client: httpx.AsyncClient) -> None:
    made = await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}, "ref": "A/1", "tags": ["t"]})
    assert made.headers["location"] == f"{JOBS}/{made.json()['id']}"
    assert made.json()["job"]["args"] == {"name": "x"}
    by_ref = await client.get(f"{JOBS}/A%2F1")
    assert by_ref.json()["job"]["id"] == made.json()["id"]
    wrong = await client.post(JOBS, json={"kind": "greet", "args": {"nam": "x"}})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:perdure:problem:argument")
    assert (await client.post(JOBS, json={"kind": "none"})).status_code == 404
    for args, field in (({"name": 7}, "args.name"), ({}, "args.name"), ({"name": "x", "nam": 1}, "args.nam")):
        refused = await client.post(JOBS, json={"kind": "greet", "args": args})
        assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_an_enqueued_job_shows_no_secret(client: httpx.AsyncClient) -> None:
    """Also the one that has the id already, which somebody else has enqueued."""
    body = {"kind": "greet", "args": {"name": "https://ada:hunter2@example.com/"}, "meta": {"token": "hunter2"}}
    for intake in ("new", "existing"):
        made = await client.post(JOBS, json={**body, "id": NONE, "delay": "1h"})
        assert (made.status_code, made.json()["intake"]) == (201, intake)
        assert "hunter2" not in made.text


async def test_groups_of_only_the_newest_dead_letters_are_reported_as_such(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await site.backing.store()
    for _ in range(2):
        await job_in(JobState.DEAD, store)
    found = await client.get("/api/v1/failure-groups", params={"queue": "default"})
    assert (len(found.json()["groups"]), found.json()["only_newest"]) == (1, None)
    monkeypatch.setattr("perdure.engines.shared.operate.failure_groups.JOBS_COUNTED_PER_GROUP", 1)
    found = await client.get("/api/v1/failure-groups", params={"queue": "default"})
    assert (found.json()["groups"][0]["jobs"], found.json()["only_newest"]) == (1, 1)
    page = await client.get("/dead", params={"q": "queue:default"}, headers={"accept": "text/html"})
    assert "dead letters that match were looked at" in page.text


async def test_enqueue_needs_the_app(site: Site) -> None:
    async with Site(site.backing.url) as bare, client_of(bare, await token_of(site, "operate")) as client:
        answer = await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:perdure:problem:no-app")


async def test_a_list_is_paged_by_cursors_that_belong_to_it(client: httpx.AsyncClient) -> None:
    made = [(await enqueue(client))["id"] for _ in range(5)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2, "kind": "greet"}
    while True:
        page = (await client.get(JOBS, params=query)).json()
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert seen == made[::-1]
    other = await client.get(JOBS, params={**query, "kind": "send"})
    assert (other.status_code, other.json()["field"]) == (422, "cursor")
    assert "another list" in other.json()["detail"]
    trail = await client.get("/api/v1/audit", params={"cursor": query["cursor"]})
    assert (trail.status_code, trail.json()["field"]) == (422, "cursor")


async def test_one_job_with_all_that_is_known_of_it(client: httpx.AsyncClient, site: Site) -> None:
    dead = await job_in(JobState.DEAD, await site.backing.store())
    for part, member in {
        "attempts": "attempts",
        "steps": "steps",
        "children": "jobs",
        "events": "events",
        "log": "lines",
        "costs": "costs",
        "audit": "entries",
        "why": "answer",
    }.items():
        answer = await client.get(f"{JOBS}/{dead}/{part}")
        assert answer.status_code == 200, answer.text
        assert member in answer.json()
        assert (await client.get(f"{JOBS}/{NONE}/{part}")).status_code == (200 if part == "audit" else 404)
    events = (await client.get(f"{JOBS}/{dead}/events")).json()["events"]
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    assert {"created", "dead"} <= {event["event"] for event in events}
    waiting = await enqueue(client, delay="1h")
    plan = (await client.get(f"{JOBS}/{waiting['id']}/preview", params={"limit": 3})).json()
    assert [step["attempt"] for step in plan["plan"]] == [1, 2, 3]


async def test_two_operators_on_one_job(client: httpx.AsyncClient) -> None:
    """The second one is told that the job is not what they saw: by If-Match, by revision, and by the state itself."""
    job = await enqueue(client, delay="1h")
    path = f"{JOBS}/{job['id']}"
    seen = (await client.get(path)).headers["etag"]
    first = await client.post(f"{path}/cancel", json={"why": "wrong"}, headers={"if-match": seen})
    assert (first.status_code, first.json()["job"]["state"]) == (200, "cancelled")
    assert first.headers["etag"] != seen
    second = await client.post(f"{path}/run_now", headers={"if-match": seen})
    assert (second.status_code, second.json()["type"]) == (412, "urn:perdure:problem:changed")
    third = await client.post(f"{path}/requeue", json={"revision": seen.strip('"')})
    assert third.status_code == 409
    assert (await client.post(f"{path}/cancel")).status_code == 409
    assert (await client.get(path)).json()["job"]["state"] == "cancelled"
    again = await client.post(f"{path}/requeue", headers={"if-match": first.headers["etag"]})
    assert again.json()["job"]["state"] == "ready"


async def test_of_several_commands_at_once_on_one_version_only_one_is_obeyed(client: httpx.AsyncClient) -> None:
    job = f"{JOBS}/{(await enqueue(client, delay='1h'))['id']}"
    schedule = "/api/v1/schedules/nightly"
    made = {"kind": "greet", "args": {"name": "n"}, "cron": "0 3 * * *"}
    tags = [(await client.get(job)).headers["etag"], (await client.put(schedule, json=made)).headers["etag"]]
    marked = await asyncio.gather(
        *(client.post(f"{job}/mark", json={"mark": f"m{n}"}, headers={"if-match": tags[0]}) for n in range(4))
    )
    assert sorted(answer.status_code for answer in marked) == [200, 412, 412, 412]
    replaced = await asyncio.gather(
        *(client.put(schedule, json={**made, "cron": f"{n} 4 * * *"}, headers={"if-match": tags[1]}) for n in range(4))
    )
    assert sorted(answer.status_code for answer in replaced) == [200, 412, 412, 412]


async def test_of_two_names_of_one_job_only_one_is_obeyed_for_a_version(client: httpx.AsyncClient) -> None:
    job = await enqueue(client, delay="1h", ref="order 7")
    paths = (f"{JOBS}/{job['id']}", f"{JOBS}/order%207", f"{JOBS}/{job['id'].upper()}")
    tag = (await client.get(paths[0])).headers["etag"]
    marked = await asyncio.gather(
        *(
            client.post(f"{path}/mark", json={"mark": f"m{n}"}, headers={"if-match": tag})
            for n, path in enumerate(paths)
        )
    )
    assert sorted(answer.status_code for answer in marked) == [200, 412, 412]


async def test_every_command_on_one_job_and_on_several(client: httpx.AsyncClient) -> None:
    job = await enqueue(client, delay="1h")
    path = f"{JOBS}/{job['id']}"
    soon = (datetime.now(UTC) + timedelta(hours=2)).isoformat()  # noqa: TID251 - of this machine will do
    steps: list[tuple[str, dict[str, Any], str | None]] = [
        ("reschedule", {"run_at": soon}, "scheduled"),
        ("mark", {"mark": "seen"}, "scheduled"),
        ("run_now", {}, "ready"),
        ("cancel", {"why": "enough"}, "cancelled"),
        ("requeue", {}, "ready"),
        ("delete", {}, None),
    ]
    for command, body, state in steps:
        answer = await client.post(f"{path}/{command}", json=body)
        assert answer.status_code == 200, (command, answer.text)
        after = answer.json()["job"]
        assert (None if after is None else after["state"]) == state
    ids = [(await enqueue(client))["id"] for _ in range(3)]
    dry = await client.post("/api/v1/commands/cancel", json={"ids": [*ids, NONE], "dry_run": True})
    assert (dry.json()["ids"], dry.json()["not_found"]) == (ids, [NONE])
    done = await client.post("/api/v1/commands/cancel", json={"ids": ids, "why": "all"})
    assert done.json()["ids"] == ids
    purged = await client.post("/api/v1/commands/purge", json={"ids": ids})
    assert purged.json()["ids"] == ids
    assert (await client.post("/api/v1/commands/purge", json={"ids": ids})).status_code == 404
    assert (await client.post("/api/v1/commands/explode", json={"ids": ids})).status_code == 404
    entries = (await client.get("/api/v1/audit", params={"action": "cancel", "actor": "test admin"})).json()["entries"]
    assert {entry["why"] for entry in entries} == {"enough", "all"}
    assert all(entry["source"] == "api 127.0.0.1" for entry in entries)


async def test_a_question_that_a_job_does_not_ask_is_answered_only_ahead(client: httpx.AsyncClient, site: Site) -> None:
    store = await site.backing.store()
    claim = await start(store)
    event = Awaits(event=approval_event(claim.job_id, "refund"))
    await apply(store, parked(claim, Reason.AWAITING_EVENT, None, event, None))
    path = f"{JOBS}/{claim.job_id}/approvals"
    wrong = await client.post(f"{path}/refnd", json={"approved": True})
    assert (wrong.status_code, "does not ask 'refnd'" in wrong.json()["detail"]) == (409, True)
    assert (await client.post(f"{path}/later", json={"approved": True, "ahead": True})).status_code == 200
    assert (await client.post(f"{path}/refund", json={"approved": False})).json()["approved"] is False


async def test_a_bulk_command_is_planned_confirmed_and_done(client: httpx.AsyncClient, site: Site) -> None:
    for _ in range(3):
        await enqueue(client, delay="1h")
    plan = await client.post("/api/v1/bulk/plan", json={"action": "cancel", "filter": {"kind": "greet"}})
    assert (plan.json()["jobs"], plan.json()["able"]) == (3, 3)
    started = await client.post("/api/v1/bulk", json={"token": plan.json()["token"], "why": "clean up"})
    assert started.status_code == 202
    where = started.headers["location"]
    async for _ in Desk(await site.backing.store(), "test").work_on_bulk(started.json()["id"]):
        pass
    shown = (await client.get(where)).json()
    assert (shown["state"], shown["done"], shown["why"]) == ("done", 3, "clean up")
    assert (await client.get("/api/v1/bulk")).json()["bulk"][0]["id"] == shown["id"]
    assert (await client.post("/api/v1/bulk", json={"token": "x"})).status_code == 409


async def test_schedules_are_made_paused_triggered_and_deleted(client: httpx.AsyncClient) -> None:
    path = "/api/v1/schedules/nightly%2Freport"
    body = {"kind": "greet", "cron": "0 3 * * *", "args": {"name": "n"}}
    made = await client.put(path, json=body, headers={"if-none-match": "*"})
    assert (made.status_code, made.json()["schedule"]["args"]) == (200, {"name": "n"})
    assert (await client.put(path, json=body, headers={"if-none-match": "*"})).status_code == 412
    stale = made.headers["etag"]
    assert (await client.post(f"{path}/pause", headers={"if-match": stale})).json()["next_at"] is None
    assert (await client.put(path, json=body, headers={"if-match": stale})).status_code == 412
    assert (await client.post(f"{path}/resume")).status_code == 200
    assert (await client.post(f"{path}/resume")).status_code == 409
    fire = await client.post(f"{path}/trigger", json={"why": "now"})
    assert (fire.status_code, fire.json()["cause"]) == (201, "hand")
    assert len((await client.get(f"{path}/next", params={"limit": 7})).json()["times"]) == 7
    assert len((await client.get(f"{path}/past")).json()["fires"]) == 1
    past = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-04T00:00:00Z"}
    assert (await client.post(f"{path}/backfill", json={**past, "dry_run": True})).json()["times"] == 3
    assert len((await client.post(f"{path}/backfill", json=past)).json()["fires"]) == 3
    assert [one["view"]["schedule"]["name"] for one in (await client.get("/api/v1/schedules")).json()["schedules"]] == [
        "nightly/report"
    ]
    assert (await client.delete(path)).status_code == 204
    assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cron": "* * * * * * * *"}, "expression"),
        ({"cron": "0-99999999999999999999 * * * *"}, "expression"),
        ({"cron": "*/0 * * * *"}, "expression"),
        ({"every": "1us"}, "every"),
        ({"cron": "@daily", "every": "1h"}, "cron"),
        ({"cron": "@daily", "tz": "Mars/Olympus"}, "tz"),
        ({"cron": "@daily", "args": {"unknown": 1}}, None),
        ({"cron": "@daily", "colour": "red"}, "colour"),
        ({"cron": "@daily", "priority": 99}, "priority"),
    ],
)
async def test_a_schedule_that_makes_no_sense_is_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, Any], field: str | None
) -> None:
    answer = await client.put("/api/v1/schedules/x", json={"kind": "greet", "args": {"name": "n"}, **body})
    assert answer.status_code == 422, answer.text
    assert field is None or answer.json()["field"] == field


async def test_gates_workers_approvals_events_and_tokens(client: httpx.AsyncClient) -> None:
    pause = await client.post("/api/v1/queues/mail/pause", json={"why": "server is down"})
    assert pause.status_code == 201
    assert (await client.get("/api/v1/queues/mail")).json()["paused"] is True
    assert [one["id"] for one in (await client.get("/api/v1/pauses")).json()["pauses"]] == [pause.json()["id"]]
    assert len((await client.delete(f"/api/v1/pauses/{pause.json()['id']}")).json()["pauses"]) == 1
    assert (await client.post("/api/v1/breakers/smtp/open", json={"duration": "10m"})).json()["state"] == "open"
    endless = await client.post("/api/v1/breakers/smtp/open", json={"duration": "-1s"})
    assert (endless.status_code, endless.json()["field"]) == (422, "duration")
    assert (await client.post("/api/v1/breakers/smtp/close")).json()["state"] != "open"
    assert (await client.get("/api/v1/budgets")).json() == {"budgets": []}
    assert (await client.post("/api/v1/workers/quiet")).json() == {"workers": []}
    dry = await client.post("/api/v1/workers/quiet", json={"dry_run": True})
    assert dry.json() == {"workers": []}
    assert (await client.post("/api/v1/workers/none/quiet")).status_code == 404
    assert (await client.get("/api/v1/approvals")).json() == {"approvals": []}
    event = await client.post("/api/v1/events", json={"event": "paid:42", "payload": {"sum": 3}})
    assert (event.json()["is_first"], event.json()["payload"]) == (True, {"sum": 3})
    made = await client.post("/api/v1/tokens", json={"name": "ci", "scope": "read", "expires": "30d", "why": "a build"})
    assert made.json()["secret"].startswith("pdr_")
    assert made.json()["secret"] not in (await client.get("/api/v1/tokens")).text
    assert (await client.post("/api/v1/tokens", json={"name": "ci", "scope": "read"})).status_code == 409
    gone = await client.request("DELETE", "/api/v1/tokens/ci", json={"why": "it leaked"})
    assert gone.json()["revoked_at"] is not None
    assert (await client.post(JOBS, json={"kind": "greet", "args": {"name": "n"}, "why": "by hand"})).status_code == 201
    trail = (await client.get("/api/v1/audit", params={"limit": 3})).json()["entries"]
    assert [entry["why"] for entry in trail] == ["by hand", "it leaked", "a build"]


async def test_views_of_the_whole(client: httpx.AsyncClient) -> None:
    await enqueue(client)
    assert (await client.get("/api/v1/counts", params={"by": ["kind", "state"]})).json()["counts"][0]["jobs"] == 1
    assert (await client.get("/api/v1/counts", params={"search": "kind:greet state:ready"})).json()["counts"][0][
        "jobs"
    ] == 1
    assert (await client.get("/api/v1/overview")).json()["counts"][0]["state"] == "ready"
    for path in ("attention", "queues", "kinds", "statistics", "failure-groups", "suggestions?text=sta", "about"):
        assert (await client.get(f"/api/v1/{path}")).status_code == 200, path
    assert (await client.get("/api/v1/statistics", params={"span": "7d", "by": "kind"})).json()["groups"] == []
    assert (await client.get("/api/v1/statistics", params={"span": "soon"})).json()["field"] == "span"
    twice = await client.get(JOBS, params={"search": "kind:greet", "kind": "greet"})
    assert (twice.status_code, twice.json()["field"]) == (422, "kind")


async def test_every_deletion_keeps_its_reason(client: httpx.AsyncClient) -> None:
    assert (await client.put("/api/v1/events/log", json={})).status_code == 200
    await client.put("/api/v1/webhooks/crm", json={"url": "https://crm.example/"})
    await client.put("/api/v1/alerts/channels/ops", json={"address": "env:NONE"})
    await client.put("/api/v1/alerts/rules/deaths", json={"when": "job_died", "to": ["ops"]})
    await client.put("/api/v1/schedules/x", json={"kind": "greet", "cron": "@daily", "args": {"name": "n"}})
    paths = ("webhooks/crm", "alerts/rules/deaths", "alerts/channels/ops", "events/log", "schedules/x")
    for path in paths:
        gone = await client.request("DELETE", f"/api/v1/{path}", json={"why": f"no {path}"})
        assert gone.status_code in {200, 204}, gone.text
    trail = (await client.get("/api/v1/audit", params={"limit": len(paths)})).json()["entries"]
    assert [entry["why"] for entry in trail] == [f"no {path}" for path in reversed(paths)]


async def test_a_schedule_that_has_changed_is_neither_triggered_nor_backfilled(client: httpx.AsyncClient) -> None:
    path = "/api/v1/schedules/x"
    made = {"kind": "greet", "cron": "@daily", "args": {"name": "n"}}
    stale = (await client.put(path, json=made)).headers["etag"]
    fresh = (await client.put(path, json={**made, "args": {"name": "other"}})).headers["etag"]
    past = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    for command, body in (("trigger", {}), ("backfill", past)):
        refused = await client.post(f"{path}/{command}", json=body, headers={"if-match": stale})
        assert refused.status_code == 412, refused.text
        assert (await client.post(f"{path}/{command}", json=body, headers={"if-match": fresh})).status_code < 300
