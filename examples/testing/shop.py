"""A small shop. Work that may fail or take long is a job; `test_shop.py` beside this file tests them."""

from __future__ import annotations

from perdure import App, Backoff, Context, Jitter, Retry, Unique

app = App(queues=["default", "mail"])

outbox: list[tuple[str, str]] = []


class CardDeclinedError(Exception):
    """The bank says no, and will say so tomorrow."""


class Bank:
    """Where the money comes from; tests put a bank of their own in its place."""

    def charge(self, order: int, cents: int) -> str:
        """Take the money and return the bank's reference."""
        raise ConnectionError(f"no line to the bank (order {order}, {cents} cents)")


bank = Bank()


@app.job(retry=Retry(attempts=3, backoff=Backoff.exponential("1m"), jitter=Jitter.none(), permanent=CardDeclinedError))
def charge_card(ctx: Context, order: int, email: str, cents: int) -> str:
    """Try three times, after one and two minutes; a declined card is final at once."""
    reference = bank.charge(order, cents)
    send_mail.enqueue_sync(email, f"Thank you for order {order}")
    ctx.log.info("charged", reference=reference)
    return reference


@app.job(queue="mail", unique=Unique(by=("to", "subject")))
async def send_mail(to: str, subject: str) -> None:
    """Never twice the same while the first is on its way."""
    outbox.append((to, subject))


async def place_order(order: int, email: str, cents: int) -> None:
    """What the web page calls."""
    await charge_card.using(priority=1).enqueue(order, email, cents)
    await send_mail.using(delay="3d", tags=["survey"]).enqueue(email, "How was it?")


def place_order_sync(order: int, email: str, cents: int) -> None:
    """The same for a page without an event loop."""
    charge_card.using(priority=1).enqueue_sync(order, email, cents)
    send_mail.using(delay="3d", tags=["survey"]).enqueue_sync(email, "How was it?")
