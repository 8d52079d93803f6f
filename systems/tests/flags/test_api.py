"""B13: the API, its codes, its validation, the rollout, and flags that are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from systems.tests.engines import on_sqlite

from perdure.testing import Sandbox
from perdure_systems.flags.jobs import apply
from perdure_systems.flags.records import bucket_of

from .conftest import ADMIN, MINUTE, NOON, READER, Faults, Run, make_flag, make_schedule, shown

SOON = (NOON + MINUTE).isoformat()
GOOD: dict[str, Any] = {"updates": {"enabled": True, "rollout": 50}, "scheduledAt": SOON}
SCHEDULE = "/api/admin/flags/dark-mode/schedule"


async def test_b13_a_schedule_is_made_listed_shown_and_cancelled(client: httpx.AsyncClient) -> None:
    await make_flag("dark-mode")
    made = await client.post(SCHEDULE, json=GOOD)
    assert made.status_code == 201
    schedule = made.json()
    assert made.headers["location"] == f"{SCHEDULE}/{schedule['id']}"
    listed = await client.get(SCHEDULE)
    assert (listed.status_code, [one["id"] for one in listed.json()["schedules"]]) == (200, [schedule["id"]])
    cancelled = await client.delete(f"{SCHEDULE}/{schedule['id']}")
    assert cancelled.status_code == 200
    told = cancelled.json()
    assert (told["status"], told["cancelledBy"]) == ("cancelled", "ada")
    assert told["cancelledAt"] is not None


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"scheduledAt": "9999-12-31T23:59:59-23:59"}, "scheduledAt", "scheduledAt must lie before the year 9999"),
    ({"scheduledAt": NOON.isoformat()}, "scheduledAt", "must lie in the future"),
    ({"scheduledAt": (NOON - MINUTE).isoformat()}, "scheduledAt", "must lie in the future"),
    ({"scheduledAt": "2026-03-01T12:30:00"}, "scheduledAt", "2026-03-01T12:30:00"),
    ({"scheduledAt": "tomorrow"}, "scheduledAt", "tomorrow"),
    ({"updates": {}}, "updates", "at least one change"),
    ({"updates": {"rollout": -1}}, "updates.rollout", ">= 0"),
    ({"updates": {"rollout": 101}}, "updates.rollout", "<= 100"),
    ({"updates": {"rollout": True}}, "updates.rollout", "true"),
    ({"updates": {"rollout": "50"}}, "updates.rollout", "50"),
    ({"updates": {"colour": "red"}}, "updates", "colour"),
    ({"updates": None}, "updates", "null"),
    ({"priority": "urgent"}, "priority", "urgent"),
    ({"maxRetries": 15}, "maxRetries", "15"),
    ({"maxRetries": 2, "retryPolicy": {}}, "maxRetries", "choose one"),
    ({"retryPolicy": {"factor": 0}}, "retryPolicy.factor", ">= 1"),
    ({"surprise": 1}, "surprise", "surprise"),
]


@on_sqlite
async def test_b13_bad_input_is_refused_by_name_and_changes_nothing(client: httpx.AsyncClient, box: Sandbox) -> None:
    await make_flag("dark-mode")
    for change, field, says in BAD:
        answer = await client.post(SCHEDULE, json={**GOOD, **change})
        assert (answer.status_code, answer.json()["field"]) == (400, field), change
        assert says in answer.json()["detail"], change
    assert box.enqueued(apply) == []


@on_sqlite
async def test_b13_a_body_that_is_no_schedule_is_a_400(client: httpx.AsyncClient) -> None:
    await make_flag("dark-mode")
    for body in (b"", b"{", b"[]", b"\xff", b"null"):
        answer = await client.post(SCHEDULE, content=body)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), body


@on_sqlite
async def test_b13_without_a_token_401_and_without_the_role_403(client: httpx.AsyncClient, box: Sandbox) -> None:
    """For every route below /api/admin; nothing is changed."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    one = f"{SCHEDULE}/{schedule_id}"
    requests = [
        *(("POST", SCHEDULE), ("GET", SCHEDULE), ("GET", one), ("DELETE", one), ("POST", f"{one}/retry")),
        *(("GET", f"{one}/history"), ("GET", f"{one}/timeline"), ("POST", "/api/admin/flag-schedules")),
        *(("GET", "/api/admin/flag-schedules"), ("POST", "/api/admin/flag-schedules/preview")),
        *(("GET", "/api/admin/flag-schedules/metrics"), ("GET", "/api/admin/flags"), ("POST", "/api/admin/flags")),
        *((method, "/api/admin/flags/dark-mode") for method in ("GET", "PATCH", "DELETE")),
    ]
    for method, path in requests:
        for token, code in (("", 401), ("Bearer wrong", 401), ("Basic ada-admin-token", 401), (READER, 403)):
            header = token if " " in token or not token else f"Bearer {token}"
            answer = await client.request(method, path, json=GOOD, headers={"Authorization": header})
            assert answer.status_code == code, (method, path, token)
            assert ("www-authenticate" in answer.headers) == (code == 401)
    assert len(box.enqueued(apply)) == 1
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "pending"


