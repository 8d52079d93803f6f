"""From a draft to a notice with the jobs that deliver it, one for each channel."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from perdure.domain.alerts.alert import Delivery, Notice
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import NewJob
from perdure.kinds.encoding import encode
from perdure.policy.alerts.wording import Draft

_ID_BYTES: Final = 8


def new_id() -> str:
    """The id of a new alert or notice."""
    return secrets.token_hex(_ID_BYTES)


def notice_to(
    draft: Draft, channels: Iterable[str], now: datetime, rule: str | None = None
) -> tuple[Notice, list[NewJob]]:
    """The notice, and the jobs that carry it through these channels."""
    notice_id = new_id()
    jobs = [
        NewJob(
            id=new_job_id(),
            kind=ALERT_KIND,
            queue=ALERT_QUEUE,
            args=encode({"notice": notice_id, "channel": channel}),
            tags=(f"channel:{channel}",),
        )
        for channel in channels
    ]
    notice = Notice(
        id=notice_id,
        sort=draft.sort,
        rule=rule,
        severity=draft.severity,
        title=draft.title,
        body=draft.body,
        path=draft.path,
        at=now,
        alerts=draft.alerts,
        count=draft.count,
        keys=draft.keys,
        deliveries=tuple(
            Delivery(channel=channel, job_id=job.id, changed_at=now)
            for channel, job in zip(channels, jobs, strict=True)
        ),
    )
    return notice, jobs
