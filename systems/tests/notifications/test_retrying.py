"""A notification that fails comes back after 1, 2, 4 and 8 minutes, and is dead after the fifth failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import httpx
import pytest

from perdure import Handle
from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import RETRY, app, notify
from perdure_systems.notifications.records import Notification, notification_of
from perdure_systems.notifications.standins import StandIns

MINUTE = timedelta(minutes=1)


async def enqueued(channel: str = "slack") -> Handle[str]:
    return await notify.enqueue(channel=channel, subject="Certificate expires", body="api.example.com: 7 days left")


async def seen(handle: Handle[str]) -> Notification:
    return notification_of(await handle.view())


async def test_a3_the_wait_doubles_from_one_minute_and_has_no_jitter(box: Sandbox, refuse: Callable[..., None]) -> None:
    refuse(-1)
    handle = await enqueued()
    await box.drain(travel=True)
    started = [attempt.started_at for attempt in await box.attempts(handle)]
    assert [later - earlier for earlier, later in pairwise(started)] == [MINUTE * n for n in (1, 2, 4, 8)]


def test_a3_the_wait_is_never_longer_than_an_hour() -> None:
    """With more attempts than ours the same policy stays at an hour."""
    assert app.kinds["notifications.notify"].retry is RETRY
    begins = [attempt.earliest for attempt in RETRY.limited_to(10).preview()]
    assert [later - earlier for earlier, later in pairwise(begins)] == [
        MINUTE * n for n in (1, 2, 4, 8, 16, 32, 60, 60, 60)
    ]


async def test_a4_the_first_failure_is_armed_and_really_retried(
    box: Sandbox, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    """The original left `next_retry_at` empty after the first failure, so that no sweep ever found it."""
    refuse(1)
    handle = await enqueued()
    await box.drain()
    after = await seen(handle)
    assert (after.status, after.retry_count, after.next_retry_at) == ("failed", 1, box.now + MINUTE)
    assert after.last_error == "slack answered 503 Service Unavailable: the stand-in was told to refuse"

    box.travel(MINUTE - timedelta(seconds=1))
    assert (await box.drain()).attempts == 0
    box.travel("1s")
    await box.drain()
    assert ((await seen(handle)).status, receivers.seen["slack"]) == ("sent", 2)


async def test_a4_the_fifth_failure_makes_it_dead_the_first_send_included(
    box: Sandbox, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    refuse(-1)
    handle = await enqueued()
    statuses = []
    for wait in (0, 1, 2, 4, 8):
        box.travel(MINUTE * wait)
        await box.drain()
        statuses.append((await seen(handle)).status)
    assert statuses == ["failed", "failed", "failed", "failed", "dead"]
    dead = await seen(handle)
    assert (dead.retry_count, dead.max_attempts, dead.next_retry_at) == (5, 5, None)
    box.travel("30d")
    await box.drain()
    assert receivers.seen["slack"] == 5


async def test_a5_success_keeps_the_count_so_the_record_shows_the_attempt(
    box: Sandbox, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    refuse(2)
    handle = await enqueued()
    await box.drain(travel=True)
    sent = await seen(handle)
    assert (sent.status, sent.retry_count, sent.delivered_on_attempt) == ("sent", 2, 3)
    assert (sent.next_retry_at, sent.sent_at) == (None, box.now)
    assert len(receivers.taken["slack"]) == 1


@pytest.mark.parametrize("channel", ["fax", "slack"])
async def test_a6_without_a_notifier_it_closes_as_sent_with_a_note(box: Sandbox, channel: str) -> None:
    """A name that never was, and a channel whose setting was removed."""
    handle = await enqueued(channel)
    await box.drain()
    closed = await seen(handle)
    assert (closed.status, closed.note) == ("sent", f"not sent: there is no notifier for the channel {channel!r}")
    assert (closed.retry_count, closed.next_retry_at, closed.delivered_on_attempt) == (0, None, None)


async def test_a6_a_channel_deleted_between_two_attempts_does_not_wedge_the_retry(
    box: Sandbox, refuse: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(-1)
    handle = await enqueued()
    await box.drain()
    monkeypatch.delenv("CERTCTL_SLACK_WEBHOOK_URL")
    await box.drain(travel=True)
    closed = await seen(handle)
    assert (closed.status, closed.retry_count) == ("sent", 1)
    assert closed.note == "not sent: there is no notifier for the channel 'slack'"


async def test_a7_requeue_resets_everything_and_gives_five_new_attempts(
    box: Sandbox, client: httpx.AsyncClient, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    refuse(-1)
    handle = await enqueued()
    await box.drain(travel=True)
    await client.post(f"/api/v1/notifications/{handle.id}/read")

    assert (await client.post(f"/api/v1/notifications/{handle.id}/requeue")).status_code == 200
    again = await seen(handle)
    assert (again.status, again.retry_count, again.next_retry_at, again.last_error) == ("pending", 0, None, None)
    assert again.read is False

    await box.drain(travel=True)
    assert ((await seen(handle)).status, receivers.seen["slack"]) == ("dead", 10)


async def test_a7_a_requeue_that_fails_half_way_changes_nothing(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], break_requeue: Callable[[], None]
) -> None:
    """The reset is one transaction: an error at its end leaves the dead letter as it was."""
    refuse(-1)
    handle = await enqueued()
    await box.drain(travel=True)
    before = await seen(handle)
    break_requeue()
    assert (await client.post(f"/api/v1/notifications/{handle.id}/requeue")).status_code == 500
    assert await seen(handle) == before
