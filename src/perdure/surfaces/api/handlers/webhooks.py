"""Webhooks. The caller gives a secret, or a new one is shown once; no view shows it."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.operate.webhook import WebhookView
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.route import Call


class WebhookList(Struct, frozen=True):
    """All webhooks, by name."""

    webhooks: tuple[WebhookView, ...]


class WebhookBody(Because, frozen=True, kw_only=True):
    """The URL and the filters. An omitted list matches everything; one matching tag is enough.

    A new webhook without a secret gets one. One that exists keeps its own unless another is given.
    """

    url: str
    secret: str | None = None
    events: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class SavedWebhook(Struct, frozen=True, kw_only=True):
    """A webhook, and its secret if a new one was made: it cannot be shown again."""

    webhook: WebhookView
    secret: str | None = None


class SecretBody(Because, frozen=True, kw_only=True):
    """The new secret; omitted: one is made."""

    secret: str | None = None


class NewSecret(Struct, frozen=True):
    """The new secret, valid from now on; it cannot be shown again."""

    secret: str


class TestDelivery(Struct, frozen=True):
    """The job that delivers the test."""

    job_id: str


async def list_webhooks(call: Call[None, None]) -> WebhookList:
    """List webhooks."""
    return WebhookList(tuple(await call.desk.webhooks.webhooks()))


async def show_webhook(call: Call[None, None]) -> WebhookView:
    """Show one webhook."""
    return await call.desk.webhooks.webhook(call.path["name"])


async def put_webhook(call: Call[None, WebhookBody]) -> SavedWebhook:
    """Create a webhook, or replace its URL and filters; it gets events from now on."""
    body = call.body
    view, secret = await call.desk.webhooks.save(
        call.path["name"],
        body.url,
        secret=body.secret,
        events=body.events,
        queues=body.queues,
        kinds=body.kinds,
        tags=body.tags,
        why=body.why,
    )
    return SavedWebhook(webhook=view, secret=secret)


async def delete_webhook(call: Call[None, Because]) -> None:
    """Delete a webhook; waiting deliveries are cancelled when they come due."""
    await call.desk.webhooks.delete(call.path["name"], why=call.body.why)


async def replace_secret(call: Call[None, SecretBody]) -> NewSecret:
    """Replace the secret of a webhook; first let its receiver accept both secrets."""
    return NewSecret(await call.desk.webhooks.new_secret(call.path["name"], secret=call.body.secret, why=call.body.why))


async def pause_webhook(call: Call[None, Because]) -> WebhookView:
    """Pause a webhook; events during the pause are sent when it is resumed."""
    return await call.desk.webhooks.pause(call.path["name"], why=call.body.why)


async def resume_webhook(call: Call[None, Because]) -> WebhookView:
    """Resume a webhook where it was paused."""
    return await call.desk.webhooks.resume(call.path["name"], why=call.body.why)


async def test_webhook(call: Call[None, Because]) -> TestDelivery:
    """Deliver an event of the type `webhook.test`."""
    return TestDelivery((await call.desk.webhooks.test(call.path["name"], why=call.body.why)).job_id)
