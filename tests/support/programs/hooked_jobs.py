"""Jobs whose app has a lifespan and middleware, run in processes of their own: each appends what happens to a file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from perdure import App, Context, Retry

TRAIL: Final = "PERDURE_TEST_TRAIL"
app = App("sqlite:///unused.db", retry=Retry(attempts=1))


def note(what: str) -> None:
    """Append a line, with the process that wrote it."""
    with Path(os.environ[TRAIL]).open("a") as file:
        file.write(f"{os.getpid()} {what}\n")


@app.lifespan
async def client() -> AsyncIterator[None]:
    note("open client")
    yield
    note("close client")


@app.lifespan
def pool() -> Iterator[None]:
    note("open pool")
    yield
    note("close pool")


@app.middleware
async def tenant(ctx: Context) -> AsyncIterator[None]:
    note(f"before {ctx.kind}")
    yield
    note(f"after {ctx.kind}")


@app.job(isolate=True)
async def work_async() -> int:
    note("work_async")
    return os.getpid()


@app.job(isolate=True)
def work_sync() -> int:
    note("work_sync")
    return os.getpid()
