"""Jobs whose steps have gates before them, in processes of their own."""

from __future__ import annotations

from perdure import App, Breaker, Budget, Context, Rate, Retry, SyncContext

app = App("sqlite:///unused.db", retry=Retry(attempts=1))
CALLS = Rate(1, "1d", name="psi")


def fetch(url: str) -> str:
    return f"read {url}"


async def fetch_later(url: str) -> str:
    return f"read {url}"


def refuse() -> None:
    raise OSError("down")


@app.job(isolate=True)
def plain(ctx: SyncContext, url: str) -> str:
    """A step with a rate, a budget and a breaker, from a sync handler."""
    text = ctx.step("fetch", fetch, url, gates=[CALLS, Budget("ai", daily=9, estimate=1)], breaker=Breaker("psi"))
    ctx.spend(0.5)
    return text


@app.job(isolate=True)
async def eventual(ctx: Context, url: str) -> str:
    """The same, from an async one."""
    return await ctx.step("fetch", fetch_later, url, gates=[CALLS])


@app.job(isolate=True)
def broken(ctx: SyncContext) -> None:
    """A step that fails at its breaker."""
    ctx.step("call", refuse, breaker=Breaker("down", failures=1))
