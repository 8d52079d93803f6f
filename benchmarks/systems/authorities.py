"""A thousand open orders through an hour of moved clock: how often each authority is asked, and what that costs.

`python -m benchmarks.systems.authorities [--engine sqlite|postgres] [--orders 1000]`. A quarter of the orders is at
each authority: two answer 429 and 503 for ever, with Retry-After: 1; two wait for an approval. The stand-ins are asked
over real HTTP and TLS. The clock moves in steps of five seconds. Afterwards all orders are approved, and the time is
taken until their certificates are collected, verified and kept.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import Desk, JobFilter, Page
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.csr import read_request
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import StandIns, new_request, serving
from perdure_systems.authorities.standins.behaviour import Reply

ORDERS: Final = 1_000
HOUR: Final = 3_600
ROUND: Final = 600
STEP: Final = 5
AT_ONCE: Final = 50
FEWEST, MOST = 7, 8  # requests for an order in ten minutes (D11)
_HASTE: Final = {"Retry-After": "1"}


class Polled(Struct, frozen=True):
    """What was measured.

    `first_round` and `hour` are the fewest and the most polls of an order, as it counts them itself. `most_seen` is
    what an authority has got for one order in the first round, `unanswered` the polls that no authority has seen: each
    found a connection just closed, or a machine too busy to answer within 30 s.
    """

    orders: int
    polls: int
    seconds: float
    first_round: tuple[int, int]
    hour: tuple[int, int]
    most_seen: int
    unanswered: int
    open_after_an_hour: int
    issued: int
    collecting_seconds: float

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        fewest, most = self.first_round
        is_polite = fewest >= FEWEST and max(most, self.most_seen) <= MOST
        return is_polite and self.open_after_an_hour == self.issued == self.orders


async def poll_for_an_hour(url: str, orders: int, standins: StandIns) -> Polled:
    """Place the orders, let an hour pass, and approve them."""
    _be_slow(standins)
    async with Sandbox(jobs.app, url=url) as box:
        _note_time_of(box, standins)
        for number in range(orders):
            authority = list(Authority)[number % len(Authority)]
            await jobs.issue(authority, read_request(new_request(f"{number}.example")))
        desk = await jobs.app.desk("benchmark")
        begun = time.perf_counter()
        await box.drain(concurrency=AT_ONCE, limit=100_000)
        in_round: list[int] = []
        for second in range(STEP, HOUR + STEP, STEP):
            box.travel(STEP)
            await box.drain(concurrency=AT_ONCE, limit=100_000)
            in_round = await _counts(desk) if second == ROUND + STEP else in_round
        seconds = time.perf_counter() - begun
        in_hour = await _counts(desk)
        seen_in_round, seen = _seen(standins, ROUND + STEP), _seen(standins, HOUR)
        still = (await desk.count(JobFilter(kind=jobs.ORDER_KIND, states="waiting"), cap=100_000)).jobs
        _approve_all(standins)
        await desk.run_now(JobFilter(kind=jobs.ORDER_KIND, states="waiting"), limit=100_000)
        begun = time.perf_counter()
        await box.drain(concurrency=AT_ONCE, limit=100_000)
        collecting = time.perf_counter() - begun
        issued = (await desk.count(JobFilter(kind=jobs.ORDER_KIND, states="succeeded"), cap=100_000)).jobs
    await jobs.database.close()
    return Polled(
        orders=orders,
        polls=sum(in_hour),
        seconds=seconds,
        first_round=(min(in_round), max(in_round)),
        hour=(min(in_hour), max(in_hour)),
        most_seen=max(seen_in_round.values()),
        unanswered=sum(in_hour) - sum(seen.values()),
        open_after_an_hour=still,
        issued=issued,
        collecting_seconds=collecting,
    )


async def _counts(desk: Desk) -> list[int]:
    """How often each order was polled, as it says itself."""
    found: list[int] = []
    page = Page(limit=500)
    while True:
        listed = await desk.jobs(JobFilter(kind=jobs.ORDER_KIND), page)
        steps = await desk.steps(job.id for job in listed.jobs)
        found += [step.tries for kept in steps.values() for step in kept if step.key == "collect"]
        if listed.next is None:
            return found
        page = Page(limit=500, before=listed.next)


def _note_time_of(box: Sandbox, standins: StandIns) -> None:
    began = box.now

    def seconds() -> float:
        return (box.now - began).total_seconds()

    for authority in Authority:
        standins.of(authority).clock = seconds


def _be_slow(standins: StandIns) -> None:
    for authority in Authority:
        standins.of(authority).reset()
        standins.of(authority).behaviour.approve_after = None
    standins.digicert.behaviour.always = Reply(429, b"{}", _HASTE)
    standins.sectigo.behaviour.always = Reply(503, b"{}", _HASTE)


def _approve_all(standins: StandIns) -> None:
    for authority in Authority:
        standin = standins.of(authority)
        standin.behaviour.always = None
        for order_id in standin.orders:
            standin.approve(order_id)


def _seen(standins: StandIns, until: float) -> Counter[str]:
    """The requests for the status of each order that reached its authority up to this second."""
    return Counter(
        f"{authority}{seen.path}"
        for authority in Authority
        for seen in standins.of(authority).seen
        if seen.is_status and seen.at <= until
    )


def main() -> None:
    """Measure each engine, print, and fail if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--orders", type=int, default=ORDERS)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    broken = False
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server() as server,
        serving(Path(folder) / "pem") as standins,
    ):
        os.environ.update(standins.environment)
        for engine in [Engine[name.upper()] for name in given.engine or ("sqlite", "postgres")]:
            with new_database(engine, server if engine is Engine.POSTGRES else folder) as database:
                polled = asyncio.run(poll_for_an_hour(address(engine, database), given.orders, standins))
            print(
                f"{engine}: {polled.orders:,} open orders through an hour: {polled.polls:,} polls in "
                f"{polled.seconds:.0f} s ({polled.polls / polled.seconds:,.0f}/s); polls of an order in its first "
                f"10 minutes: {polled.first_round[0]} to {polled.first_round[1]}, in the hour: {polled.hour[0]} to "
                f"{polled.hour[1]}; polls that reached no authority: {polled.unanswered}; "
                f"parked after the hour: {polled.open_after_an_hour:,}; then approved: "
                f"{polled.issued:,} certificates collected and verified in {polled.collecting_seconds:.1f} s; promised "
                f"{FEWEST} to {MOST} requests in 10 minutes: {'holds' if polled.holds else 'BROKEN'}",
                flush=True,
            )
            broken = broken or not polled.holds
    sys.exit(broken)


if __name__ == "__main__":
    main()
