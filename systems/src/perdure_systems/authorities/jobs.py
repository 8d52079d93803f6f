"""Certificates from slow authorities, as jobs.

An order is one job: it places the order, polls until the authority has issued the certificate, verifies the chain and
keeps it. Between polls the job is parked in the database. It holds no worker, no thread and no connection, and comes
back after a restart with its count of polls.

The original wrote a poller of its own for this. It occupied a worker for up to 24 hours, its scheduler's 2-minute limit
would have interrupted a 10-minute poll, and its jitter was 0.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from perdure import App, Backoff, Context, Handle, Jitter, Unique
from perdure_systems.authorities.chains import verify
from perdure_systems.authorities.connectors import Order, Placed, Reason, connector_for
from perdure_systems.authorities.csr import SigningRequest
from perdure_systems.authorities.records import Certificate, certificate_of, keep, note_revocation
from perdure_systems.authorities.settings import Authority, max_wait_of, read_settings
from perdure_systems.authorities.triage import HTTP
from perdure_systems.authorities.wire import WIRES
from perdure_systems.kit.database import Database, Session

WAITS: Final = Backoff.table("5s", "15s", "45s", "2m", "5m")
JITTER: Final = Jitter.ratio(0.2)
ORDER_KIND: Final = "authorities.order"
REVOKE_KIND: Final = "authorities.revoke"
QUEUE: Final = "authorities"

app = App()
database = Database(app, "authorities", Path(__file__).with_name("migrations"))


@app.lifespan
async def connections() -> AsyncIterator[None]:
    """Have the tables before the first job, and close the connections to the authorities after the last one."""
    await database.migrate()
    yield
    await WIRES.close()


@app.job(
    name=ORDER_KIND,
    queue=QUEUE,
    triage=HTTP,
    keep="90d",
    state_words={
        "ready": "queued",
        "running": "asking",
        "waiting": "parked",
        "retrying": "parked",
        "succeeded": "issued",
        "dead": "failed",
    },
)
async def order_certificate(ctx: Context, authority: Authority, csr: str, names: tuple[str, ...]) -> str:
    """Order a certificate and keep it once it is issued; its serial number."""
    order = Order(csr=csr, names=names, reference=ctx.ref or str(ctx.job_id))
    round_of = max_wait_of(authority)
    placed = await ctx.poll("place", place, authority, order, every=WAITS, jitter=JITTER, within=round_of)
    pem = await ctx.poll(
        "collect", collect, authority, placed.id, order.reference, every=WAITS, jitter=JITTER, within=round_of
    )
    roots = read_settings(authority).trusted_roots
    verified = verify(authority.title, placed.id, pem, csr, roots, ctx.claimed_at)
    async with ctx.transaction() as connection:
        record = certificate_of(order.reference, authority, placed.id, verified, ctx.claimed_at)
        await keep(Session(connection), record)
    ctx.log.info("certificate issued", authority=authority.value, order=placed.id, serial=verified.serial)
    return verified.serial


async def place(authority: Authority, order: Order) -> Placed:
    """Place the order; returns the authority's id for it. A busy authority is retried at the times of the polls."""
    return await connector_for(authority).place(order)


async def collect(authority: Authority, order_id: str, reference: str) -> str:
    """Ask once whether the certificate is there; its PEM text."""
    return await connector_for(authority).collect(order_id, reference)


@app.job(name=REVOKE_KIND, queue=QUEUE, triage=HTTP, priority=3, unique=Unique(by="order_id"), keep="90d")
async def revoke_certificate(
    ctx: Context, order_id: str, authority: Authority, authority_order: str, serial: str, reason: Reason
) -> None:
    """Revoke a certificate at its authority, and note it."""
    await connector_for(authority).revoke(authority_order, serial, reason, order_id)
    async with ctx.transaction() as connection:
        await note_revocation(Session(connection), order_id, reason, ctx.claimed_at)
    ctx.log.info("certificate revoked", authority=authority.value, serial=serial, reason=reason.value)


async def issue(authority: Authority, request: SigningRequest, reference: str | None = None) -> Handle[str]:
    """Place an order; it is stored when this returns, and its id is the job's ref (D1).

    The same reference again is the same order. Raises SettingsError if the authority is not configured.
    """
    read_settings(authority)
    max_wait_of(authority)
    order_id = f"ord-{reference or secrets.token_hex(6)}"
    job = order_certificate.using(ref=order_id, tags=(f"authority:{authority}", f"name:{request.common_name}"[:100]))
    return await job.enqueue(authority, request.pem, request.names)


async def revoke(certificate: Certificate, reason: Reason) -> None:
    """Have a certificate revoked; one revocation at a time."""
    job = revoke_certificate.using(tags=(f"order:{certificate.order_id}",))
    await job.enqueue(
        certificate.order_id, certificate.authority, certificate.authority_order, certificate.serial, reason
    )
