"""The receivers of events, their commands, and a form to add one.

A form takes secrets, but no page shows them again, not even the form after an error.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.domain.operate.access import Scope
from perdure.domain.operate.event_log import EventType
from perdure.domain.operate.webhook import QUEUE
from perdure.errors import ArgumentError, ConflictError
from perdure.surfaces.desk.pages.forms.written import command_line, listed_in
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("webhooks")
_FIELDS: Final = ("name", "url", "events", "queues", "kinds", "tags")  # shown again after an error


@room.page("/webhooks")
async def webhooks(visit: Visit) -> Response:
    """All webhooks, or the form for a new one."""
    if visit.query("form"):
        return await _form(visit, None)
    workers = await visit.shared("workers", visit.desk.workers)
    return await visit.page(
        "pages/webhooks/webhooks.html",
        title="Webhooks",
        now=await visit.now(),
        views=await visit.shared("webhooks", visit.desk.webhooks.webhooks),
        retrying=await visit.shared("retrying webhooks", visit.desk.webhooks.retrying),
        is_served=any(QUEUE in worker.queues for worker in workers if worker.dead_at is None),
    )


@room.command("/webhooks", scope=Scope.ADMIN)
async def add(visit: Visit) -> Response:
    """Add a webhook with the secret that its receiver knows; errors are shown beside the form."""
    try:
        name = await _save(visit)
    except (ArgumentError, ConflictError) as error:
        return await _form(visit, error)
    return visit.done(f"Webhook {name} was added.", back="/webhooks")


@room.command(
    "/webhooks/{name:path}/pause",
    confirm="Pause the webhook {name}? Events during the pause are sent when it is resumed.",
)
async def pause(visit: Visit) -> Response:
    """Pause a webhook."""
    await visit.desk.webhooks.pause(visit.path("name"), why=visit.why)
    return visit.done(f"Webhook {visit.path('name')} is paused.", back="/webhooks")


@room.command("/webhooks/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """Resume a webhook where it was paused."""
    await visit.desk.webhooks.resume(visit.path("name"), why=visit.why)
    return visit.done(f"Webhook {visit.path('name')} is resumed.", back="/webhooks")


@room.command("/webhooks/{name:path}/test", confirm="Send a test to {name}?")
async def send_test(visit: Visit) -> Response:
    """Enqueue a job that delivers a test."""
    receipt = await visit.desk.webhooks.test(visit.path("name"), why=visit.why)
    return visit.done(f"A test is on its way to {visit.path('name')}.", back=f"/jobs/{receipt.job_id}")


@room.command(
    "/webhooks/{name:path}/delete",
    scope=Scope.ADMIN,
    confirm="Delete the webhook {name} and its secret? Deliveries that wait are cancelled.",
)
async def delete(visit: Visit) -> Response:
    """Delete a webhook."""
    await visit.desk.webhooks.delete(visit.path("name"), why=visit.why)
    return visit.done(f"Webhook {visit.path('name')} was deleted.", back="/webhooks")


async def _save(visit: Visit) -> str:
    """Save the webhook of the form under a new name. It needs a secret, because a new one would have to be shown."""
    desk, name, secret = visit.desk.webhooks, visit.field("name").strip(), visit.field("secret")
    if not secret:
        raise ArgumentError("secret", "is missing: write the one that the receiver checks requests with")
    if name in {view.webhook.name for view in await desk.webhooks()}:
        raise ConflictError(f"there is a webhook {name!r}: change it with perdure webhooks save")
    await desk.save(
        name,
        visit.field("url").strip(),
        secret=secret,
        events=listed_in(visit.field("events")),
        queues=listed_in(visit.field("queues")),
        kinds=listed_in(visit.field("kinds")),
        tags=listed_in(visit.field("tags")),
        why=visit.why,
    )
    return name


async def _form(visit: Visit, error: Exception | None) -> Response:
    fields = {name: visit.field(name) for name in _FIELDS}
    return await visit.page(
        "pages/webhooks/form.html",
        status=200 if error is None else 422,
        title="Webhook",
        fields=fields,
        problem="" if error is None else str(error),
        wrong=error.field if isinstance(error, ArgumentError) else "",
        events=tuple(EventType),
        cli_line=_cli(fields, visit.field("why").strip()),
    )


def _cli(fields: dict[str, str], why: str) -> str:
    """The command for a terminal, which reads the secret from a variable."""
    wants = {word: listed_in(fields[f"{word}s"]) for word in ("event", "queue", "kind", "tag")}
    words = ["webhooks", "save", fields["name"].strip() or "NAME", fields["url"].strip() or "URL"]
    return command_line(words, {**wants, "secret-env": "VARIABLE", "why": why})
