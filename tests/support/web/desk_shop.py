"""A shop whose jobs succeed, fail, wait and die: what the seeded desk shows. Handlers take time by moving the clock."""

from __future__ import annotations

from datetime import timedelta

from perdure import App, Backoff, Breaker, Budget, Concurrency, Context, Jitter, Permanent, Rate, Retry
from perdure.clock import ManualClock

app = App("sqlite:///unused.db")
PATIENT = Retry(attempts=5, backoff=Backoff.table("30s", "1m", "2m", "4m"), jitter=Jitter.none())


class Time:
    """The clock that handlers move; the seed puts its own here."""

    clock = ManualClock()


def take(seconds: float) -> None:
    """Let time pass inside a handler."""
    Time.clock.move(timedelta(seconds=seconds))


def reserve(order: int) -> dict[str, int]:
    """Reserve the goods of an order."""
    take(4.1)
    return {"order": order, "reserved": 3}


def charge(order: int, gateway: str) -> str:
    """Charge the card; one gateway is down."""
    if gateway == "eu-2":
        take(30)
        raise TimeoutError(f"gateway {gateway} did not answer in 30 s (request {order * 7919})")
    take(0.9)
    return f"ch_{order}"


@app.job(queue="payments", retry=PATIENT, breaker=Breaker("payments", failures=400, window="10m", open_for="2m"))
async def charge_card(ctx: Context, order: int, gateway: str = "eu-1", amount: float = 49.9) -> str:
    """Reserve, charge, send the receipt."""
    await ctx.step("reserve_stock", reserve, order)
    ctx.log.info("charging", order=order, gateway=gateway, amount=amount)
    number = await ctx.step("charge", charge, order, gateway)
    await ctx.step("send_receipt", take, 0.2)
    return number


@app.job(queue="mail", retry=Retry(attempts=3, backoff=Backoff.fixed("1m"), jitter=Jitter.none()))
async def send_mail(to: str, subject: str) -> None:
    """Send one mail; some users are unknown."""
    take(0.3)
    if "nobody" in to:
        raise Permanent(f"550 {to}: user unknown")


@app.job(queue="imports", retry=Retry(attempts=2, backoff=Backoff.fixed("20s"), jitter=Jitter.none()))
async def import_file(ctx: Context, path: str, rows: int) -> int:
    """Import a file chunk by chunk."""
    if not path.endswith(".csv"):
        raise Permanent(f"{path} is not a CSV file")
    done = await ctx.gather(import_chunk.call(path, chunk, rows // 4) for chunk in range(4))
    return sum(done)


@app.job(queue="imports")
async def import_chunk(path: str, chunk: int, rows: int) -> int:
    """Import one chunk."""
    take(2.5)
    if chunk == 3 and "broken" in path:
        raise ValueError(f"line {rows * 3 + 17}: unknown column 'prize'")
    return rows


@app.job(queue="imports")
async def publish_catalogue(ctx: Context, season: str) -> int:
    """Make the pages of a catalogue, and export it twice."""
    pages = [make_page.call(season, number) for number in range(4)]
    exports = [export_page.call(season, number) for number in range(2)]
    return len(await ctx.gather([*pages, *exports], name="catalogue"))


@app.job(queue="images")
async def make_page(season: str, page: int) -> int:
    """Make one page."""
    take(1.5)
    return page


@app.job(queue="exports")
async def export_page(season: str, page: int) -> int:
    """Export one page."""
    take(1.5)
    return page


@app.job(queue="certificates")
async def issue_certificate(ctx: Context, domain: str) -> str:
    """Ask a person, then issue."""
    answer = await ctx.approval("issue", timeout="168h")
    return f"{domain}: {answer.approved}"


@app.job(queue="payments")
async def refund(ctx: Context, order: int, amount: float) -> str:
    """A refund over 500 needs a person."""
    answer = await ctx.approval("refund over 500 €", timeout="48h")
    return f"{order}: {answer.approved}"


@app.job(queue="default", gates=[Budget("openai", daily=5.0, estimate=0.5)])
async def summarise(ctx: Context, document: int) -> str:
    """Costs money."""
    take(6)
    await ctx.spend(0.9)
    return f"summary of {document}"


@app.job(queue="reports", gates=[Rate(6, "1m"), Concurrency(2)])
async def nightly_report(ctx: Context, day: str) -> str:
    """A long one."""
    await ctx.step("collect", take, 40)
    await ctx.sleep("1h")
    return day


@app.job(queue="pulse")
async def heartbeat(ctx: Context) -> None:
    """Every minute."""
    take(0.01)


@app.job(queue="reports")
async def digest(ctx: Context) -> None:
    """Every night."""
    take(12)
