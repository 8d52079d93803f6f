"""`perdure alerts`: rules, alerts and sent notices."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Final

import typer

from perdure.domain.alerts.alert import Alert, DeliveryState, Notice
from perdure.domain.alerts.rule import AlertSeverity, Grouping, RuleView
from perdure.operate.alerts.commands import AlertsSeen, NoticesSeen
from perdure.operate.alerts.previews import AlertPreview
from perdure.operate.alerts.rules import make_rule
from perdure.operate.alerts.sealing import new_key
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.alerts import rule_options
from perdure.surfaces.cli.alerts.alert_tables import alert_table, meaning, notice_table, rule_table
from perdure.surfaces.cli.alerts.channels import channels
from perdure.surfaces.cli.completion import complete_channel, complete_rule
from perdure.surfaces.cli.deletion import Deletion
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import block
from perdure.surfaces.cli.terminal.times import read_time

alerts = typer.Typer(help="List alert rules, channels and sent notices; add, pause or test them.", no_args_is_help=True)
alerts.add_typer(channels, name="channels")
_LOOK_AGAIN_SECONDS: Final = 0.2

Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="Show this many.")]
Before = Annotated[str | None, typer.Option("--before", metavar="PLACE", help="Continue from the `next` of a page.")]
OfRule = Annotated[
    str | None, typer.Option("--rule", metavar="NAME", help="Only of this rule.", autocompletion=complete_rule)
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Until a time, as +2h or 2026-01-01T08:00Z.")
]
Channels = Annotated[
    list[str],
    typer.Argument(metavar="CHANNEL", help="Channels to test.", show_default=False, autocompletion=complete_channel),
]
Wait = Annotated[float, typer.Option("--wait", min=0, max=600, help="Wait this many seconds for the outcome.")]


@alerts.command("list")
def list_rules(url: options.Url = None, as_json: options.Json = False) -> None:
    """List rules by name, and how many alerts are open."""

    async def look(desk: Desk) -> tuple[list[RuleView], list[Alert], datetime]:
        return await desk.alerts.rules(), await desk.alerts.open(), await desk.now()

    found, opened, now = with_desk(url, look)
    if as_json:
        print_json({"rules": plain(found), "open": plain(opened)})
        return
    if not found:
        say("No rules: add one with `perdure alerts add`.", "dim")
        return
    console().print(rule_table(found, opened, now))
    if opened:
        console().print(alert_table(opened, now))


@alerts.command("add")
def add_rule(
    name: rule_options.Name,
    *,
    when: rule_options.WhenWord,
    to: rule_options.To,
    queue: rule_options.QueueName = None,
    kind: rule_options.KindName = None,
    about: rule_options.About = None,
    limit: rule_options.Limit = None,
    within: rule_options.Within = None,
    lasting: rule_options.Lasting = "0s",
    least: rule_options.Least = None,
    severity: rule_options.Severity = AlertSeverity.WARNING,
    throttle: rule_options.Throttle = "10m",
    group: rule_options.Group = Grouping.CAUSE,
    quiet: rule_options.Quiet = None,
    no_recovery: rule_options.NoRecovery = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it finds now, and the notice.")] = False,
    why: options.Why = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Add a rule, or replace one made at run time."""
    rule = make_rule(
        name,
        when,
        to=to,
        queue=queue,
        kind=kind,
        about=about,
        limit=limit,
        within=within,
        lasting=lasting,
        least=least,
        severity=severity,
        throttle=throttle,
        group=group,
        quiet=quiet or (),
        recovery=not no_recovery,
    )
    if preview:
        _print_preview(with_desk(url, lambda desk: desk.alerts.preview(rule)), as_json=as_json)
        return
    _report("saved", with_desk(url, lambda desk: desk.alerts.save(rule, why=why)), as_json=as_json)


