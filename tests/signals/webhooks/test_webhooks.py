"""Webhooks: what happened is told to real receivers, signed, at least once, and never about deliveries themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.receiver import Receiver, never, receiving

from perdure import (
    App,
    ArgumentError,
    ConflictError,
    JobFilter,
    JobState,
    NotFoundError,
    Page,
    Permanent,
    SettingsError,
    WorkerSettings,
)
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import read_cursor
from perdure.domain.operate.webhook import DELIVERY
from perdure.events import Event, WebhookSkipped
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.webhooks import Webhooks, verify

SECRET = "a secret of some length"  # noqa: S105 - of the test


class Shop:
    """An app with webhooks, a box on its engine, and a receiver."""

    def __init__(self, app: App, box: Sandbox, receiver: Receiver, webhooks: Webhooks) -> None:
        self.app = app
        self.box = box
        self.receiver = receiver
        self.webhooks = webhooks

    async def desk(self) -> Desk:
        return await self.app.desk("alice")

    async def deliveries(self, *states: JobState) -> int:
        return (await (await self.desk()).count(JobFilter(kind=DELIVERY, states=states or None))).jobs

    async def drain(self) -> None:
        """Run what is due, tell of it, and run the deliveries."""
        await self.box.drain()
        self.box.travel("2s")
        await self.box.drain()

    def told(self) -> list[tuple[str, str]]:
        return [(request.json()["type"], request.json()["subject"]) for request in self.receiver.received]


@asynccontextmanager
async def a_shop(url: str, *, declared: bool = True, private: bool = True) -> AsyncIterator[Shop]:
    app = App(url)

    @app.job
    async def fine(number: int = 0) -> None: ...

    @app.job(queue="mail")
    async def broken() -> None:
        raise Permanent("no such mailbox")

    async with receiving() as receiver:
        webhooks = Webhooks(app, allow_private=private, timeout="1s")
        if declared:
            webhooks.to("all", receiver.url, secret=SECRET)
        async with Sandbox(app, url=url) as box:
            await webhooks.dispatcher.tick()
            yield Shop(app, box, receiver, webhooks)


async def test_ends_of_jobs_are_reported_signed_and_once(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        done = await shop.app.job_named("fine").using(tags=["vip"]).enqueue()
        dead = await shop.app.job_named("broken").enqueue()
        await shop.drain()
        await shop.drain()
        assert sorted(shop.told()) == sorted([("job.succeeded", done.id), ("job.died", dead.id)])
        for request in shop.receiver.received:
            verify(SECRET, request.headers, request.body)
            assert request.headers["x-webhook-attempt"] == "1"
            assert request.headers["x-webhook-max-attempts"] == "8"
        died = next(one.json() for one in shop.receiver.received if one.json()["type"] == "job.died")
        assert (died["webhook"], died["kind"], died["queue"]) == ("all", "broken", "mail")
        assert "no such mailbox" in died["details"]["error"]
        ids = sorted(request.json()["id"] for request in shop.receiver.received)
        assert len(set(ids)) == 2
        assert await shop.deliveries(JobState.SUCCEEDED) == 2, "and no delivery of a delivery"


async def test_filters_choose_what_a_receiver_is_reported(engine_url: str) -> None:
    async with a_shop(engine_url, declared=False) as shop:
        desk = await shop.desk()
        await desk.webhooks.save("mail", f"{shop.receiver.url}?to=mail", queues=["mail"], events=["job.died"])
        await desk.webhooks.save("vips", f"{shop.receiver.url}?to=vips", tags=["vip", "eu"], kinds=["fine"])
        fine, broken = shop.app.job_named("fine"), shop.app.job_named("broken")
        for job in (fine, fine.using(tags=["vip"]), fine.using(tags=["us"]), broken, broken.using(tags=["vip"])):
            await job.enqueue()
        await shop.drain()
        told = sorted((request.line.split()[1], request.json()["kind"]) for request in shop.receiver.received)
        assert told == [("/hook?to=mail", "broken"), ("/hook?to=mail", "broken"), ("/hook?to=vips", "fine")]


async def test_a_failing_receiver_is_retried_then_left_to_the_dead_letters_and_makes_no_loop(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        shop.receiver.status = 500
        await shop.app.job_named("fine").enqueue()
        for _ in range(12):
            await shop.drain()
            shop.box.travel("8h")
        assert [request.headers["x-webhook-attempt"] for request in shop.receiver.received] == list("12345678")
        assert len({request.headers["x-webhook-id"] for request in shop.receiver.received}) == 1
        assert await shop.deliveries() == await shop.deliveries(JobState.DEAD) == 1
        shop.receiver.status = 200
        await (await shop.desk()).requeue(JobFilter(kind=DELIVERY))
        await shop.drain()
        assert await shop.deliveries(JobState.SUCCEEDED) == 1


async def test_a_refusal_is_final_and_a_slow_receiver_is_not(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        shop.receiver.status = 410
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        assert await shop.deliveries(JobState.DEAD) == 1
        shop.receiver.status, shop.receiver.script = 200, [never]
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        assert await shop.deliveries(JobState.RETRYING) == 1
        shop.box.travel("1m")
        await shop.drain()
        assert await shop.deliveries(JobState.SUCCEEDED) == 1


async def test_a_receiver_on_a_private_address_is_refused_unless_the_code_allows_it(engine_url: str) -> None:
    async with a_shop(engine_url, private=False) as shop:
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        [job] = (await (await shop.desk()).jobs(JobFilter(kind=DELIVERY), Page())).jobs
        assert job.state is JobState.DEAD
        assert "not a public address" in (job.last_error or "")
        assert shop.receiver.connections == 0


async def test_a_process_that_dies_between_jobs_and_cursor_makes_no_second_delivery(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        for _ in range(3):
            await shop.app.job_named("fine").enqueue()
        store = await shop.app.store()
        before = (await store.webhooks())[0].cursor
        await shop.drain()
        moved = (await store.webhooks())[0].cursor
        assert await store.move_webhook("all", read_cursor("c", moved), read_cursor("c", before))
        await shop.drain()
        assert len(shop.receiver.received) == 3
        assert await shop.deliveries() == 3


async def test_secrets_go_in_and_are_shown_nowhere(engine_url: str) -> None:
    async with a_shop(engine_url, declared=False) as shop:
        desk = await shop.desk()
        view, secret = await desk.webhooks.save("crm", f"{shop.receiver.url}?key=T0K3N")
        assert secret is not None
        assert view.has_secret
        assert view.webhook.url.endswith("/hook?***")
        again, none = await desk.webhooks.save("crm", shop.receiver.url)
        assert (none, again.has_secret) == (None, True)
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        verify(secret, shop.receiver.received[0].headers, shop.receiver.received[0].body)
        newer = await desk.webhooks.new_secret("crm", why="leaked")
        await desk.webhooks.test("crm")
        await shop.drain()
        last = shop.receiver.received[-1]
        assert last.json()["type"] == "webhook.test"
        verify([newer, secret], last.headers, last.body)
        with pytest.raises(ValueError, match="does not match"):
            verify(secret, last.headers, last.body)
        jobs = (await desk.jobs(JobFilter(), Page())).jobs
        shown = str((await desk.audit(), await desk.webhooks.webhooks(), jobs))
        for hidden in (secret, newer, "T0K3N"):
            assert hidden not in shown


async def test_a_paused_webhook_goes_on_where_it_was(engine_url: str) -> None:
    async with a_shop(engine_url, declared=False) as shop:
        desk = await shop.desk()
        await desk.webhooks.save("crm", shop.receiver.url)
        await desk.webhooks.pause("crm")
        job = await shop.app.job_named("fine").enqueue()
        await shop.drain()
        assert shop.told() == []
        await desk.webhooks.resume("crm")
        await shop.drain()
        assert shop.told() == [("job.succeeded", job.id)]
        shop.receiver.status = 500
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        await desk.webhooks.delete("crm")
        shop.box.travel("1m")
        await shop.drain()
        assert await shop.deliveries(JobState.CANCELLED) == 1
        for command in (desk.webhooks.pause, desk.webhooks.delete, desk.webhooks.test, desk.webhooks.webhook):
            with pytest.raises(NotFoundError, match="no webhook 'crm'"):
                await command("crm")


async def test_bad_values_are_refused_by_name(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        desk = await shop.desk()
        with pytest.raises(ArgumentError, match="url must begin with https://"):
            await desk.webhooks.save("x", "ftp://a/")
        with pytest.raises(ArgumentError, match=r"events must be among job\.succeeded, .*got 'job.exploded'"):
            await desk.webhooks.save("x", "https://a.example/", events=["job.exploded"])
        with pytest.raises(ArgumentError, match="secret must be 16 to 500"):
            await desk.webhooks.save("x", "https://a.example/", secret="short")  # noqa: S106 - as it says
        with pytest.raises(ConflictError, match="declared in code"):
            await desk.webhooks.save("all", "https://a.example/")
        with pytest.raises(ConflictError, match="delete 'all' first"):
            await desk.feed.switch_off()
        with pytest.raises(SettingsError, match="declared twice"):
            shop.webhooks.to("all", "https://a.example/", secret=SECRET)


async def test_events_that_are_gone_are_skipped_and_said_so(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        desk, store = await shop.desk(), await shop.app.store()
        seen: list[Event] = []
        shop.app.subscribe(seen.append, WebhookSkipped)
        await desk.webhooks.pause("all")
        await shop.app.job_named("fine").enqueue()
        await shop.drain()
        shop.box.travel("4d")
        assert await store.forget_events(100)
        await desk.webhooks.resume("all")
        await shop.drain()
        [skipped] = seen
        assert isinstance(skipped, WebhookSkipped)
        assert (skipped.webhook, "were deleted" in skipped.why) == ("all", True)
        job = await shop.app.job_named("fine").enqueue()
        await shop.drain()
        assert shop.told() == [("job.succeeded", job.id)]


async def test_a_log_that_was_switched_off_beside_webhooks_comes_back(engine_url: str) -> None:
    async with a_shop(engine_url) as shop:
        store = await shop.app.store()
        await store.switch_event_log(None, By("a race"))
        await shop.webhooks.dispatcher.tick()
        await shop.webhooks.dispatcher.tick()
        job = await shop.app.job_named("fine").enqueue()
        await shop.drain()
        assert shop.told() == [("job.succeeded", job.id)]


async def test_the_log_stays_off_without_webhooks(store: Store) -> None:
    assert await store.webhooks() == []
    assert not (await store.event_log()).is_on
    assert await store.delete_webhook("x", By("alice")) is False


async def test_a_running_worker_reports_within_seconds(engine_url: str) -> None:
    """No sandbox: a worker finds the event, makes the delivery and sends it, while a slow receiver holds up no job."""
    app = App(engine_url)

    @app.job
    async def fine() -> None: ...

    async with receiving() as receiver, app:
        receiver.script = [never]
        webhooks = Webhooks(app, allow_private=["127.0.0.1"], concurrency=1, timeout="1s")
        webhooks.to("all", receiver.url, secret=SECRET)
        worker = await app.worker(WorkerSettings(concurrency=1))
        running = asyncio.create_task(worker.run())
        try:
            await worker.started()
            store = await app.store()
            async with asyncio.timeout(30):
                while not await store.webhooks():
                    await asyncio.sleep(0.05)
                first = await fine.enqueue()
                while not receiver.received:
                    await asyncio.sleep(0.05)
                second = await fine.enqueue()
                await second.result(timeout=20)
                while len(receiver.received) < 2:
                    await asyncio.sleep(0.05)
        finally:
            worker.stop()
            await running
    assert [request.json()["subject"] for request in receiver.received] == [first.id, second.id]