@on_sqlite
async def test_b13_the_role_goes_with_the_token_and_not_with_the_name(
    client: httpx.AsyncClient, settings: pytest.MonkeyPatch
) -> None:
    """Ada has a token for her programs too."""
    settings.setenv("FLAG_READER_TOKENS", f"ada:{READER}")
    headers = {"Authorization": f"Bearer {READER}"}
    assert (await client.get("/api/admin/flags", headers=headers)).status_code == 403
    assert (await client.post("/sign-in", content=f"token={READER}", headers={"Authorization": ""})).status_code == 401
    by_cookie = client.build_request("GET", "/", headers={"Cookie": f"flags_token={READER}"})
    del by_cookie.headers["Authorization"]
    answer = await client.send(by_cookie)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    settings.setenv("FLAG_READER_TOKENS", f"bob:{ADMIN}")
    answer = await client.get("/api/admin/flags")
    assert (answer.status_code, answer.json()["detail"]) == (400, "FLAG_READER_TOKENS gives bob the token of an admin")


@on_sqlite
async def test_a_key_that_no_address_leads_to_is_refused(client: httpx.AsyncClient) -> None:
    for key in ("dark-mode\n", "", "dark mode", "a" * 81, "-x", "é", "a/b"):
        answer = await client.post("/api/admin/flags", json={"key": key})
        assert (answer.status_code, answer.json()["field"]) == (400, "key"), key
    assert (await client.get("/api/admin/flags")).json() == {"flags": []}


async def test_b13_what_is_not_there_is_a_404(client: httpx.AsyncClient) -> None:
    other = await make_schedule(client, "other", NOON + MINUTE)
    await make_flag("dark-mode")
    assert (await client.post("/api/admin/flags/none/schedule", json=GOOD)).status_code == 404
    for key in ("none", "%00", "x" * 300, "a%20b"):
        assert (await client.get(f"/api/admin/flags/{key}/schedule")).status_code == 404
        assert (await client.delete(f"/api/admin/flags/{key}")).status_code == 404
    for name in ("sch_none", other, "x" * 300, "%00"):
        for answer in (await client.get(f"{SCHEDULE}/{name}"), await client.delete(f"{SCHEDULE}/{name}")):
            assert answer.status_code == 404, name
            assert answer.json()["field"] == "scheduleId"
    assert (await shown(client, "other", other))["status"] == "pending"


