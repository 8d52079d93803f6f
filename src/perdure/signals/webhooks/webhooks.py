"""Webhooks of an app: its workers read the event log, and deliver."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from perdure.app.app import App
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.operate.webhook import QUEUE, Webhook
from perdure.errors import SettingsError
from perdure.kinds.options import checked_name
from perdure.operate.commands.feed import event_filter
from perdure.policy.outbound.target import read_target
from perdure.policy.retries.retry import Retry
from perdure.policy.secrets.secret import Secret
from perdure.signals.webhooks.delivery import DELIVERY_RETRY, Declared, Deliverer
from perdure.signals.webhooks.dispatcher import Dispatcher
from perdure.signals.webhooks.sender import TIMEOUT, Sender
from perdure.worker.settings import Queue

_LOOP: Final = "perdure webhooks"
_TICK_LIMIT: Final = "30s"
_NAME_LIMIT_CHARACTERS: Final = 100


class Webhooks:
    """Have the workers of an app deliver webhooks: `webhooks = Webhooks(app)`.

    Webhooks are declared here with `to`, and at run time with `perdure webhooks`, the API or `desk.webhooks`.
    Deliveries are jobs of the kind `perdure.webhook` in the queue `perdure-webhooks`; a worker runs `concurrency` of
    them at once beside its other jobs. `allow_private` is True, or lists networks and host names, for
    receivers that have no public address. `every` is how often one worker of the fleet looks for new events.
    """

    def __init__(
        self,
        app: App,
        *,
        allow_private: bool | Collection[str] = False,
        retry: Retry = DELIVERY_RETRY,
        timeout: Duration = TIMEOUT,
        concurrency: int = 10,
        every: Duration = "1s",
        sender: Sender | None = None,
    ) -> None:
        self._declared: dict[str, Declared] = {}
        chosen = sender or Sender(allow_private=allow_private)
        limit = parse_duration("timeout", timeout, error=SettingsError)
        deliverer = Deliverer(app.store, chosen, self._declared, limit)
        self.dispatcher = Dispatcher(app.store, app.events, self._declared, app.enqueued)

        async def dispatch() -> None:
            await self.dispatcher.tick()

        app.every(every, limit=_TICK_LIMIT, per="fleet", name=_LOOP)(dispatch)
        app.serve_own(deliverer.kind(retry), Queue(QUEUE, concurrency=concurrency, reserved=True))

    def to(
        self,
        name: str,
        url: str,
        *,
        secret: str | Secret[str],
        events: Iterable[str] = (),
        queues: Iterable[str] = (),
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> None:
        """Declare a webhook. Its secret stays in this process: it is not stored.

        `events` lists `job.succeeded`, `job.died`, `job.cancelled` and `schedule.missed`. An omitted
        list selects everything; a job needs only one of the `tags`.
        """
        if checked_name("name", name, _NAME_LIMIT_CHARACTERS) in self._declared:
            raise SettingsError(f"webhook {name}", "is declared twice: give one another name")
        read_target(url)
        kept = secret if isinstance(secret, Secret) else Secret(secret)
        if not isinstance(kept.reveal(), str) or not kept.reveal():
            raise SettingsError("secret", f"of webhook {name} must be a text that is not empty")
        wants = event_filter(events, queues, kinds, tags)
        self._declared[name] = Declared(Webhook(name=name, url=url, wants=wants, is_declared=True), kept)
