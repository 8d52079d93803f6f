"""Operators' views and commands for webhooks. A stored secret is never shown again."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import NewJob, Receipt
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import DEFAULT_KEEP, LoggedEvent
from perdure.domain.operate.webhook import DELIVERY, QUEUE, Webhook, WebhookView
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.options import checked_name
from perdure.operate.audit_trail import checked_why
from perdure.operate.commands.feed import event_filter
from perdure.operate.masking import shown_job
from perdure.operate.wording import listed
from perdure.policy.outbound.target import read_target, shown_url
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

TEST: Final = "webhook.test"
"""The type of the event that `test` sends."""

_NAME_LIMIT_CHARACTERS: Final = 100
_SHORTEST_SECRET_CHARACTERS: Final = 16
_LONGEST_SECRET_CHARACTERS: Final = 500
_PREFIX: Final = "whs_"
_TAG: Final = "webhook:"
_RETRYING: Final = JobFilter(kind=DELIVERY, queue=QUEUE, states=frozenset({JobState.RETRYING}))
_DELIVERIES_READ: Final = 200


class Retrying(Struct, frozen=True, kw_only=True):
    """Deliveries of one webhook that failed and are retried, the oldest of them made at `since`.

    `capped`: there may be more, and older ones. `last_error` is the error of the newest delivery.
    """

    deliveries: int
    capped: bool
    since: datetime
    last_error: str | None


class Webhooks:
    """Webhooks of an open store, and commands recorded in the audit trail under `by`.

    Views show URLs without the values of their query, and no secret.
    """

    def __init__(self, store: Store, by: By) -> None:
        self._store = store
        self._by = by

    async def webhooks(self) -> list[WebhookView]:
        """All webhooks, by name."""
        return [_shown(view) for view in await self._store.webhooks()]

    async def webhook(self, name: str) -> WebhookView:
        """One webhook; raises NotFoundError."""
        return _shown(await self._found(name))

    async def retrying(self) -> dict[str, Retrying]:
        """What is retried now, by the name of the webhook: the newest 200 deliveries that wait for a retry are read."""
        jobs = [shown_job(job) for job in await self._store.jobs(_RETRYING, Page(_DELIVERIES_READ))]
        found: dict[str, Retrying] = {}
        for job in jobs:
            for name in (tag.removeprefix(_TAG) for tag in job.tags if tag.startswith(_TAG)):
                newer = found.get(name)
                found[name] = Retrying(
                    deliveries=1 if newer is None else newer.deliveries + 1,
                    capped=len(jobs) == _DELIVERIES_READ,
                    since=job.created_at,
                    last_error=job.last_error if newer is None else newer.last_error,
                )
        return found

    async def save(
        self,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        events: Iterable[str] = (),
        queues: Iterable[str] = (),
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
        why: str | None = None,
    ) -> tuple[WebhookView, str | None]:
        """Create a webhook, or replace its URL and filters; it gets the events from now on.

        A new one without a secret gets one, which is returned and cannot be shown again. One that exists keeps its own.
        Switches the event log on. Raises ConflictError for a webhook that code declares.
        """
        read_target(url)
        wants = event_filter(events, queues, kinds, tags)
        made = Webhook(name=checked_name("name", name, _NAME_LIMIT_CHARACTERS), url=url, wants=wants)
        known = {view.webhook.name: view for view in await self._store.webhooks()}.get(name)
        if known is not None and known.webhook.is_declared:
            raise ConflictError(f"webhook {name!r} is declared in code: change it there")
        new_secret = None if secret is not None or known is not None else _new_secret()
        by = self._with(why)
        state = await self._store.event_log()
        if not state.is_on:
            state = await self._store.switch_event_log(DEFAULT_KEEP, by)
        stored = new_secret if secret is None else _checked_secret(secret)
        return _shown(await self._store.save_webhook(made, stored, state.end, by)), new_secret

    async def new_secret(self, name: str, *, secret: str | None = None, why: str | None = None) -> str:
        """Replace the secret of a webhook, by `secret` or a new one, and return it; raises NotFoundError.

        Let its receiver accept both secrets first (`perdure.webhooks.verify` takes a list).
        """
        view = await self._found(name)
        if view.webhook.is_declared:
            raise ConflictError(f"webhook {name!r} is declared in code: its secret is there")
        made = _new_secret() if secret is None else _checked_secret(secret)
        end = (await self._store.event_log()).end
        await self._store.save_webhook(view.webhook, made, end, self._with(why))
        return made

    async def pause(self, name: str, *, why: str | None = None) -> WebhookView:
        """Create no deliveries until it is resumed; then it gets the events that the log still has."""
        return await self._pause(name, why, paused=True)

    async def resume(self, name: str, *, why: str | None = None) -> WebhookView:
        """Resume a webhook where it was paused; raises NotFoundError."""
        return await self._pause(name, why, paused=False)

    async def delete(self, name: str, *, why: str | None = None) -> None:
        """Delete a webhook and its secret; deliveries that wait are cancelled when they come due."""
        if not await self._store.delete_webhook(name, self._with(why)):
            raise await self._unknown(name)

    async def test(self, name: str, *, why: str | None = None) -> Receipt:
        """Deliver an event of the type `webhook.test` as a job, as any other; raises NotFoundError."""
        await self._found(name)
        by, now = self._with(why), await self._store.now()
        event = LoggedEvent(id="0-0", type=TEST, at=now, subject=name, details={"sent_by": by.actor})
        receipt = await self._store.enqueue(replace(delivery_of(name, event), ref=None), by)
        self._store.ring({QUEUE})
        return receipt

    async def _pause(self, name: str, why: str | None, *, paused: bool) -> WebhookView:
        view = await self._store.pause_webhook(name, self._with(why), paused=paused)
        if view is None:
            raise await self._unknown(name)
        return _shown(view)

    async def _found(self, name: str) -> WebhookView:
        for view in await self._store.webhooks():
            if view.webhook.name == name:
                return view
        raise await self._unknown(name)

    async def _unknown(self, name: str) -> NotFoundError:
        there = listed(repr(view.webhook.name) for view in await self._store.webhooks())
        return NotFoundError(f"there is no webhook {name!r}{f'; there are {there}' if there else ''}")

    def _with(self, why: str | None) -> By:
        return By(self._by.actor, checked_why(why), self._by.source)


def delivery_of(webhook: str, event: LoggedEvent) -> NewJob:
    """The job that tells a receiver of an event; its ref keeps the same event from being delivered by a second one."""
    document: dict[str, Any] = msgspec.to_builtins(event)
    return NewJob(
        id=new_job_id(),
        kind=DELIVERY,
        queue=QUEUE,
        args=msgspec.json.encode({"webhook": webhook, "event": document}).decode(),
        tags=(f"{_TAG}{webhook}",),
        ref=f"webhook {webhook} {event.id}",
    )


def _shown(view: WebhookView) -> WebhookView:
    return replace(view, webhook=replace(view.webhook, url=shown_url(view.webhook.url)))


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _checked_secret(secret: str) -> str:
    if not _SHORTEST_SECRET_CHARACTERS <= len(secret) <= _LONGEST_SECRET_CHARACTERS or not secret.isprintable():
        raise ArgumentError(
            "secret", f"must be {_SHORTEST_SECRET_CHARACTERS} to {_LONGEST_SECRET_CHARACTERS} printable characters"
        )
    return secret
