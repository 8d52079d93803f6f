"""Messages to the owner of a certificate, each sent once: a ref makes a second message impossible."""

from __future__ import annotations

from datetime import datetime

from perdure import JobState, JobView
from perdure_systems.certificates.jobs import database
from perdure_systems.certificates.records import BY_ID, Certificate, mark_failed
from perdure_systems.certificates.settings import read_settings
from perdure_systems.notifications.jobs import notify


async def tell_of_failure(job: JobView) -> None:
    """A job has ended without a certificate: the request has failed, and the owner learns of a job that died."""
    wanted = await database.one(Certificate, BY_ID, {"id": (job.arguments or {}).get("certificate", "")})
    if wanted is None or wanted.job_id != str(job.id):
        return  # it was deleted, or another job is at work
    async with database.transaction() as session:
        await mark_failed(session, wanted.id)
    if job.state == JobState.DEAD:
        await _tell(
            wanted,
            f"certificate-failed:{job.id}:{job.finished_at}",
            f"No certificate for {wanted.common_name}",
            f"Job {job.id} has failed for good: {job.last_error}",
        )


async def tell_of_late_renewal(one: Certificate, now: datetime) -> bool:
    """Once half of the time for its renewal has passed, notify the owner daily; returns whether a message was sent."""
    if one.not_after is None or one.renew_at is None or now < one.renew_at + (one.not_after - one.renew_at) / 2:
        return False
    left = one.not_after - now
    when = f"expires in {left.days} days" if left.days > 0 else f"expires in {left.seconds // 3600} hours"
    return await _tell(
        one,
        f"certificate-expiry:{one.id}:{now.date()}",
        f"{one.common_name} {when if left.total_seconds() > 0 else 'has expired'}",
        f"Its certificate is valid until {one.not_after:%Y-%m-%d %H:%M} UTC and was not renewed.",
    )


async def _tell(one: Certificate, ref: str, subject: str, body: str) -> bool:
    message = await notify.using(ref=ref).enqueue(
        channel=read_settings().notify_channel,
        subject=subject,
        body=f"{body} Owner: {one.owner}.",
        recipient=one.owner if "@" in one.owner else None,
    )
    return message.is_new
