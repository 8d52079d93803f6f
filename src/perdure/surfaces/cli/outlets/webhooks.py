"""`perdure webhooks`: which events are sent to which receivers."""

from __future__ import annotations

import os
from datetime import datetime
from shlex import quote
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from perdure.domain.jobs.job import Receipt
from perdure.domain.operate.webhook import QUEUE, WebhookView
from perdure.errors import ArgumentError
from perdure.operate.commands.webhooks import Retrying
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_kind, complete_queue, complete_webhook
from perdure.surfaces.cli.deletion import Deletion
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative

webhooks = typer.Typer(help="Send events to other programs as signed requests.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name.", show_default=False, autocompletion=complete_webhook)
]
To = Annotated[str, typer.Argument(metavar="URL", help="Where to send, as https://…", show_default=False)]
Events = Annotated[
    list[str] | None, typer.Option("--event", metavar="TYPE", help="Only this type, as job.died; may be repeated.")
]
Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="QUEUE", help="Only of this queue; repeatable.", autocompletion=complete_queue),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only of this kind; repeatable.", autocompletion=complete_kind),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only with one of these tags; repeatable.")
]
SecretFrom = Annotated[
    str | None,
    typer.Option("--secret-env", metavar="VARIABLE", help="Environment variable with the secret; default: a new one."),
]


@webhooks.command("list")
def list_webhooks(url: options.Url = None, as_json: options.Json = False) -> None:
    """List webhooks and the events they get; secrets are not shown."""

    async def look(desk: Desk) -> tuple[list[WebhookView], dict[str, Retrying], datetime]:
        return await desk.webhooks.webhooks(), await desk.webhooks.retrying(), await desk.now()

    found, retrying, now = with_desk(url, look)
    if as_json:
        print_json({"webhooks": [{**plain(one), "retrying": plain(retrying.get(one.webhook.name))} for one in found]})
    elif found:
        console().print(_table(found))
        for one in found:
            if (failing := retrying.get(one.webhook.name)) is not None:
                _say_failing(one.webhook.name, failing, now)
    else:
        say("No webhooks.", "dim")


@webhooks.command("save")
def save(
    name: Name,
    to: To,
    *,
    event: Events = None,
    queue: Queues = None,
    kind: Kinds = None,
    tag: Tags = None,
    secret_env: SecretFrom = None,
    url: options.Url = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Create a webhook, or replace its URL and filters. A secret that perdure makes is shown once."""
    secret = _secret(secret_env)

    async def act(desk: Desk) -> tuple[WebhookView, str | None, bool]:
        try:
            view, made = await desk.webhooks.save(
                name,
                to,
                secret=secret,
                events=event or (),
                queues=queue or (),
                kinds=kind or (),
                tags=tag or (),
                why=why,
            )
        except ArgumentError as error:
            if error.field != "url":
                raise
            problem = str(error).removeprefix("url ")  # of the receiver: --url is the database
            raise ArgumentError("URL", problem) from None
        return view, made, any(QUEUE in worker.queues for worker in await desk.workers())

    view, made, is_served = with_desk(url, act)
    if as_json:
        print_json({"webhook": plain(view), "secret": made, "is_served": is_served})
        return
    say(f"Webhook {one_line(view.webhook.name)} saved.", "bold")
    if not is_served:
        say("No running worker delivers webhooks: write Webhooks(app) in your code (perdure.webhooks).", "yellow")
    if made is not None:
        say("Keep the secret now: it cannot be shown again.", "yellow")
        say(made)


@webhooks.command("secret")
def new_secret(
    name: Name,
    secret_env: SecretFrom = None,
    url: options.Url = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Replace the secret of a webhook. First let its receiver accept both secrets."""
    given = _secret(secret_env)
    made = with_desk(url, lambda desk: desk.webhooks.new_secret(name, secret=given, why=why))
    if as_json:
        print_json({"secret": made if given is None else None})
        return
    say(f"Webhook {one_line(name)} has a new secret.", "bold")
    if given is None:
        say("Keep it now: it cannot be shown again.", "yellow")
        say(made)


@webhooks.command("pause")
def pause(name: Name, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Pause a webhook; events during the pause are sent when it is resumed."""
    _report(with_desk(url, lambda desk: desk.webhooks.pause(name, why=why)), "paused", as_json=as_json)


@webhooks.command("resume")
def resume(name: Name, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Resume a webhook where it was paused."""
    _report(with_desk(url, lambda desk: desk.webhooks.resume(name, why=why)), "resumed", as_json=as_json)


@webhooks.command("delete")
def delete(
    name: Name,
    url: options.Url = None,
    why: options.Why = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Delete a webhook and its secret; waiting deliveries are cancelled."""
    Deletion(
        name=f"Webhook {one_line(name)}",
        question=f"Webhook {one_line(name)} and its secret will be deleted, and deliveries that wait are cancelled",
        look=lambda desk: desk.webhooks.webhook(name),
        delete=lambda desk: desk.webhooks.delete(name, why=why),
        document={"webhook": name},
    ).carry_out(url, yes=yes, as_json=as_json)


@webhooks.command("test")
def send_test(name: Name, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Deliver an event of the type webhook.test, as a job."""
    receipt: Receipt = with_desk(url, lambda desk: desk.webhooks.test(name, why=why))
    if as_json:
        print_json({"job_id": receipt.job_id})
    else:
        say(f"Job {receipt.job_id} delivers a test: perdure jobs show {receipt.job_id}", "bold")


def _secret(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not (found := os.environ.get(variable)):
        raise ArgumentError("--secret-env", f"names {variable!r}, which is not set in the environment")
    return found


def _report(view: WebhookView, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"action": what, "webhook": plain(view)})
    else:
        say(f"Webhook {one_line(view.webhook.name)} {what}.", "bold")


def _say_failing(name: str, failing: Retrying, now: datetime) -> None:
    count = (
        f"{'at least ' * failing.capped}{failing.deliveries} {'delivery' if failing.deliveries == 1 else 'deliveries'}"
    )
    error = f": {one_line(failing.last_error, 200)}" if failing.last_error else ""
    say(
        f"{one_line(name)}: {count} failed and retried, the oldest made {relative(failing.since, now)}{error}", "yellow"
    )
    say(f"  perdure jobs list --state retrying --tag {quote(one_line(f'webhook:{name}'))}", "dim")


def _table(found: list[WebhookView]) -> Table:
    table = columns(
        "Name", "URL", "Events", "Only", "State", "Sent up to", giving_way={"URL", "Events", "Only", "Sent up to"}
    )
    for one in found:
        wants = one.webhook.wants
        only = ", ".join((*wants.queues, *wants.kinds, *wants.tags))
        state = "declared in code" if one.webhook.is_declared else "active"
        table.add_row(
            cell(one.webhook.name),
            cell(one.webhook.url),
            cell(", ".join(wants.events) or "all"),
            cell(only or "everything"),
            Text("paused", style="yellow") if one.paused_at else Text(state, style="green"),
            cell(one.cursor, "dim"),
        )
    return table
