"""A certificate from request to signature, as one job.

The original had a table of jobs, a processor that polled it, a retry loop that never counted, and a reaper for jobs
that waited for a person. Here the handler waits for the person itself, and holds no worker meanwhile.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from perdure import (
    App,
    Backoff,
    Context,
    Desk,
    EventTimeout,
    Jitter,
    JobState,
    JobView,
    Permanent,
    Retry,
    Unique,
    WorkerSettings,
)
from perdure_systems.certificates.records import BY_ID, MIGRATIONS, Certificate, note_job, save_signed
from perdure_systems.certificates.settings import read_settings
from perdure_systems.certificates.signing import Authority, Signed
from perdure_systems.kit.database import Database, Session

ISSUE: Final = "certificates.issue"
QUEUE: Final = "certificates"
APPROVAL: Final = "issue"
ACTOR: Final = "app:certificates"
SILENCE_LIMIT: Final = timedelta(minutes=5)  # a worker that is silent for so long loses its jobs, an agent is offline
STATUS_OF: Final = {
    "scheduled": "Pending",
    "ready": "Pending",
    "running": "Running",
    "retrying": "Pending",  # an attempt has failed, and another one follows
    "waiting": "Awaiting",  # for a CSR or for approval: see `status_of`
    "paused": "Paused",
    "succeeded": "Completed",
    "dead": "Failed",
    "cancelled": "Cancelled",
}

app = App(
    include="perdure_systems.certificates.loops",
    worker=WorkerSettings(audit=("retry", "rescue", "death", "cancel"), heartbeat="1m", lease=SILENCE_LIMIT),
)
database = Database(app, "certificates", MIGRATIONS)


def retry_policy() -> Retry:
    """So many attempts, with the interval of the retry loop between them."""
    settings = read_settings()
    return Retry(attempts=settings.max_attempts, backoff=Backoff.fixed(settings.retry_interval), jitter=Jitter.none())


@app.job(name=ISSUE, queue=QUEUE, retry=retry_policy, unique=Unique(by="certificate"), state_words=STATUS_OF)
async def issue(ctx: Context, certificate: str) -> str:
    """Wait for a CSR and for approval where the certificate needs them, sign, and store; returns the serial number."""
    wanted = await find(certificate)
    settings = read_settings()
    csr = await _csr(ctx, wanted, settings.awaiting_csr)
    if wanted.needs_approval:
        await _approval(ctx, settings.awaiting_approval)
    signed = await ctx.step("sign", _sign, wanted.id, csr)
    lifetime = timedelta(hours=wanted.lifetime_hours)
    renew_at = signed.not_after - min(timedelta(days=settings.renew_before_days), lifetime / 3)
    async with ctx.transaction() as connection:  # the certificate and the end of its job are one transaction
        if not await save_signed(Session(connection), wanted.id, signed, renew_at):
            raise Permanent(_gone(wanted.id))
    return signed.serial


async def desk() -> Desk:
    """The desk under the name of this system."""
    return await app.desk(ACTOR)


async def now() -> datetime:
    """The database's clock."""
    return await (await desk()).now()


async def find(certificate: str) -> Certificate:
    """The certificate of this id; one that was deleted is a permanent error."""
    found = await database.one(Certificate, BY_ID, {"id": certificate})
    if found is None:
        raise Permanent(_gone(certificate))
    return found


def _gone(certificate: str) -> str:
    return f"certificate {certificate} does not exist any more"


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
    return await asyncio.to_thread(Authority(read_settings().ca_folder).make_key, common_name)


async def _sign(certificate: str, csr: str) -> Signed:
    wanted = await find(certificate)
    lifetime = timedelta(hours=wanted.lifetime_hours)
    names = [wanted.common_name, *(name for name in wanted.sans if name != wanted.common_name)]
    return await asyncio.to_thread(Authority(read_settings().ca_folder).sign, csr, names, lifetime, await now())


def csr_event(job_id: str) -> str:
    """The event by which a job learns its CSR."""
    return f"certificates.csr:{job_id}"


def status_of(view: JobView) -> str:
    """The original's word for a job's state."""
    if view.state is not JobState.WAITING:
        return view.word or str(view.state)
    return "AwaitingCSR" if (view.awaits or "").startswith("event:certificates.csr:") else "AwaitingApproval"


async def request(session: Session, certificate: str, *, by: str, because: str) -> tuple[str, bool]:
    """Enqueue the job of a certificate in the caller's own transaction; its id, and whether it is a new one."""
    meta: dict[str, Any] = {"requested_by": by, "because": because}
    handle = await issue.using(connection=session.connection, tags=[tag(certificate)], meta=meta).enqueue(certificate)
    await note_job(session, certificate, str(handle.id))
    return str(handle.id), handle.is_new


def tag(certificate: str) -> str:
    """The tag by which the jobs of a certificate are found."""
    return f"certificate:{certificate}"


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g} hours"