@on_sqlite
async def test_b13_cancelling_what_is_applied_or_failed_is_a_400(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    applied = await make_schedule(client, "applied", NOON + MINUTE)
    dead = await make_schedule(client, "dead", NOON + MINUTE, maxRetries=0)
    box.travel("1m")
    await client.delete("/api/admin/flags/dead")
    await box.drain()
    retrying = await make_schedule(client, "retrying", box.now + MINUTE)
    await faults.break_flag("retrying")
    box.travel("1m")
    await box.drain()
    for key, name, word in (
        ("applied", applied, "applied"),
        ("dead", dead, "failed"),
        ("retrying", retrying, "failed"),
    ):
        before = await shown(client, key, name)
        answer = await client.delete(f"/api/admin/flags/{key}/schedule/{name}")
        assert (answer.status_code, before["status"]) == (400, word)
        assert f"is {word}: only a pending one can be cancelled" in answer.json()["detail"]
        assert await shown(client, key, name) == before


async def test_b13_cancelling_twice_is_once(client: httpx.AsyncClient, box: Sandbox) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    first = await client.delete(f"{SCHEDULE}/{schedule_id}")
    box.travel("1h")
    again = await client.delete(f"{SCHEDULE}/{schedule_id}", headers={"Authorization": "Bearer bob-admin-token"})
    assert (again.status_code, again.json()) == (200, first.json())


@pytest.mark.parametrize(("user", "bucket"), [("user-1", 52), ("ada", 81), ("Ünïcode", 40)])
def test_b13_the_bucket_is_the_hash_of_the_user(user: str, bucket: int) -> None:
    """The first 8 hexadecimal digits of SHA-256, as `sha256sum` prints them, modulo 100."""
    assert bucket_of(user) == bucket


def test_b13_buckets_are_even() -> None:
    counts = [0] * 100
    for number in range(20_000):
        counts[bucket_of(f"user-{number}")] += 1
    assert min(counts) > 140
    assert max(counts) < 260


@on_sqlite
async def test_b13_a_flag_is_on_for_buckets_below_its_rollout(client: httpx.AsyncClient) -> None:
    reader = {"Authorization": f"Bearer {READER}"}
    for enabled, rollout, is_on in ((True, 52, False), (True, 53, True), (True, 0, False), (False, 100, False)):
        key = f"flag-{enabled}-{rollout}"
        await make_flag(key, enabled=enabled, rollout=rollout)
        answer = await client.get(f"/api/flags/{key}/evaluate?userId=user-1", headers=reader)
        wanted = {"flagKey": key, "enabled": is_on, "bucket": 52, "rollout": rollout, "version": 1}
        assert (answer.status_code, answer.json()) == (200, wanted)


@on_sqlite
async def test_b13_evaluation_needs_a_token_a_user_and_a_flag(client: httpx.AsyncClient) -> None:
    await make_flag("dark-mode")
    assert (await client.get("/api/flags/dark-mode/evaluate")).status_code == 400
    assert (await client.get("/api/flags/none/evaluate?userId=a")).status_code == 404
    nobody = await client.get("/api/flags/dark-mode/evaluate?userId=a", headers={"Authorization": ""})
    assert nobody.status_code == 401


async def test_b13_a_deleted_flag_is_a_permanent_failure(
    client: httpx.AsyncClient, box: Sandbox, runs: list[Run]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    assert (await client.delete("/api/admin/flags/dark-mode")).status_code == 200
    await box.drain(travel="2h")
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["retryCount"], seen["nextRetryAt"]) == ("failed", 0, None)
    assert "there is no flag 'dark-mode' any more" in seen["lastError"]
    assert len(runs) == 1, "no retry brings it back"


async def test_flags_are_made_changed_and_deleted(client: httpx.AsyncClient) -> None:
    made = await client.post("/api/admin/flags", json={"key": "dark-mode", "description": "<b>night</b>"})
    assert (made.status_code, made.json()["rollout"], made.json()["enabled"]) == (201, 100, False)
    assert (await client.post("/api/admin/flags", json={"key": "dark-mode"})).status_code == 409
    for bad in ({"key": ""}, {"key": "a b"}, {"key": "x" * 81}, {"key": "../x"}, {}, {"key": "a", "rollout": 101}):
        assert (await client.post("/api/admin/flags", json=bad)).status_code == 400, bad
    changed = await client.patch("/api/admin/flags/dark-mode", json={"rollout": 10})
    assert (changed.status_code, changed.json()["version"], changed.json()["updatedBy"]) == (200, 2, "ada")
    assert (await client.patch("/api/admin/flags/dark-mode", json={})).status_code == 400
    assert (await client.patch("/api/admin/flags/none", json={"rollout": 1})).status_code == 404
    shown_ = (await client.get("/api/admin/flags/dark-mode")).json()
    assert [one["action"] for one in shown_["changes"]] == ["changed", "created"]
    assert (await client.delete("/api/admin/flags/dark-mode")).status_code == 200
    assert (await client.get("/api/admin/flags/dark-mode")).status_code == 404
    again = await client.post("/api/admin/flags", json={"key": "dark-mode"})
    assert again.json()["version"] == 4, "versions go on, so that caches can tell old from new"


async def test_a_schedule_far_ahead_is_taken(client: httpx.AsyncClient) -> None:
    far = NOON + timedelta(days=365 * 50)
    schedule_id = await make_schedule(client, "dark-mode", far)
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "pending"
