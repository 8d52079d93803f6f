"""What type checkers make of jobs, handles and children, as a user writes them: mypy reads this, none of it is run."""

from __future__ import annotations

from typing import assert_type

from perdure import (
    App,
    Context,
    Desk,
    Handle,
    JobView,
    Queue,
    Rate,
    Retry,
    Worker,
    WorkerSettings,
)

app = App("sqlite:///jobs.db", worker=WorkerSettings(queues=[Queue("mail", weight=3), "reports@2"], lease="1m"))


@app.job(queue="mail", retry=Retry(attempts=8), timeout="30s", gates=[Rate(10, "1m")])
async def send_mail(to: str, copies: int = 1) -> int:
    return len(to) * copies


@app.job
def render(pages: int) -> str:
    return f"{pages} pages"


@app.job
async def publish(pages: str, title: str) -> bool:
    return bool(pages and title)


async def enqueues() -> None:
    """Arguments are checked against the handler's signature, and a handle knows its result."""
    handle = await send_mail.enqueue("ada@example.org", copies=2)
    assert_type(handle, Handle[int])
    assert_type(await handle.result("5s"), int)
    assert_type(await handle.view(), JobView)
    assert_type(render.enqueue_sync(3), Handle[str])
    assert_type(render.enqueue_sync(3).result_sync(), str)
    assert_type(await render.using(delay="5m", priority=3).enqueue(7), Handle[str])
    assert_type(await app.enqueue_many([render.call(1), send_mail.call("ada@example.org")]), list[Handle[object]])
    await send_mail.enqueue(3)  # type: ignore[arg-type] # that is the point
    await send_mail.enqueue("ada@example.org", copy=2)  # type: ignore[call-arg] # as above
    await render.using(delay="5m").enqueue()  # type: ignore[call-arg] # as above
    render.call("three")  # type: ignore[arg-type] # as above


async def parent(ctx: Context) -> None:
    """Children give back what their handlers return."""
    assert_type(await ctx.gather([render.call(1), render.call(2)]), list[str])
    family = await ctx.spawn([send_mail.call("ada@example.org")])
    assert_type(await ctx.gather(family), list[int])
    collected = await ctx.gather([render.call(1)], failures="collect")
    assert_type(collected[0].value, str | None)
    publish.after("Title")
    publish.after(3)  # type: ignore[arg-type] # the title is text
    ctx.gather([render.call("one")])  # type: ignore[arg-type] # as above


async def operates() -> None:
    """The app makes workers and desks."""
    assert_type(await app.worker(), Worker)
    assert_type(await app.desk("ada"), Desk)
