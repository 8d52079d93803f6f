"""Makes deliveries of events: one process of the fleet reads the log and creates a job for each event and webhook.

Each webhook has a cursor. First the jobs are stored, then the cursor moves. A process that dies in between leaves the
cursor where it was, and the next one stores the same jobs again: their refs exist already, so no job is created twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import DEFAULT_KEEP, LoggedEvent, read_cursor
from perdure.domain.operate.webhook import QUEUE, WebhookView
from perdure.enqueue.counts import EnqueueCounts
from perdure.errors import ConflictError, EventsGone
from perdure.events import Emitter, WebhookSkipped
from perdure.operate.commands.webhooks import delivery_of
from perdure.signals.webhooks.delivery import Declared
from perdure.storage.port import Store

_EVENTS_PER_CALL: Final = 500
_CALLS_PER_TICK: Final = 20  # for one webhook
_CODE: Final = By("app", source="code")


class Dispatcher:
    """Creates the deliveries of all webhooks that are not paused. `tick` returns how many."""

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        emitter: Emitter,
        declared: Mapping[str, Declared],
        enqueued: EnqueueCounts,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._declared = declared
        self._enqueued = enqueued

    async def tick(self) -> int:
        """Store the webhooks declared in code, then create deliveries."""
        store = await self._store()
        hooks = await self._known(store)
        made = sum([await self._deliver(store, hook) for hook in hooks if hook.paused_at is None])
        if made:
            store.ring({QUEUE})
        return made

    async def _known(self, store: Store) -> list[WebhookView]:
        hooks = await store.webhooks()
        stored = {hook.webhook.name: hook.webhook for hook in hooks}
        changed = [one.webhook for name, one in self._declared.items() if stored.get(name) != one.webhook]
        if not changed:
            return hooks
        state = await store.event_log()
        if not state.is_on:
            state = await store.switch_event_log(DEFAULT_KEEP, _CODE)
        for webhook in changed:
            await store.save_webhook(webhook, None, state.end, _CODE)
        return await store.webhooks()

    async def _deliver(self, store: Store, hook: WebhookView) -> int:
        made = 0
        cursor = read_cursor("cursor", hook.cursor)
        for _ in range(_CALLS_PER_TICK):
            try:
                events = await store.read_events(cursor, _EVENTS_PER_CALL)
            except EventsGone as gone:
                await self._skip(store, hook, str(gone))
                break
            except ConflictError:  # the log was switched off while the webhook was made
                await store.switch_event_log(DEFAULT_KEEP, _CODE)
                break
            made += await self._store_jobs(store, hook, events)
            if not events:
                break
            to = read_cursor("id", events[-1].id)
            if not await store.move_webhook(hook.webhook.name, cursor, to) or len(events) < _EVENTS_PER_CALL:
                break
            cursor = to
        return made

    async def _store_jobs(self, store: Store, hook: WebhookView, events: list[LoggedEvent]) -> int:
        jobs = [delivery_of(hook.webhook.name, event) for event in events if hook.webhook.is_sent(event)]
        if jobs:
            self._enqueued.note(jobs, await store.insert(jobs))
        return len(jobs)

    async def _skip(self, store: Store, hook: WebhookView, why: str) -> None:
        """Continue from now: the events in between are deleted."""
        end = (await store.event_log()).end
        if await store.move_webhook(hook.webhook.name, read_cursor("cursor", hook.cursor), end):
            self._emitter.emit(WebhookSkipped(hook.webhook.name, why))
