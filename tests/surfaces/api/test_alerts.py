"""Alerts over HTTP: rules and channels made, previewed, paused and deleted; secrets go in and never come out."""

from __future__ import annotations

import httpx
import pytest
from tests.support.web.http_site import client_of, token_of

from perdure.operate.alerts.sealing import KEY_VARIABLE, new_key
from perdure.surfaces.server.site import Site

RULES = "/api/v1/alerts/rules"
CHANNELS = "/api/v1/alerts/channels"
RULE = {"when": "depth", "to": ["ops"], "limit": 3, "quiet": ["22:00-07:00 Europe/Berlin"], "throttle": "5m"}
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"


async def test_alerts_from_the_first_channel_to_the_last_rule(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = await client.put(f"{CHANNELS}/ops", json={"address": SLACK})
    assert (refused.status_code, "TIiajk" in refused.text) == (422, False)
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    made = await client.put(f"{CHANNELS}/ops", json={"address": SLACK})
    assert made.json()["address"] == "slack://•••• (stored encrypted)"
    assert (await client.put(f"{RULES}/deep", json={**RULE, "to": ["chat"]})).status_code == 404
    assert (await client.put(f"{RULES}/deep", json={**RULE, "limit": "a few"})).status_code == 422
    assert (await client.post(f"{RULES}/deep/preview", json=RULE)).json()["title"] is None
    saved = (await client.put(f"{RULES}/deep", json=RULE)).json()
    assert (saved["rule"]["limit"], saved["source"]) == (3.0, "desk")
    paused = await client.post(f"{RULES}/deep/pause", json={"until": "2040-01-01T00:00:00Z", "why": "known"})
    assert paused.json()["paused_until"] == "2040-01-01T00:00:00Z"
    assert (await client.post(f"{RULES}/deep/resume", json={})).status_code == 200
    assert (await client.post(f"{RULES}/deep/resume", json={})).status_code == 409
    assert [one["rule"]["name"] for one in (await client.get(RULES)).json()["rules"]] == ["deep"]
    assert (await client.get(f"{RULES}/deep")).status_code == 200
    test = (await client.post("/api/v1/alerts/test", json={"channels": ["ops"]})).json()
    assert test["deliveries"][0]["state"] == "pending"
    assert (await client.get(f"/api/v1/alerts/notices/{test['id']}")).json()["title"] == test["title"]
    sent = await client.get("/api/v1/alerts/notices", params={"limit": 1})
    assert (len(sent.json()["notices"]), sent.json()["next"]) == (1, None)
    for path in ("/api/v1/alerts", "/api/v1/alerts/open"):
        assert (await client.get(path)).json()["alerts"] == []
    assert (await client.delete(f"{CHANNELS}/ops")).status_code == 409, "a rule uses it"
    assert (await client.delete(f"{RULES}/deep")).json() == {"name": "deep"}
    assert (await client.delete(f"{CHANNELS}/ops")).status_code == 200
    assert "TIiajk" not in (await client.get("/api/v1/audit")).text


async def test_lists_of_alerts_and_notices_have_cursors_of_their_own(client: httpx.AsyncClient) -> None:
    notices = "/api/v1/alerts/notices"
    await client.put(f"{CHANNELS}/ops", json={"address": "env:NONE"})
    made = [(await client.post("/api/v1/alerts/test", json={"channels": ["ops"]})).json()["id"] for _ in range(2)]
    first = (await client.get(notices, params={"limit": 1})).json()
    second = (await client.get(notices, params={"limit": 1, "cursor": first["next"]})).json()
    assert [page["notices"][0]["id"] for page in (first, second)] == made[::-1]
    assert second["next"] is None
    other = await client.get("/api/v1/alerts", params={"cursor": first["next"]})
    assert (other.status_code, other.json()["field"]) == (422, "cursor")


async def test_channels_are_for_admins(site: Site) -> None:
    async with client_of(site, await token_of(site, "operate")) as client:
        answer = await client.put(f"{CHANNELS}/ops", json={"address": "env:OPS"})
        assert answer.status_code == 403
        assert (await client.get(CHANNELS)).json() == {"channels": []}
