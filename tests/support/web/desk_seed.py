"""A busy system for the desk: a day of a shop, written into a database through the engine itself.

The jobs run in a sandbox whose clock begins a day ago and ends now, so that attempts, waits and deaths have the times
that a real system would have. Statistics of a week are added as workers would have counted them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Final, NamedTuple

from tests.support.builders.jobs import a_worker, apply, claim_some, ending_in, enqueue
from tests.support.web import desk_shop as shop

from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.operate.statistics import BUCKETS, Ending, bucket_of
from perdure.domain.schedule import Schedule
from perdure.domain.worker import Phase
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store
from perdure.testing import Sandbox

_DAY: Final = timedelta(hours=24)
_MAILS: Final = ("ada@shop.example", "grace@shop.example", "nobody17@shop.example", "linus@shop.example")


async def seed(url: str) -> dict[str, str]:
    """Fill a migrated database; names for the paths of pages (`{job}`, …)."""
    end = SystemClock().now()
    async with Sandbox(shop.app, url=url, start=end - _DAY) as box:
        shop.Time.clock = box.clock
        await _an_ordinary_day(box, end - timedelta(hours=2))
        names = await _trouble(box, end - timedelta(minutes=75))
        names |= {"job": await _a_retry_ahead(box, end - timedelta(minutes=4))}
        if box.now < end:
            box.travel_to(end)
    store = store_for(url)
    await store.open()
    try:
        await _the_present(store, end)
        await seed_statistics(store, end)
        groups = (await Desk(store, "ada").failure_groups()).groups
        names |= {"group": next(group.fingerprint for group in groups if group.kind == "charge_card")}
    finally:
        await store.close()
    return names


async def _an_ordinary_day(box: Sandbox, until: datetime) -> None:
    number = 0
    while box.now < until:
        for _ in range(3):
            number += 1
            await shop.charge_card.enqueue(order=8_000 + number, gateway="eu-1")
            await shop.send_mail.enqueue(to=_MAILS[number % 4], subject=f"Order {8_000 + number}")
        await box.drain(limit=200)
        box.travel("40m")
    await shop.import_file.enqueue(path="prices.csv", rows=4_000)
    await shop.import_file.enqueue(path="broken-prices.csv", rows=4_000)
    await shop.import_file.enqueue(path="notes.txt", rows=10)
    await box.drain(travel="3m", limit=200)


async def _trouble(box: Sandbox, at: datetime) -> dict[str, str]:
    """A gateway that does not answer: jobs retry, and most of them die."""
    box.travel_to(max(at, box.now))
    dead = [await shop.charge_card.enqueue(order=8_800 + one, gateway="eu-2") for one in range(6)]
    await box.drain(travel="40m", limit=400)
    refunds = [await shop.refund.enqueue(order=8_212, amount=640.0)]
    await shop.issue_certificate.enqueue(domain="shop.example")
    for document in range(9):
        await shop.summarise.enqueue(document=document)
    await shop.nightly_report.enqueue(day="2026-11-17")
    await box.drain(limit=60)
    parent = await shop.import_file.enqueue(path="stock.csv", rows=8_000)
    await shop.publish_catalogue.enqueue(season="winter")
    runs = count(1)
    await box.drain("imports", until=lambda: next(runs) == 3)
    await box.drain("images", limit=60)
    return {"dead_job": dead[0].id, "waiting_job": refunds[0].id, "parent_job": parent.id}


async def _a_retry_ahead(box: Sandbox, at: datetime) -> str:
    """A job that has failed a few times, and whose next attempt is a minute or two ahead."""
    box.travel_to(max(at, box.now))
    retrying = await shop.charge_card.enqueue(order=8_812, gateway="eu-2")
    await box.drain("payments", travel="190s", limit=60)
    return retrying.id


async def _the_present(store: Store, now: datetime) -> None:
    desk = Desk(store, "ada")
    for sandbox in await store.workers():
        await store.report(sandbox.id, Phase.CLOSED)
        await store.retire(sandbox.id)
    await store.set_breaker(
        BreakerView(
            name="payments",
            state=BreakerState.OPEN,
            changed_at=now - timedelta(minutes=9),
            until=now + timedelta(minutes=4),
            note="5 failures in 60s",
        ),
        By("ada"),
    )
    await desk.holds.pause(queue="exports", why="the disk of the exporter is replaced")
    for index, (name, queues, concurrency) in enumerate(
        (
            ("web-1", ("default", "mail"), 100),
            ("web-2", ("default", "mail"), 100),
            ("pay-1", ("payments",), 20),
            ("batch-3", ("certificates", "pulse", "imports"), 16),
        )
    ):
        worker = await store.register(a_worker(name=name, queues=queues, concurrency=concurrency))
        await store.report(worker, (Phase.OPEN, Phase.OPEN, Phase.OPENING, Phase.OPEN)[index])
        for queue in queues:
            for _ in range(concurrency // 8):
                await enqueue(store, kind="send_mail" if queue == "mail" else f"{queue}_work", queue=queue)
            await claim_some(store, worker, concurrency // 9, queue)
    for _ in range(12):
        await enqueue(store, kind="nightly_report", queue="reports")
    for _ in range(5):
        await enqueue(store, kind="export", queue="exports")
    await desk.calendar.save(
        Schedule(name="nightly-digest", kind="digest", expression="0 2 * * *", queue="reports", tz="Europe/Berlin")
    )
    await desk.calendar.save(Schedule(name="heartbeat", kind="heartbeat", expression="@every 1m", queue="pulse"))
    await desk.calendar.save(Schedule(name="weekly-report", kind="nightly_report", expression="0 7 * * MON"))
    await desk.calendar.pause("weekly-report", why="the report is rewritten this week")
    await _heartbeats(store, desk, now)
    await _alerts(store, desk)
    await _webhooks(desk)


async def _webhooks(desk: Desk) -> None:
    """Two receivers, one of them paused."""
    secret = "of the receiver, for pictures"  # noqa: S105 - of a test
    died = ["job.died", "schedule.missed"]
    await desk.webhooks.save("billing", "https://billing.example/hook", secret=secret, events=died, queues=["payments"])
    await desk.webhooks.save("crm", "https://crm.example/hook?key=hidden", secret=secret)
    await desk.webhooks.pause("crm", why="its new version is rolled out")


async def _alerts(store: Store, desk: Desk) -> None:
    """Two channels, one of which fails; rules, one of them paused; alerts that are open, and what was sent."""
    await desk.alerts.save_channel("ops", "env:OPS_SLACK")
    await desk.alerts.save_channel("mail", "smtp://mail.example.com/?from=a@example.com&to=b@example.com")
    await desk.alerts.save(make_rule("payments", "job_died", kind="charge_card", to=["ops", "mail"]))
    await desk.alerts.save(make_rule("unserved", "no_worker", to="ops", severity="critical"))
    await desk.alerts.save(make_rule("backlog", "depth", limit=5, to="mail", quiet="22:00-22:05 UTC"))
    await desk.alerts.pause("payments", why="known: the gateway is down")
    await Evaluation(store, SystemClock()).run()
    test = await desk.alerts.test("ops")
    for _ in range(3):
        await store.note_delivery(test.id, "ops", "the service of slack:// did not take the notice")
    await Evaluation(store, SystemClock()).run()


async def _heartbeats(store: Store, desk: Desk, now: datetime) -> None:
    """The last ten minutes of a schedule: most runs succeeded, one is dead, one waits."""
    await desk.calendar.backfill("heartbeat", now - timedelta(minutes=10), now, why="the worker was down")
    beats = await store.register(a_worker(name="pulse-1", queues=("pulse",), concurrency=4))
    claims = [claim for claim in await claim_some(store, beats, 100, "pulse") if claim.kind == "heartbeat"][:9]
    ends = [JobState.DEAD, *[JobState.SUCCEEDED] * (len(claims) - 1)]
    await apply(store, *[ending_in(state, claim) for state, claim in zip(ends, claims, strict=True)])
    await store.report(beats, Phase.CLOSED)
    await store.retire(beats)


class Flow(NamedTuple):
    """What a kind does in an ordinary second."""

    queue: str
    kind: str
    rate: float
    wait: float  # seconds, typically
    run: float
    fails: float  # share


_FLOWS: Final = (
    Flow("default", "resize_image", 9.0, 0.02, 0.05, 0.004),
    Flow("default", "index_product", 4.0, 0.03, 0.02, 0.001),
    Flow("mail", "send_mail", 5.0, 0.3, 0.31, 0.006),
    Flow("payments", "charge_card", 2.2, 0.15, 0.9, 0.012),
    Flow("imports", "import_chunk", 0.3, 1.2, 2.5, 0.02),
    Flow("pulse", "heartbeat", 0.02, 0.1, 0.01, 0.0),
    Flow("reports", "nightly_report", 0.01, 4.0, 40.0, 0.0),
)


async def seed_statistics(store: Store, now: datetime) -> None:
    """A week of statistics: by the minute for two hours, by the quarter for a day, by the hour before that."""
    chance = random.Random(17)  # noqa: S311 - a rhythm
    minute = now.replace(second=0, microsecond=0)
    quarter, hour = minute.replace(minute=minute.minute // 15 * 15), minute.replace(minute=0)
    moments = [(minute - timedelta(minutes=back), 60) for back in range(120)]
    moments += [(quarter - timedelta(minutes=15 * back), 900) for back in range(9, 96)]
    moments += [(hour - timedelta(hours=back), 3_600) for back in range(25, 168)]
    counts = [
        counted
        for at, seconds in moments
        for flow in _FLOWS
        for counted in _counted(flow, at, seconds, (now - at).total_seconds() / 60, chance)
    ]
    for number, start in enumerate(range(0, len(counts), 500), 1):
        await store.add_statistics(Flush("seed", number, tuple(counts[start : start + 500])))
    while await store.roll_up_statistics():
        pass


def _counted(flow: Flow, at: datetime, seconds: int, minutes_ago: float, chance: random.Random) -> Iterator[Counted]:
    """A day's rhythm with noise, and a gateway that did not answer from 40 to 20 minutes ago."""
    rhythm = 1 + 0.4 * math.sin((at.hour + at.minute / 60 - 9) / 24 * 2 * math.pi)
    jobs = round(flow.rate * seconds * rhythm * chance.uniform(0.93, 1.07))
    if flow.queue == "reports" and minutes_ago < 25:
        return
    trouble = math.exp(-(((minutes_ago - 30) / 6) ** 2))
    slow = 1 + 9 * trouble * (flow.queue in {"payments", "mail"})
    share = flow.fails + (0.3 * trouble if flow.kind == "charge_card" else 0)
    retried = round(jobs * share)
    died = round(retried * 0.2)
    for ending, number in (
        (Ending.SUCCEEDED, jobs - retried),
        (Ending.RETRIED, retried - died),
        (Ending.DIED, died),
    ):
        if number > 0:
            waits, runs = (_histogram(number, typical, chance) for typical in (flow.wait * slow, flow.run * slow))
            yield Counted(
                minute=at,
                queue=flow.queue,
                kind=flow.kind,
                ending=ending,
                jobs=number,
                waited=number * flow.wait * slow,
                ran=number * flow.run * slow,
                waits=waits,
                runs=runs,
            )


def _histogram(jobs: int, typical: float, chance: random.Random) -> list[int]:
    buckets = [0] * BUCKETS
    draws = min(jobs, 40)
    for draw in range(draws):
        share = jobs // draws + (draw < jobs % draws)
        buckets[bucket_of(typical * chance.lognormvariate(0, 0.6))] += share
    return buckets