@alerts.command("pause")
def pause(
    name: rule_options.Name,
    until: Until = None,
    why: options.Why = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Silence a rule, also one declared in code; optionally until a time."""
    moment = None if until is None else read_time("--until", until)

    async def act(desk: Desk) -> RuleView:
        end = None if moment is None else moment.when(await desk.now())
        return await desk.alerts.pause(name, until=end, why=why)

    _report("paused", with_desk(url, act), as_json=as_json)


@alerts.command("resume")
def resume(
    name: rule_options.Name, why: options.Why = None, url: options.Url = None, as_json: options.Json = False
) -> None:
    """Resume a paused rule."""
    _report("resumed", with_desk(url, lambda desk: desk.alerts.resume(name, why=why)), as_json=as_json)


@alerts.command("delete")
def delete(
    name: rule_options.Name,
    why: options.Why = None,
    yes: options.Yes = False,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Delete a rule; its open alerts end without a notice.

    One declared in code comes back with the next worker: pause it instead.
    """
    Deletion(
        name=f"Rule {one_line(name)}",
        question=f"Rule {one_line(name)} will be deleted, and its open alerts end without a notice",
        look=lambda desk: desk.alerts.rule(name),
        delete=lambda desk: desk.alerts.delete(name, why=why),
        document={"rule": name},
    ).carry_out(url, yes=yes, as_json=as_json)


@alerts.command("preview")
def preview_rule(name: rule_options.Name, url: options.Url = None, as_json: options.Json = False) -> None:
    """Show what a rule finds now and its notice; nothing is sent."""
    _print_preview(with_desk(url, lambda desk: desk.alerts.preview(name)), as_json=as_json)


@alerts.command("test")
def send_test(
    channel: Channels,
    wait: Wait = 0,
    why: options.Why = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Send a test notice to channels; a worker delivers it as a job.

    With --wait it exits with 1 if the test was not delivered in that time.
    """

    async def act(desk: Desk) -> Notice:
        notice = await desk.alerts.test(channel, why=why)
        waited = 0.0
        while waited < wait and any(one.state is DeliveryState.PENDING for one in notice.deliveries):
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            waited += _LOOK_AGAIN_SECONDS
            notice = await desk.alerts.notice(notice.id)
        return notice

    notice = with_desk(url, act)
    if as_json:
        print_json({"action": "tested", "notice": plain(notice)})
    else:
        for one in notice.deliveries:
            said = {DeliveryState.SENT: "delivered", DeliveryState.FAILED: "not delivered"}.get(one.state, "on its way")
            say(f"{one_line(one.channel)}: {said}, job {one.job_id}{f': {one_line(one.error)}' if one.error else ''}")
    if wait and any(one.state is not DeliveryState.SENT for one in notice.deliveries):
        raise typer.Exit(Exit.FAILED)


@alerts.command("history")
def history(
    rule: OfRule = None,
    limit: Limit = 50,
    before: Before = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """List open and ended alerts, newest first."""

    async def look(desk: Desk) -> tuple[AlertsSeen, datetime]:
        return await desk.alerts.history(rule=rule, limit=limit, before=before), await desk.now()

    page, now = with_desk(url, look)
    if as_json:
        print_json(plain(page))
    elif page.alerts:
        console().print(alert_table(page.alerts, now))
    else:
        say("No alerts.", "dim")


@alerts.command("notices")
def notices(limit: Limit = 50, before: Before = None, url: options.Url = None, as_json: options.Json = False) -> None:
    """List sent notices, newest first, with the state of each delivery."""

    async def look(desk: Desk) -> tuple[NoticesSeen, datetime]:
        return await desk.alerts.notices(limit=limit, before=before), await desk.now()

    page, now = with_desk(url, look)
    if as_json:
        print_json(plain(page))
    elif page.notices:
        console().print(notice_table(page.notices, now))
    else:
        say("Nothing was sent.", "dim")


@alerts.command("key")
def key() -> None:
    """Print a new key for encrypted addresses, for the variable PERDURE_ALERTS_KEY."""
    say(new_key())


def _report(action: str, view: RuleView, *, as_json: bool) -> None:
    if as_json:
        print_json({"action": action, "rule": plain(view)})
    else:
        say(f"Rule {one_line(view.rule.name)} {action}: {one_line(meaning(view.rule))}", "bold")


def _print_preview(found: AlertPreview, *, as_json: bool) -> None:
    if as_json:
        print_json(plain(found))
        return
    if found.title is None:
        say("It finds nothing now, and would send nothing.", "dim")
        return
    if found.quiet_until is not None:
        say(f"Its quiet hours would hold this back until {found.quiet_until:%Y-%m-%d %H:%M} UTC.", "yellow")
    say(f"To {one_line(', '.join(found.rule.to))}: {one_line(found.title)}", "bold")
    console().print(block(found.body or ""))
