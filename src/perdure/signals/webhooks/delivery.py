"""One delivery: the job that tells one receiver of one event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from perdure.domain.jobs.verdicts import CancelJob, Snooze
from perdure.domain.operate.webhook import DELIVERY, QUEUE, Webhook
from perdure.kinds.kind import Kind, Mode
from perdure.kinds.signature import Signature
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry
from perdure.policy.secrets.secret import Secret
from perdure.signals.webhooks.sender import Sender
from perdure.signals.webhooks.signing import delivery_headers
from perdure.storage.port import Store
from perdure.worker.attempt.context.context import Context

DELIVERY_RETRY: Final = Retry(
    attempts=8, backoff=Backoff.table("30s", "1m", "5m", "15m", "1h", "3h", "6h"), jitter=Jitter.ratio(0.2)
)
"""Eight attempts within about ten hours; then the delivery is a dead letter, which can be requeued."""

_UNDECLARED_RETRY: Final = "1m"


class Declared(Struct, frozen=True):
    """A webhook that code declares. Its secret stays in this process."""

    webhook: Webhook
    secret: Secret[str]


class Delivered(Struct, frozen=True):
    """What the receiver answered."""

    status: int
    seconds: float


class Deliverer:
    """Sends deliveries. URL and secret are read for each attempt, so that a change applies to retries too."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        sender: Sender,
        declared: Mapping[str, Declared],
        timeout: timedelta,
    ) -> None:
        self._store = store
        self._sender = sender
        self._declared = declared
        self._timeout = timeout

    def kind(self, retry: Retry) -> Kind:
        """The kind of the jobs that it runs."""

        async def deliver(ctx: Context, webhook: str, event: dict[str, Any]) -> Delivered:
            return await self.deliver(ctx.job_id, ctx.attempt, retry.attempts, webhook, event)

        return Kind(
            name=DELIVERY,
            handler=deliver,
            signature=Signature(deliver, Context),
            mode=Mode.TASK,
            retry=retry,
            queue=QUEUE,
        )

    async def deliver(
        self, delivery_id: str, attempt: int, attempts: int | None, webhook: str, event: dict[str, Any]
    ) -> Delivered:
        """Send one event once; raises SendFailed or SendRefused, and CancelJob if the webhook was deleted."""
        url, secret = await self._receiver(webhook)
        answer = await self._sender.send(
            url,
            msgspec.json.encode({"webhook": webhook, **event}),
            secret=secret,
            headers=delivery_headers(delivery_id, attempt, attempts),
            timeout=self._timeout,
        )
        return Delivered(answer.status, answer.seconds)

    async def _receiver(self, name: str) -> tuple[str, Secret[str] | None]:
        if (declared := self._declared.get(name)) is not None:
            return declared.webhook.url, declared.secret
        store = await self._store()
        for view in await store.webhooks():
            if view.webhook.name == name:
                if view.webhook.is_declared:
                    raise Snooze(
                        _UNDECLARED_RETRY, f"webhook {name!r} is declared in code that this worker does not have"
                    )
                secret = await store.webhook_secret(name)
                return view.webhook.url, None if secret is None else Secret(secret)
        raise CancelJob(f"webhook {name!r} was deleted")
