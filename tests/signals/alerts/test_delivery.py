"""A death becomes a notice becomes a job becomes a mail, a signed request or a call of a service."""

from __future__ import annotations

import asyncio

import pytest
from tests.signals.alerts.conftest import Inbox
from tests.support.receiver import receiving

from perdure import App, Retry, WorkerSettings, alerts
from perdure.clock import SystemClock
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE
from perdure.errors import ArgumentError, SettingsError
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.sealing import KEY_VARIABLE, new_key
from perdure.signals.alerts import delivery
from perdure.signals.alerts.delivery import deliver_notice
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.webhooks.errors import SendFailed, SendRefused
from perdure.webhooks import verify

SIGNED_BY = "env:HOOK_SECRET"
SECRET = "a secret of at least some length"  # noqa: S105 - for a test


async def test_a_test_goes_by_mail_and_is_sent_once(app: App, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_MAIL", inbox.address)
    monkeypatch.setenv("PERDURE_DESK_URL", "https://desk.example.com/")
    desk = await app.desk("ops")
    await desk.alerts.save_channel("mail", "env:OPS_MAIL")
    notice = await desk.alerts.test("mail")
    store = await app.store()
    for _ in range(2):  # the second time as after a crash before the acknowledgement
        await deliver_notice(store, notice.id, "mail")
    [mail] = inbox.mails
    assert "Desk: https://desk.example.com/alerts" in mail.get_content()
    [view] = await desk.alerts.channels()
    assert (view.address, view.failures, view.sent_at is not None) == ("env:OPS_MAIL", 0, True)
    assert (await desk.alerts.notice(notice.id)).deliveries[0].state == "sent"


async def test_a_webhook_is_signed_and_private_addresses_are_refused_unless_allowed(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    desk = await app.desk("ops")
    async with receiving() as hook:
        monkeypatch.setenv("HOOK", f"{hook.url}?key=hidden")
        await desk.alerts.save_channel("hook", "env:HOOK", secret=SIGNED_BY, allow_private=True)
        await desk.alerts.save_channel("wary", "env:HOOK", secret=SIGNED_BY)
        notice = await desk.alerts.test(["hook", "wary"])
        await deliver_notice(await app.store(), notice.id, "hook")
        with pytest.raises(SendRefused, match="allow_private=True or --allow-private"):
            await deliver_notice(await app.store(), notice.id, "wary")
    [request] = hook.received
    verify(SECRET, request.headers, request.body)
    assert request.json()["title"] == "A test of perdure's alerts"
    assert "hidden" not in str(await desk.alerts.channels()) + str(await desk.alerts.notice(notice.id))


async def test_a_webhook_that_answers_500_for_ever_ends_as_a_dead_letter_that_is_not_lost(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    desk = await app.desk("ops")
    async with receiving() as hook:
        hook.status = 500
        monkeypatch.setenv("HOOK", hook.url)
        await desk.alerts.save_channel("hook", "env:HOOK", secret=SIGNED_BY, allow_private=True)
        notice = await desk.alerts.test("hook")
        for attempt in range(1, 4):
            with pytest.raises(SendFailed, match="500"):
                await deliver_notice(await app.store(), notice.id, "hook", attempt)
    [view] = await desk.alerts.channels()
    assert view.failures == 3
    assert "500" in (view.error or "")


async def test_addresses_are_stored_encrypted_and_open_with_each_of_the_keys(
    app: App, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await app.desk("ops")
    secret = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"  # noqa: S105 - the example of its docs
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(ArgumentError, match=r"address holds a secret.*env:NAME.*PERDURE_ALERTS_KEY") as refused:
        await desk.alerts.save_channel("chat", secret)
    assert "TIiajk" not in str(refused.value)
    old, new = new_key(), new_key()
    monkeypatch.setenv(KEY_VARIABLE, old)
    view = await desk.alerts.save_channel("chat", secret)
    assert view.address == "slack://•••• (stored encrypted)"
    store = await app.store()
    [kept] = await store.alert_channels()
    assert kept.channel.address.startswith("sealed:")
    trail = await desk.audit()
    assert "TIiajk" not in str(kept) + str(trail) + str(view)
    monkeypatch.setenv(KEY_VARIABLE, f"{new},{old}")
    notice = await desk.alerts.test("chat")
    monkeypatch.setenv(KEY_VARIABLE, new)
    with pytest.raises(SettingsError, match="another key"):
        await deliver_notice(store, notice.id, "chat")


@pytest.mark.parametrize("address", ["s3cret", "https//hooks.example.com/s3cret", "smtp://u:s3cret/x@example.com/"])
async def test_a_variable_that_holds_no_address_is_reported_without_what_it_holds(
    app: App, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    desk = await app.desk("ops")
    await desk.alerts.save_channel("chat", "env:OF_THE_WORKER")
    notice = await desk.alerts.test("chat")
    monkeypatch.setenv("OF_THE_WORKER", address)
    with pytest.raises(DeliveryRefused, match=r"address (must begin with a scheme|cannot be read)") as refused:
        await deliver_notice(await app.store(), notice.id, "chat")
    assert "s3cret" not in str(refused.value) + str(await desk.alerts.channels())


async def test_an_unexpected_failure_counts_against_the_channel(
    app: App, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_: object) -> None:
        raise KeyError("s3cret")

    monkeypatch.setattr(delivery, "send_mail", break_down)
    desk = await app.desk("ops")
    await desk.alerts.save_channel("mail", inbox.address)
    notice = await desk.alerts.test("mail")
    with pytest.raises(DeliveryFailed, match="unexpected error: KeyError"):
        await deliver_notice(await app.store(), notice.id, "mail")
    [view] = await desk.alerts.channels()
    assert view.failures == 1
    assert "s3cret" not in str(view)


async def test_what_is_gone_is_given_up(app: App, inbox: Inbox) -> None:
    desk = await app.desk("ops")
    await desk.alerts.save_channel("mail", inbox.address)
    notice = await desk.alerts.test("mail")
    await desk.alerts.delete_channel("mail")
    store = await app.store()
    with pytest.raises(DeliveryRefused, match="channel mail does not exist any more"):
        await deliver_notice(store, notice.id, "mail")
    with pytest.raises(DeliveryRefused, match="was deleted"):
        await deliver_notice(store, "0000", "mail")


@pytest.mark.slow
async def test_a_running_worker_evaluates_and_delivers(app: App, inbox: Inbox) -> None:
    """Declared in code, evaluated by the leader, delivered by any worker: also by one that is full of other jobs."""
    alerts.channel(app, "mail", inbox.address)
    alerts.rule(app, "deaths", "job_died", to="mail", throttle="1h")

    @app.job(retry=Retry(attempts=1))
    async def charge() -> None:
        raise ValueError("no card")

    @app.job(name="long")
    async def endless() -> None:
        await asyncio.Event().wait()

    worker = await app.worker(WorkerSettings(concurrency=1, queues="default", stop_timeout="1s"))
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(30):
            while not await (await app.desk("ops")).alerts.rules():
                await asyncio.sleep(0.05)
            await charge.enqueue()
            await endless.enqueue()
            while not inbox.mails:
                await asyncio.sleep(0.05)
    finally:
        worker.stop()
        worker.hurry()
        await asyncio.wait_for(running, 30)
    [mail] = inbox.mails
    assert mail["Subject"] == "[WARNING] charge died: ValueError: no card"
    assert app.enqueued.jobs[ALERT_QUEUE, ALERT_KIND] == 1  # as a metric says of every job that is stored here


async def test_rules_of_code_win_and_can_only_be_paused(app: App, inbox: Inbox) -> None:
    desk = await app.desk("ops")
    await desk.alerts.save_channel("mail", inbox.address)
    await desk.alerts.save(alerts.make_rule("deaths", "job_died", to="mail"))
    alerts.channel(app, "mail", inbox.address)
    declared = alerts.rule(app, "deaths", "job_died", kind="charge", to="mail")
    store = await app.store()
    await store.declare_alerts([declared], tuple(app.alerts.channels.values()), ())
    [view] = await desk.alerts.rules()
    assert (view.source, view.rule.kind) == ("code", "charge")
    for change in (
        lambda: desk.alerts.save(alerts.make_rule("deaths", "job_died", to="mail")),
        lambda: desk.alerts.save_channel("mail", inbox.address),
    ):
        with pytest.raises(Exception, match="is declared in code: change it there"):
            await change()
    assert (await desk.alerts.pause("deaths")).paused_by == "ops"
    await store.declare_alerts([declared], (), ())
    assert (await desk.alerts.rule("deaths")).paused_at is not None, "a new declaration keeps the pause"
    with pytest.raises(SettingsError, match=r"to of rule x names no channel that this app declares: 'chat'"):
        alerts.rule(app, "x", "job_died", to="chat")
    assert (await Evaluation(store, SystemClock()).run()).rules == 1
    assert ALERT_QUEUE in app.own_queues
