"""Open alerts, rules, channels and sent notices."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.domain.alerts.rule import AlertRule, AlertSeverity, When
from perdure.domain.operate.access import Scope
from perdure.errors import ArgumentError, ConflictError, NotFoundError, SettingsError
from perdure.operate.alerts.previews import AlertPreview
from perdure.surfaces.desk.pages.alerts.channel_form import channel_form, save_written
from perdure.surfaces.desk.pages.alerts.rule_form import read_rule, rule_command, written_fields
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.numbers import share, short_span
from perdure.surfaces.desk.visit import Visit

room = Room("alerts")
_ENTRIES_PER_PAGE: Final = 20
_OPEN_ALERTS_SHOWN: Final = 100
WORDS: Final = {
    When.JOB_DIED: "a dead job",
    When.NEW_ERROR: "a new error",
    When.DEATHS: "many deaths",
    When.FAILURE_SHARE: "many failed attempts",
    When.DEPTH: "many ready jobs",
    When.OLDEST: "an old ready job",
    When.WAIT_P95: "long waits (p95)",
    When.SCHEDULE_MISSED: "a missed schedule",
    When.BUDGET: "a spent budget",
    When.BREAKER_OPENED: "an open breaker",
    When.WORKER_LOST: "a lost worker",
    When.NO_WORKER: "a queue without a worker",
    When.DOCTOR: "a problem of the database",
}
_OF_JOBS: Final = frozenset({When.DEATHS, When.DEPTH})
_OF_TIME: Final = frozenset({When.OLDEST, When.WAIT_P95})
TONES: Final = {AlertSeverity.CRITICAL: "dead", AlertSeverity.WARNING: "retrying", AlertSeverity.INFO: "running"}


def limit_of(rule: AlertRule) -> str:
    """The limit of a rule in its unit: `5 jobs`, `30 s`, `10 %`; empty if there is none."""
    if rule.limit is None:
        return ""
    if rule.when in _OF_JOBS:
        return f"{rule.limit:g} job{'' if rule.limit == 1 else 's'}"
    return short_span(rule.limit) if rule.when in _OF_TIME else share(rule.limit)


@room.page("/alerts")
async def alerts(visit: Visit) -> Response:
    """Everything about alerts, or the form for a rule."""
    if visit.query("form") == "channel":
        return await channel_form(visit)
    if visit.query("form"):
        return await _form(visit)
    desk = visit.desk.alerts
    before, sent_before = visit.query("before") or None, visit.query("sent") or None
    opened = await visit.shared("open alerts", desk.open)
    history = await visit.shared(("alerts", before), lambda: desk.history(limit=_ENTRIES_PER_PAGE, before=before))
    notices = await visit.shared(
        ("notices", sent_before), lambda: desk.notices(limit=_ENTRIES_PER_PAGE, before=sent_before)
    )
    return await visit.page(
        "pages/alerts/alerts.html",
        title="Alerts",
        now=await visit.now(),
        opened=opened[:_OPEN_ALERTS_SHOWN],
        open_more=max(len(opened) - _OPEN_ALERTS_SHOWN, 0),
        rules=await visit.shared("alert rules", desk.rules),
        channels=await visit.shared("alert channels", desk.channels),
        history=history,
        notices=notices,
        tones=TONES,
        words=WORDS,
        limit_of=limit_of,
        before=before,
        sent_before=sent_before,
    )


@room.page("/alerts/rules/{name:path}/preview")
async def preview(visit: Visit) -> Response:
    """Preview a rule: what it finds now, and the notice it would send."""
    found = await visit.desk.alerts.preview(visit.path("name"))
    return await visit.page("pages/alerts/preview.html", title="Preview", now=await visit.now(), found=found)


@room.command("/alerts/rules")
async def save(visit: Visit) -> Response:
    """Create a rule, or replace one made at run time, or only preview it; errors are shown beside the form."""
    if visit.field("show") == "command":
        return await _form(visit)
    try:
        rule = read_rule(visit)
        if visit.field("show") == "preview":
            return await _form(visit, found=await visit.desk.alerts.preview(rule))
        made = await visit.desk.alerts.save(rule, why=visit.why)
    except (ArgumentError, ConflictError, NotFoundError) as error:
        return await _form(visit, error)
    return visit.done(f"Rule {made.rule.name} was saved.", back="/alerts")


@room.command(
    "/alerts/rules/{name:path}/pause", confirm="Pause the rule {name}? It sends no notices until it is resumed."
)
async def pause(visit: Visit) -> Response:
    """Pause a rule."""
    await visit.desk.alerts.pause(visit.path("name"), why=visit.why)
    return visit.done(f"Rule {visit.path('name')} is paused.", back="/alerts")


@room.command("/alerts/rules/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """Resume a rule."""
    await visit.desk.alerts.resume(visit.path("name"), why=visit.why)
    return visit.done(f"Rule {visit.path('name')} is resumed.", back="/alerts")


@room.command(
    "/alerts/rules/{name:path}/delete", confirm="Delete the rule {name}? Its open alerts end without a notice."
)
async def delete(visit: Visit) -> Response:
    """Delete a rule."""
    await visit.desk.alerts.delete(visit.path("name"), why=visit.why)
    return visit.done(f"Rule {visit.path('name')} was deleted.", back="/alerts")


@room.command("/alerts/channels/{name:path}/test", confirm="Send a test through {name}?")
async def test_channel(visit: Visit) -> Response:
    """Send a test through a channel."""
    await visit.desk.alerts.test(visit.path("name"), why=visit.why)
    return visit.done(f"A test is on its way through {visit.path('name')}.", back="/alerts")


@room.command("/alerts/channels", scope=Scope.ADMIN)
async def add_channel(visit: Visit) -> Response:
    """Add a channel; errors are shown beside the form."""
    try:
        name = await save_written(visit)
    except (ArgumentError, ConflictError, SettingsError) as error:
        return await channel_form(visit, error)
    return visit.done(f"Channel {name} was added. Send a test through it.", back="/alerts")


@room.command("/alerts/channels/{name:path}/delete", scope=Scope.ADMIN, confirm="Delete the channel {name}?")
async def delete_channel(visit: Visit) -> Response:
    """Delete a channel that no rule uses."""
    await visit.desk.alerts.delete_channel(visit.path("name"), why=visit.why)
    return visit.done(f"Channel {visit.path('name')} was deleted.", back="/alerts")


async def _form(visit: Visit, error: Exception | None = None, found: AlertPreview | None = None) -> Response:
    name = visit.field("replaces") or (visit.query("name") if visit.query("form") == "change" else "")
    view = await visit.desk.alerts.rule(name) if name else None
    fields = written_fields(visit, view)
    return await visit.page(
        "pages/alerts/rule_form.html",
        status=200 if error is None else 422,
        title="Rule",
        fields=fields,
        cli_line=rule_command(fields, visit.field("why").strip()),
        replaces=name,
        problem="" if error is None else str(error),
        wrong=error.field if isinstance(error, ArgumentError) else "",
        words=WORDS,
        found=found,
        now=await visit.now(),
        channels=[one.name for one in await visit.desk.alerts.channels()],
    )
