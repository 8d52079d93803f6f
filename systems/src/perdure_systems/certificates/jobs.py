"""A certificate from request to signature, as one job.

The original had a table of jobs, a processor that polled it, a retry loop that never counted, and a reaper for jobs
that waited for a person. Here the handler waits for the person itself, and holds no worker meanwhile.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from perdure import (
    App,
    Backoff,
    Context,
    EventTimeout,
    Jitter,
    JobState,
    JobView,
    Permanent,
    Retry,
    Unique,
    WorkerSettings,
)
from perdure_systems.certificates.records import BY_ID, MIGRATIONS, Certificate, save_signed
from perdure_systems.certificates.settings import read_settings
from perdure_systems.certificates.signing import Authority, Signed, make_csr
from perdure_systems.kit.database import Database, Session

ISSUE: Final = "certificates.issue"
QUEUE: Final = "certificates"
APPROVAL: Final = "issue"
SILENCE: Final = timedelta(minutes=5)  # a worker or an agent that is silent for so long loses its jobs

app = App(
    include="perdure_systems.certificates.loops",
    worker=WorkerSettings(audit=("retry", "rescue", "death", "cancel"), heartbeat="1m", lease=SILENCE),
)
database = Database(app, "certificates", MIGRATIONS)


def retry_policy() -> Retry:
    """So many attempts, with the interval of the retry loop between them."""
    settings = read_settings()
    return Retry(attempts=settings.max_attempts, backoff=Backoff.fixed(settings.retry_interval), jitter=Jitter.none())


@app.job(
    name=ISSUE,
    queue=QUEUE,
    retry=retry_policy,
    unique=Unique(by="certificate"),
    state_words={
        "scheduled": "Pending",
        "ready": "Pending",
        "running": "Running",
        "retrying": "Failed",
        "waiting": "Awaiting",
        "paused": "Paused",
        "succeeded": "Completed",
        "dead": "Failed",
        "cancelled": "Cancelled",
    },
)
async def issue(ctx: Context, certificate: str) -> str:
    """Wait for a CSR and for approval where the certificate needs them, sign, and store; returns the serial number."""
    wanted = await find(certificate)
    settings = read_settings()
    csr = await _csr(ctx, wanted, settings.awaiting_csr)
    if wanted.needs_approval:
        await _approval(ctx, settings.awaiting_approval)
    signed = await ctx.step("sign", _sign, wanted.id, csr)
    async with ctx.transaction() as connection:  # the certificate and the end of its job are one transaction
        await save_signed(Session(connection), wanted.id, signed)
    return signed.serial


async def find(certificate: str) -> Certificate:
    """The certificate of this id; one that was deleted is a permanent error."""
    found = await database.one(Certificate, BY_ID, {"id": certificate})
    if found is None:
        raise Permanent(f"certificate {certificate} does not exist any more")
    return found


async def _csr(ctx: Context, wanted: Certificate, patience: timedelta) -> str:
    if not wanted.needs_csr:
        return await ctx.step("csr", _own_csr, wanted.common_name)
    try:
        return await ctx.wait_for(csr_event(ctx.job_id), timeout=patience, as_type=str)
    except EventTimeout:
        raise Permanent(f"AwaitingCSR expired: no CSR came within {_hours(patience)}") from None


async def _approval(ctx: Context, patience: timedelta) -> None:
    try:
        answer = await ctx.approval(APPROVAL, timeout=patience)
    except EventTimeout:
        raise Permanent(f"AwaitingApproval expired: no answer came within {_hours(patience)}") from None
    if not answer.approved:
        raise Permanent(f"refused by {answer.by}{f': {answer.note}' if answer.note else ''}")


async def _own_csr(common_name: str) -> str:
    return make_csr(common_name)[0]


async def _sign(certificate: str, csr: str) -> Signed:
    wanted = await find(certificate)
    now = await (await app.desk("app:certificates")).now()
    lifetime = timedelta(hours=wanted.lifetime_hours)
    names = [wanted.common_name, *(name for name in wanted.sans if name != wanted.common_name)]
    return await asyncio.to_thread(Authority(read_settings().ca_folder).sign, csr, names, lifetime, now)


def csr_event(job_id: str) -> str:
    """The event by which a job learns its CSR."""
    return f"certificates.csr:{job_id}"


def status_of(view: JobView) -> str:
    """The original's word for where a job stands."""
    if view.state is not JobState.WAITING:
        return view.word or str(view.state)
    return "AwaitingCSR" if (view.awaits or "").startswith("event:certificates.csr:") else "AwaitingApproval"


async def request(session: Session, certificate: str) -> str:
    """Enqueue the job of a certificate in the caller's own transaction; the id of the job, new or already there."""
    tagged = issue.using(connection=session.connection, tags=[tag(certificate)])
    return str((await tagged.enqueue(certificate)).id)


def tag(certificate: str) -> str:
    """The tag by which the jobs of a certificate are found."""
    return f"certificate:{certificate}"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g} hours"
