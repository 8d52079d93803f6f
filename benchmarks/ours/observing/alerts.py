"""How soon an alert leaves after its cause, and what rules cost a worker that drains.

`python -m benchmarks.ours.observing.alerts [--engine sqlite|postgres] [--causes N]` prints figures of each engine.

A worker whose slots are all taken by long jobs runs beside one that lets jobs die, a new error each time. An alert has
left when a real mail server on this machine has taken it; the time runs from the moment at which the handler raised.
Then 10,000 jobs die of one error: the notices that go out are counted. What the watch costs is its own processor time
in a second, with thirteen rules and nothing to find.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from typing import Any, Final

from aiosmtpd.smtp import SMTP

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.__main__ import server_for
from benchmarks.ours.addresses import address
from perdure import App, Retry, WorkerSettings, alerts
from perdure.clock import SystemClock
from perdure.operate.alerts.evaluation import Evaluation

CAUSES: Final = 5  # a rule tells so many new causes in a minute, then several together
STORM: Final = 10_000
PROMISED: Final = 5.0
_LOOKS: Final = 50
_LONGEST_WAIT: Final = 60.0
_QUIET_AGAIN: Final = 61.0  # seconds, after which the rule may tell new causes one by one again
_RULES: Final[dict[str, dict[str, Any]]] = {
    "job_died": {},
    "new_error": {},
    "deaths": {"limit": 99_999},
    "failure_share": {"limit": 1, "least": 999_999},
    "depth": {"limit": 99_999},
    "oldest": {"limit": "300d"},
    "wait_p95": {"limit": "6m"},
    "schedule_missed": {},
    "budget": {},
    "breaker_opened": {},
    "worker_lost": {},
    "no_worker": {},
    "doctor": {},
}


class Mailbox:
    """Takes mail, and when."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, str]] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - its name there
        """Take a mail."""
        self.taken.append(
            (time.perf_counter(), str(message_from_bytes(envelope.content, policy=policy.default)["Subject"]))
        )
        return "250 taken"

    async def named(self, word: str) -> float:
        """When a mail with this word in its subject came."""
        async with asyncio.timeout(_LONGEST_WAIT):
            while True:
                for at, subject in self.taken:
                    if word in subject:
                        return at
                await asyncio.sleep(0.01)


@asynccontextmanager
async def mail_server() -> AsyncIterator[tuple[Mailbox, str]]:
    """A mail server on this machine, and its address as a channel."""
    mailbox = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, hostname="localhost", loop=loop), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield mailbox, f"smtp://127.0.0.1:{port}/?from=a@example.com&to=b@example.com&tls=none"
    finally:
        server.close()


async def measure(url: str, causes: int) -> tuple[list[float], int, float]:
    """Seconds from each cause to its mail; notices of the storm; milliseconds of processor for a look at all rules."""
    async with mail_server() as (mailbox, channel), App(url) as app:
        alerts.channel(app, "mail", channel)
        alerts.rule(app, "deaths", "job_died", to="mail", throttle="1h")
        raised: dict[str, float] = {}

        async def die(word: str) -> None:
            raised[word] = time.perf_counter()
            raise ValueError(f"out of {word}")

        async def last() -> None:
            await asyncio.Event().wait()

        dying = app.job(name="die", retry=Retry(attempts=1))(die)
        endless = app.job(name="last", queue="long")(last)
        await app.enqueue_many(endless.call() for _ in range(20))
        full = await app.worker(WorkerSettings(queues="long", concurrency=20, stop_timeout="1s"))
        free = await app.worker(WorkerSettings(queues="default", stop_timeout="1s"))
        running = [asyncio.create_task(worker.run()) for worker in (full, free)]
        try:
            latencies = await _latencies(app, dying, mailbox, raised, causes)
            before = len(mailbox.taken)
            await asyncio.sleep(_QUIET_AGAIN)
            await app.enqueue_many(dying.call("a storm") for _ in range(STORM))
            await mailbox.named("a storm")
            await asyncio.sleep(3)
            notices = len(mailbox.taken) - before
        finally:
            for worker in (full, free):
                worker.stop()
                worker.hurry()
            await asyncio.gather(*running)
        return latencies, notices, await _cost(app)


async def _latencies(app: App, dying: Any, mailbox: Mailbox, raised: dict[str, float], causes: int) -> list[float]:
    desk = await app.desk("benchmark")
    while not await desk.alerts.rules():  # noqa: ASYNC110 - another process may write them
        await asyncio.sleep(0.1)
    await asyncio.sleep(2)
    found = []
    for number in range(causes):
        word = "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}") + " tea"  # digits would be one group
        await dying.enqueue(word)
        found.append(await mailbox.named(word) - raised[word])
    return found


async def _cost(app: App) -> float:
    desk = await app.desk("benchmark")
    for when, options in _RULES.items():
        await desk.alerts.save(alerts.make_rule(f"all {when}", when, to="mail", **options))
    evaluation = Evaluation(await app.store(), SystemClock())
    await evaluation.run()
    begun = time.process_time()
    for _ in range(_LOOKS):
        await evaluation.run()
    return (time.process_time() - begun) / _LOOKS * 1_000


def main() -> None:
    """Print the figures; fail if an alert was late, or a storm was more than one mail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], default=None)
    parser.add_argument("--causes", type=int, default=CAUSES)
    given = parser.parse_args()
    late = False
    for engine in (Engine[given.engine.upper()],) if given.engine else (Engine.SQLITE, Engine.POSTGRES):
        with server_for(engine) as server, new_database(engine, server) as database:
            found, notices, cost = asyncio.run(measure(address(engine, database), given.causes))
        print(
            f"{engine}: an alert leaves {statistics.median(found):.2f} s after its cause, {max(found):.2f} s at worst "
            f"(of {len(found)}; promised {PROMISED:g} s); {STORM:,} deaths of one cause: {notices} mail; "
            f"a look at {len(_RULES) + 1} rules takes {cost:.1f} ms of processor time"
        )
        late = late or max(found) > PROMISED or notices != 1
    raise SystemExit(late)


if __name__ == "__main__":
    main()
