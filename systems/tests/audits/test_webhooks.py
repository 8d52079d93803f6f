"""E9: webhooks are signed, retried by a table, recorded once each, and told of when they are given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest
from systems.tests.engines import on_sqlite

from perdure import ConflictError, JobFilter, JobState, Page
from perdure.testing import Sandbox
from perdure.webhooks import SignatureRefused, signature, verify
from perdure_systems.audits import settings as audit_settings
from perdure_systems.audits.jobs import DELIVER, app, audit, deliver, records, report_failures
from perdure_systems.audits.records import Delivery
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.actions import retry_failed_webhooks, retry_webhook
from perdure_systems.audits.web.views import webhook_view
from perdure_systems.notifications.jobs import app as notifications

Setting = Callable[[str, str], None]
BODY = '{"url":"https://atlas.example/"}'
AUDIT_ID = "0193a1b2-0000-7000-8000-000000000001"


async def send(outside: Outside, audit_id: str = AUDIT_ID, url: str | None = None) -> str:
    return (await deliver.using(tags=[f"audit:{audit_id}"]).enqueue(audit_id, url or outside.hook, BODY)).id


@on_sqlite
async def test_e9_an_audit_is_reported_with_all_headers_and_a_signature_over_timestamp_and_body(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    handle = await audit.enqueue(outside.page)
    await box.drain()
    [request] = outside.received
    [webhook] = (await (await app.desk("test")).jobs(JobFilter(kind=DELIVER), Page())).jobs
    stamp = str(int(box.now.timestamp()))
    assert request.headers["x-webhook-id"] == webhook.id
    assert request.headers["x-webhook-attempt"] == "1"
    assert request.headers["x-webhook-max-attempts"] == "5"
    assert request.headers["x-webhook-timestamp"] == stamp
    assert request.headers["x-webhook-signature"] == signature("the-secret", int(stamp), request.body)
    assert request.headers["x-webhook-signature"].startswith("sha256=")
    assert request.json()["auditId"] == handle.id
    verify("the-secret", request.headers, request.body, now=box.now)


@on_sqlite
async def test_e9_the_receiver_refuses_what_is_changed_too_old_or_not_signed(box: Sandbox, outside: Outside) -> None:
    await send(outside)
    await box.drain()
    [request] = outside.received
    headers, body, now = request.headers, request.body, box.now
    for seconds in (-300, 299):
        verify("the-secret", headers, body, now=now + timedelta(seconds=seconds))
    for seconds in (-302, 301):
        with pytest.raises(SignatureRefused, match="more than 300 s"):
            verify("the-secret", headers, body, now=now + timedelta(seconds=seconds))
    with pytest.raises(SignatureRefused, match="does not match"):
        verify("the-secret", headers, body + b" ", now=now)
    with pytest.raises(SignatureRefused, match="does not match"):
        verify("another", headers, body, now=now)
    later = {**headers, "x-webhook-timestamp": str(int(now.timestamp()) + 1)}
    with pytest.raises(SignatureRefused, match="does not match"):
        verify("the-secret", later, body, now=now)
    for missing in ("x-webhook-timestamp", "x-webhook-signature"):
        with pytest.raises(SignatureRefused):
            verify("the-secret", {name: headers[name] for name in headers if name != missing}, body, now=now)


@pytest.mark.parametrize("status", [500, 599])
@on_sqlite
async def test_e9_5xx_is_tried_five_times_after_30_60_300_and_900_seconds_give_or_take_a_fifth(
    box: Sandbox, outside: Outside, status: int
) -> None:
    outside.receiver.status = status
    webhook = await send(outside)
    starts = [box.now]
    for _ in range(4):
        await box.drain()
        due = (await box.job(webhook)).due_at
        assert due is not None
        box.travel_to(due)
        starts.append(box.now)
    await box.drain()
    waits = [(later - earlier).total_seconds() for earlier, later in pairwise(starts)]
    for wait, planned in zip(waits, (30, 60, 300, 900), strict=True):
        assert 0.8 * planned <= wait <= 1.2 * planned
    assert waits != [30, 60, 300, 900]
    view = await webhook_view(webhook)
    assert (view.status, view.attempts) == ("failed", 5)
    assert [request.headers["x-webhook-attempt"] for request in outside.received] == ["1", "2", "3", "4", "5"]
    for request, at in zip(outside.received, starts, strict=True):
        verify("the-secret", request.headers, request.body, now=at)
    assert [(one.attempt, one.status, one.status_code, one.sent_at) for one in view.deliveries] == [
        (number, "failed", status, at) for number, at in enumerate(starts, 1)
    ], "every delivery is recorded once"


@on_sqlite
async def test_e9_4xx_and_redirects_stop_at_once(box: Sandbox, outside: Outside) -> None:
    for number, status in enumerate((301, 400, 404, 410, 429), 1):
        outside.receiver.status = status
        webhook = await send(outside)
        await box.drain(travel=True)
        view = await webhook_view(webhook)
        assert (view.status, len(outside.received)) == ("failed", number)
        assert [(one.status, one.status_code) for one in view.deliveries] == [("failed", status)]
        assert (view.error or "").startswith(f"SendRefused: {outside.hook.removesuffix('/hook')} answered {status}")


async def test_e9_2xx_is_delivered_after_any_failures(box: Sandbox, outside: Outside) -> None:
    for status in (200, 201, 204):
        outside.receiver.status, outside.receiver.failures = status, 2
        webhook = await send(outside)
        await box.drain(travel=True)
        view = await webhook_view(webhook)
        assert view.status == "delivered"
        assert [(one.attempt, one.status, one.status_code) for one in view.deliveries] == [
            (1, "failed", 503),
            (2, "failed", 503),
            (3, "delivered", status),
        ]


@on_sqlite
async def test_e9_the_network_and_a_receiver_that_does_not_answer_are_retried(
    box: Sandbox, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = await send(outside, url="http://127.0.0.1:9/hook")
    await box.drain()
    assert (await box.job(away)).state == "retrying"
    monkeypatch.setitem(audit_settings.LIMITS, "webhook", timedelta(seconds=0.2))
    outside.receiver.delay = 30
    slow = await send(outside)
    await box.drain()
    view = await webhook_view(slow)
    assert (view.status, view.error) == (
        "retrying",
        f"SendFailed: {outside.hook.removesuffix('/hook')} did not answer within 0.2 s",
    )
    assert [(one.status, one.status_code) for one in view.deliveries] == [("failed", None)]


async def test_e9_a_delivery_without_an_answer_is_recorded_once_as_unknown(box: Sandbox) -> None:
    """The process died while it was sent: it may have arrived or not."""
    sent = Delivery(
        webhook_id="w", token=1, audit_id=AUDIT_ID, url="http://x/", attempt=1, status="sending", sent_at=box.now
    )
    again = Delivery(
        webhook_id="w", token=2, audit_id=AUDIT_ID, url="http://x/", attempt=2, status="sending", sent_at=box.now
    )
    for delivery in (sent, sent, again):
        await records.begin_delivery(delivery)
    found = await records.deliveries(webhook_id="w")
    assert [(one.attempt, one.status) for one in found] == [(1, "unknown"), (2, "sending")]


async def test_e9_an_alert_is_sent_at_most_once_an_hour_for_each_audit(
    box: Sandbox, outside: Outside, settings: Setting
) -> None:
    settings("AUDITS_ALERT_CHANNEL", "slack")
    outside.receiver.status = 400
    desk = await notifications.desk("test")

    async def alerts() -> list[str]:
        await report_failures()
        return [
            job.arguments["subject"]
            for job in (await desk.jobs(JobFilter(), Page())).jobs
            if job.queue == "notifications"
        ]

    first = await send(outside)
    await box.drain()
    assert await alerts() == [f"Webhook of audit {AUDIT_ID} failed"]
    for _ in range(3):
        box.travel("15m")
        await retry_webhook(first, "test")
        await box.drain()
        assert len(await alerts()) == 1, "within the hour"
    another = AUDIT_ID.replace("1", "2")
    await send(outside, another)
    await box.drain()
    assert (await alerts())[0] == f"Webhook of audit {another} failed", "another audit has an alert of its own"
    box.travel("16m")
    await retry_webhook(first, "test")
    await box.drain()
    assert len(await alerts()) == 3, "an hour after the first"
    [job] = (await desk.jobs(JobFilter(), Page(limit=1))).jobs
    assert job.arguments["channel"] == "slack"
    assert "answered 400" in job.arguments["body"]


@on_sqlite
async def test_e9_failed_webhooks_are_retried_50_at_most(box: Sandbox, outside: Outside) -> None:
    outside.receiver.status = 400
    await app.enqueue_many(deliver.call(AUDIT_ID, outside.hook, BODY) for _ in range(53))
    await box.drain()
    outside.receiver.status = 200
    assert len(await retry_failed_webhooks(50, "test")) == 50
    await box.drain()
    desk = await app.desk("test")
    assert (await desk.count(JobFilter(kind=DELIVER, states=(JobState.DEAD,)))).jobs == 3
    assert len(await retry_failed_webhooks(50, "test")) == 3
    await box.drain()
    assert (await desk.count(JobFilter(kind=DELIVER, states=(JobState.SUCCEEDED,)))).jobs == 53


@on_sqlite
async def test_e9_one_failed_webhook_is_retried_and_one_that_has_not_failed_is_not(
    box: Sandbox, outside: Outside
) -> None:
    outside.receiver.status = 400
    webhook = await send(outside)
    await box.drain()
    outside.receiver.status = 200
    await retry_webhook(webhook, "test")
    await box.drain()
    view = await webhook_view(webhook)
    assert (view.status, [one.status for one in view.deliveries]) == ("delivered", ["failed", "delivered"])
    with pytest.raises(ConflictError, match="is delivered"):
        await retry_webhook(webhook, "test")


async def test_e9_deliveries_are_pruned_after_30_days(box: Sandbox, outside: Outside) -> None:
    old = await send(outside)
    await box.drain()
    box.travel("20d")
    new = await send(outside, AUDIT_ID.replace("1", "2"))
    await box.drain()
    box.travel_to((box.now + timedelta(days=9)).replace(hour=3, minute=30))
    await box.drain()
    assert (await webhook_view(old)).deliveries
    box.travel_to((box.now + timedelta(days=2)).replace(hour=3, minute=30))
    await box.drain()
    assert await records.deliveries(webhook_id=old) == []
    assert len(await records.deliveries(webhook_id=new)) == 1
    assert (await (await app.desk("test")).count(JobFilter(kind=DELIVER))).jobs == 1
