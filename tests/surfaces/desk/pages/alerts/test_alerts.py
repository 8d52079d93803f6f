"""The page of alerts: what is open, rules with their commands, a form that says what is wrong, on both engines."""

from __future__ import annotations

from html import unescape

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import HOUR, enqueue
from tests.support.web.desk_site import desk_site

from perdure.clock import ManualClock
from perdure.domain.operate.access import Scope
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.rules import make_rule
from perdure.operate.alerts.sealing import KEY_VARIABLE, new_key
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller

GO = {"confirmed": "yes", "why": "the night shift asked"}
RULE = {"name": "deep", "when": "depth", "to": "mail", "limit": "1", "severity": "critical", "group": "cause"}
MAIL = "smtp://localhost/?from=a@example.com&to=b@example.com"


async def test_a_rule_is_made_by_a_form_shown_and_acted_on(
    pages: AsyncClient, store: Store, clock: ManualClock
) -> None:
    desk = Desk(store, "ada")
    assert "There are no channels." in (await pages.get("/alerts")).text
    await desk.alerts.save_channel("mail", MAIL)
    seen = await pages.post("/alerts/rules", data={**RULE, "show": "preview"})
    assert (seen.status_code, "It finds nothing now." in seen.text, 'value="deep"' in seen.text) == (200, True, True)
    assert await desk.alerts.rules() == []
    made = await pages.post("/alerts/rules", data=RULE)
    assert (made.status_code, made.headers["location"]) == (303, "/alerts")
    await enqueue(store, queue="<b>reports")
    await Evaluation(store, clock).run()
    page = (await pages.get("/alerts")).text
    assert "Queue &lt;b&gt;reports has 1 ready job" in page
    assert "mail pending" in page
    assert "would send now" in (await pages.get("/alerts/rules/deep/preview")).text
    for command in ("pause", "delete"):
        asked = await pages.post(f"/alerts/rules/deep/{command}")
        assert (asked.status_code, "deep" in asked.text) == (200, True), "it asks first"
    await pages.post("/alerts/rules/deep/pause", data=GO)
    assert "paused by" in (await pages.get("/alerts")).text
    await desk.alerts.pause("deep", until=await desk.now() + HOUR)
    assert "until <time" in (await pages.get("/alerts")).text
    await pages.post("/alerts/rules/deep/resume")
    changed = await pages.post("/alerts/rules", data={**RULE, "replaces": "deep", "limit": "7"})
    assert changed.status_code == 303
    assert 'value="7"' in (await pages.get("/alerts?form=change&name=deep")).text
    await pages.post("/alerts/channels/mail/test", data=GO)
    assert "A test of perdure" in (await pages.get("/alerts")).text
    await pages.post("/alerts/rules/deep/delete", data=GO)
    assert await desk.alerts.rules() == []
    assert (await desk.audit(action="alert_rule.delete")).entries[0].why == GO["why"]


async def test_a_rule_that_cannot_hold_comes_back_in_its_form_with_the_field_named(
    pages: AsyncClient, store: Store
) -> None:
    await Desk(store, "ada").alerts.save_channel("mail", MAIL)
    for field, value, said in (
        ("limit", "1.5", "must be a whole number of jobs"),
        ("limit", "1000000", "from 1 to 100,000"),
        ("when", "tea_time", "must be one of job_died"),
        ("to", "chat", "there is no channel"),
        ("quiet", "22-7", "cannot be read"),
        ("kind", "charge", "means nothing for a rule about depth"),
        ("name", "", "is missing"),
    ):
        answer = await pages.post("/alerts/rules", data={**RULE, field: value})
        assert (answer.status_code, said in answer.text) == (422, True), (field, answer.text)
    assert await Desk(store, "ada").alerts.rules() == []


async def test_a_channel_is_added_by_a_form_and_its_address_comes_back_on_no_page(
    pages: AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    alerts, chat = Desk(store, "ada").alerts, {"name": "chat", "address": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajk"}
    for given, said in (
        (chat, "holds a secret"),
        ({**chat, "address": "smtp://ops:s3cret@mail.example.com/?from=a@b.c&to=d@e.f"}, "holds a secret"),
        ({**chat, "address": "https://hooks.example.com/s3cret"}, "secret is missing"),
        ({**chat, "name": ""}, "name"),
    ):
        answer = await pages.post("/alerts/channels", data=given)
        assert (answer.status_code, said in unescape(answer.text)) == (422, True), answer.text
        assert "s3cret" not in answer.text
        assert "TIiajk" not in answer.text
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    hook = {"name": "hook", "address": "https://hooks.example.com/s3cret", "secret": "s3cret-s3cret-s3cret"}
    made = await pages.post("/alerts/channels", data=hook)
    assert (made.status_code, made.headers["location"]) == (303, "/alerts")
    assert "there is a channel 'hook'" in unescape((await pages.post("/alerts/channels", data=hook)).text)
    page = (await pages.get("/alerts")).text
    assert "https://•••• (stored encrypted)" in page
    assert "s3cret" not in page + (await pages.get("/audit")).text
    await alerts.save(make_rule("deaths", "job_died", to="hook"))
    kept = await pages.post("/alerts/channels/hook/delete", data=GO)
    assert (kept.status_code, "is used by 'deaths'" in unescape(kept.text)) == (409, True)
    await alerts.delete("deaths")
    assert (await pages.post("/alerts/channels/hook/delete")).status_code == 200, "it asks first"
    await pages.post("/alerts/channels/hook/delete", data=GO)
    assert await alerts.channels() == []


async def test_only_an_admin_adds_and_deletes_channels(store: Store) -> None:
    await Desk(store, "ada").alerts.save_channel("mail", MAIL)
    caller = Caller(name="eve", scope=Scope.OPERATE, source="desk")
    async with AsyncClient(
        transport=ASGITransport(desk_site(store, caller=caller)), base_url="http://127.0.0.1"
    ) as pages:
        assert "New channel" not in (await pages.get("/alerts")).text
        added = await pages.post("/alerts/channels", data={"name": "x", "address": MAIL})
        deleted = await pages.post("/alerts/channels/mail/delete", data=GO)
    assert (added.status_code, deleted.status_code) == (403, 403)
    assert [view.name for view in await Desk(store, "ada").alerts.channels()] == ["mail"]
