"""A night at the ops desk: jobs that succeed, fail, retry, wait, crash and die, on one SQLite file.

Run it with `make demo`. Everything happens in a temporary folder, in about ten seconds.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from perdure import (
    App,
    Backoff,
    Context,
    JobFilter,
    JobState,
    Page,
    Permanent,
    Retry,
    Snooze,
    Unique,
    WorkerSettings,
)
from perdure.domain.states import FINAL
from perdure.events import Event, JobDied, JobRetrying, JobsRescued, WorkerClosed, WorkerOpened

QUICK = Retry(attempts=3, backoff=Backoff.exponential("500ms", cap="2s"))
URL = os.environ.get("PERDURE_DEMO_URL") or f"sqlite:///{tempfile.mkdtemp(prefix='perdure-demo-')}/demo.db"
REPAIRED = Path(tempfile.gettempdir()) / f"perdure-demo-{os.getpid()}.repaired"

app = App(URL)
console = Console(record=True, width=100)


@app.job
async def send_alert(channel: str, text: str) -> str:
    """Succeeds at once."""
    await asyncio.sleep(0.05)
    return f"sent to {channel}: {text}"


@app.job(retry=QUICK)
async def call_flaky_service(ctx: Context, order: int) -> str:
    """Fails twice, then succeeds: on attempt 3 of 3."""
    if ctx.attempt < 3:  # noqa: PLR2004 - the story of this job
        raise ConnectionError(f"service is busy (order {order})")
    return f"order {order} booked on attempt {ctx.attempt}"


@app.job(retry=QUICK)
def charge_card(card: str) -> str:
    """Fails until somebody repairs the gateway; a plain function, so it runs in a thread."""
    if not REPAIRED.exists():
        raise TimeoutError("payment gateway does not answer")
    return f"charged {card}"


@app.job
async def import_file(name: str) -> None:
    """Cannot be mended by trying again."""
    raise Permanent(f"{name} is not a CSV file")


@app.job
async def wait_for_report(ctx: Context) -> str:
    """Is not ready yet, and holds no worker while it waits."""
    if ctx.meta.get("patience") and (ctx.claimed_at - ctx.since).total_seconds() < 1:
        raise Snooze("1s")
    return "report is there"


@app.job(isolate=True, retry=Retry.none())
def crunch_numbers(rows: int) -> int:
    """Takes its process down; the worker does not mind."""
    os._exit(rows % 100)


@app.job(unique=Unique(by="url"))
async def audit_site(url: str) -> str:
    """Is enqueued twice, and runs once."""
    return f"{url} is fine"


async def main() -> None:
    """Enqueue, work, look, repair, requeue."""
    app.subscribe(narrate)
    console.rule("[bold]perdure demo[/bold]  one SQLite file, one worker")
    async with app:
        await send_alert.enqueue("#ops", "disk full")
        await send_alert.using(delay="1s", priority=0).enqueue("#ops", "still full, a second later")
        for order in (41, 42):
            await call_flaky_service.enqueue(order)
        await charge_card.enqueue("**** 4242")
        await import_file.enqueue("orders.pdf")
        await wait_for_report.using(meta={"patience": True}).enqueue()
        await crunch_numbers.enqueue(1_009)
        first = await audit_site.enqueue("https://example.org")
        second = await audit_site.enqueue("https://example.org")
        console.print(f"audit_site enqueued twice: new={first.is_new}, then new={second.is_new}, one job {first.id}\n")
        await work()
        await show("After the first run")
        await repair_and_requeue()
        await work()
        await show("After the repair")


async def work() -> None:
    """Run a worker until every job has ended."""
    worker = await app.worker(WorkerSettings(name="demo"))
    running = asyncio.create_task(worker.run())
    store = await app.store()
    active = JobFilter(states=frozenset(JobState) - FINAL)
    while await store.jobs(active, Page(limit=1)):  # noqa: ASYNC110 - another process could do the work
        await asyncio.sleep(0.1)
    worker.stop()
    await running


async def repair_and_requeue() -> None:
    """What an operator does with the dead letters after the cause is gone."""
    REPAIRED.touch()
    store = await app.store()
    again = await store.requeue(JobFilter(kind="charge_card"), actor="demo", limit=10)
    console.print(f"\n[bold]the gateway is repaired[/bold], {len(again)} dead letter is requeued\n")


async def show(title: str) -> None:
    """Print every job and what became of it."""
    store = await app.store()
    table = Table("kind", "state", "attempts", "what happened", title=title, title_justify="left")
    for view in reversed(await store.jobs(JobFilter(), Page(limit=50))):
        tried = view.failures + view.crashes + (view.state is JobState.SUCCEEDED)
        colour = {"succeeded": "green", "dead": "red"}.get(view.state, "yellow")
        table.add_row(
            view.kind, f"[{colour}]{view.state}[/{colour}]", str(tried), view.result or view.last_error or view.reason
        )
    console.print(table)


def narrate(event: Event) -> None:
    """Tell what happens while it happens."""
    stories: dict[type[Event], Callable[..., str]] = {
        WorkerOpened: lambda e: f"✿ worker {e.worker} is open",
        WorkerClosed: lambda e: f"❀ worker {e.worker} is closed\n",
        JobRetrying: lambda e: f"  {e.kind} failed (attempt {e.attempt}/{e.max_attempts}), again in {e.wait:.1f} s",
        JobDied: lambda e: f"  [red]{e.kind} is dead[/red]: {e.reason}: {e.error}",
        JobsRescued: lambda e: f"  {e.ready} jobs rescued",
    }
    if type(event) in stories:
        console.print(stories[type(event)](event))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    finally:
        REPAIRED.unlink(missing_ok=True)
    if picture := os.environ.get("PERDURE_DEMO_PICTURE"):
        drawing = console.export_svg(title="make demo")
        Path(picture).write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL), encoding="utf-8")
