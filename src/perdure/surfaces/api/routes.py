"""The one table of routes. Router, OpenAPI document, scope tests and docs/reference/http-api.md are made from it."""

from __future__ import annotations

from typing import Final

from perdure.domain.operate.access import Scope
from perdure.surfaces.api.handlers import (
    about,
    alerts,
    diagnostics,
    events,
    fleet,
    gates,
    live,
    schedules,
    statistics,
    tokens,
    trail,
    webhooks,
)
from perdure.surfaces.api.handlers.jobs import bulk, commands, enqueueing, failures, jobs, questions
from perdure.surfaces.api.route import Handler, Route


def _view(
    tag: str,
    path: str,
    handler: Handler,
    scope: Scope = Scope.READ,
    *,
    conflicts: bool = False,
    expires: bool = False,
    seeks: bool = False,
) -> Route:
    return Route(
        method="GET",
        path=path,
        scope=scope,
        handler=handler,
        tag=tag,
        conflicts=conflicts,
        expires=expires,
        seeks=seeks,
    )


def _do(
    tag: str,
    path: str,
    handler: Handler,
    *,
    method: str = "POST",
    scope: Scope = Scope.OPERATE,
    status: int = 200,
    guarded: bool = False,
) -> Route:
    return Route(
        method=method,
        path=path,
        scope=scope,
        handler=handler,
        tag=tag,
        status=status,
        conflicts=True,
        guarded=guarded,
    )


_JOBS: Final = (
    _view("jobs", "/jobs", jobs.list_jobs),
    _do("jobs", "/jobs", enqueueing.enqueue_job, status=201),
    _view("jobs", "/counts", jobs.count_jobs),
    _view("jobs", "/jobs/{id}", jobs.show_job),
    _view("jobs", "/jobs/{id}/attempts", jobs.list_attempts),
    _view("jobs", "/jobs/{id}/steps", jobs.list_steps),
    _view("jobs", "/jobs/{id}/children", jobs.list_children),
    _view("jobs", "/jobs/{id}/events", jobs.list_job_events),
    _view("jobs", "/jobs/{id}/log", jobs.show_log),
    _view("jobs", "/jobs/{id}/costs", jobs.show_costs),
    _view("jobs", "/jobs/{id}/audit", jobs.show_job_audit),
    _view("jobs", "/jobs/{id}/why", jobs.explain_job),
    _view("jobs", "/jobs/{id}/preview", jobs.preview_retries, conflicts=True),
)
_COMMANDS: Final = (
    _do("commands", "/jobs/{id}/requeue", commands.requeue_job, guarded=True),
    _do("commands", "/jobs/{id}/cancel", commands.cancel_job, guarded=True),
    _do("commands", "/jobs/{id}/run_now", commands.run_job_now, guarded=True),
    _do("commands", "/jobs/{id}/reschedule", commands.reschedule_job, guarded=True),
    _do("commands", "/jobs/{id}/mark", commands.mark_job, guarded=True),
    _do("commands", "/jobs/{id}/purge", commands.purge_job, guarded=True),
    _do("commands", "/jobs/{id}/delete", commands.delete_job, guarded=True),
    _do("commands", "/commands/{command}", commands.command_jobs),
    _do("bulk", "/bulk/plan", bulk.plan_bulk),
    _do("bulk", "/bulk", bulk.start_bulk, status=202),
    _view("bulk", "/bulk", bulk.list_bulk),
    _view("bulk", "/bulk/{id}", bulk.show_bulk),
    _do("bulk", "/bulk/{id}/stop", bulk.stop_bulk),
)
_VIEWS: Final = (
    _view("overview", "/overview", fleet.show_overview),
    _view("overview", "/attention", fleet.list_needs),
    _view("failures", "/failure-groups", failures.list_failure_groups),
    _view("failures", "/failure-groups/{fingerprint}", failures.show_failure_group),
    _view("failures", "/suggestions", failures.suggest_search),
    _view("statistics", "/statistics", statistics.show_statistics),
    _view("queues", "/queues", statistics.list_queues),
    _view("queues", "/queues/{name}", statistics.show_queue),
    _do("queues", "/queues/{name}/pause", gates.pause_queue, status=201),
    _do("queues", "/queues/{name}/resume", gates.resume_queue),
    _view("kinds", "/kinds", statistics.list_kinds),
    _view("kinds", "/kinds/{name}", statistics.show_kind),
    _do("kinds", "/kinds/{name}/pause", gates.pause_kind, status=201),
    _do("kinds", "/kinds/{name}/resume", gates.resume_kind),
    _view("workers", "/workers", fleet.list_workers),
    _do("workers", "/workers/quiet", fleet.quiet_workers),
    _do("workers", "/workers/loud", fleet.wake_workers),
    _do("workers", "/workers/{name}/quiet", fleet.quiet_worker),
    _do("workers", "/workers/{name}/loud", fleet.wake_worker),
)
_SCHEDULES: Final = (
    _view("schedules", "/schedules", schedules.list_schedules),
    _view("schedules", "/schedules/{name}", schedules.show_schedule),
    _do("schedules", "/schedules/{name}", schedules.put_schedule, method="PUT", guarded=True),
    _do("schedules", "/schedules/{name}", schedules.delete_schedule, method="DELETE", status=204, guarded=True),
    _view("schedules", "/schedules/{name}/next", schedules.list_upcoming),
    _view("schedules", "/schedules/{name}/past", schedules.list_past),
    _do("schedules", "/schedules/{name}/pause", schedules.pause_schedule, guarded=True),
    _do("schedules", "/schedules/{name}/resume", schedules.resume_schedule, guarded=True),
    _do("schedules", "/schedules/{name}/trigger", schedules.trigger_schedule, status=201, guarded=True),
    _do("schedules", "/schedules/{name}/backfill", schedules.backfill_schedule, guarded=True),
)
_GATES: Final = (
    _view("gates", "/pauses", gates.list_pauses),
    _do("gates", "/pauses", gates.create_pause, status=201),
    _do("gates", "/pauses/{id}", gates.end_pause, method="DELETE"),
    _view("gates", "/breakers", gates.list_breakers),
    _do("gates", "/breakers/{name}/open", gates.open_breaker),
    _do("gates", "/breakers/{name}/close", gates.close_breaker),
    _view("gates", "/budgets", gates.list_budgets),
    _view("gates", "/budgets/{name}", gates.show_budget),
)
_PEOPLE: Final = (
    _view("approvals", "/approvals", questions.list_approvals),
    _do("approvals", "/jobs/{id}/approvals/{name}", questions.answer_approval),
    _do("events", "/events", questions.emit_event),
    _view("events", "/events", events.list_events, expires=True),
    _view("events", "/events/stream", events.follow_events, expires=True),
    _view("events", "/events/log", events.show_event_log),
    _do("events", "/events/log", events.switch_event_log, method="PUT", scope=Scope.ADMIN),
    _do("events", "/events/log", events.switch_event_log_off, method="DELETE", scope=Scope.ADMIN),
    _view("live", "/live", live.follow),
    _view("audit", "/audit", trail.list_audit, seeks=True),
)
_WEBHOOKS: Final = (
    _view("webhooks", "/webhooks", webhooks.list_webhooks),
    _view("webhooks", "/webhooks/{name}", webhooks.show_webhook),
    _do("webhooks", "/webhooks/{name}", webhooks.put_webhook, method="PUT", scope=Scope.ADMIN),
    _do("webhooks", "/webhooks/{name}", webhooks.delete_webhook, method="DELETE", scope=Scope.ADMIN, status=204),
    _do("webhooks", "/webhooks/{name}/secret", webhooks.replace_secret, scope=Scope.ADMIN),
    _do("webhooks", "/webhooks/{name}/pause", webhooks.pause_webhook),
    _do("webhooks", "/webhooks/{name}/resume", webhooks.resume_webhook),
    _do("webhooks", "/webhooks/{name}/test", webhooks.test_webhook, status=201),
)
_ADMIN: Final = (
    _view("alerts", "/alerts", alerts.list_history),
    _view("alerts", "/alerts/open", alerts.list_open),
    _view("alerts", "/alerts/notices", alerts.list_notices),
    _view("alerts", "/alerts/notices/{id}", alerts.show_notice),
    _view("alerts", "/alerts/rules", alerts.list_rules),
    _view("alerts", "/alerts/rules/{name}", alerts.show_rule),
    _do("alerts", "/alerts/rules/{name}", alerts.put_rule, method="PUT"),
    _do("alerts", "/alerts/rules/{name}", alerts.delete_rule, method="DELETE"),
    _do("alerts", "/alerts/rules/{name}/preview", alerts.preview_new_rule),
    _do("alerts", "/alerts/rules/{name}/pause", alerts.pause_rule),
    _do("alerts", "/alerts/rules/{name}/resume", alerts.resume_rule),
    _view("alerts", "/alerts/channels", alerts.list_channels),
    _do("alerts", "/alerts/channels/{name}", alerts.put_channel, method="PUT", scope=Scope.ADMIN),
    _do("alerts", "/alerts/channels/{name}", alerts.delete_channel, method="DELETE", scope=Scope.ADMIN),
    _do("alerts", "/alerts/test", alerts.send_test),
    _view("tokens", "/tokens", tokens.list_tokens, Scope.ADMIN),
    _do("tokens", "/tokens", tokens.create_token, scope=Scope.ADMIN, status=201),
    _do("tokens", "/tokens/{id}", tokens.revoke_token, method="DELETE", scope=Scope.ADMIN),
    _view("diagnostics", "/diagnostics/stacks", diagnostics.show_stacks, Scope.ADMIN),
    _view("diagnostics", "/diagnostics/heap", diagnostics.show_heap, Scope.ADMIN),
    Route(
        method="GET",
        path="/diagnostics/profile",
        scope=Scope.ADMIN,
        handler=diagnostics.show_profile,
        tag="diagnostics",
        conflicts=True,
    ),
    Route(
        method="GET",
        path="/diagnostics/locks",
        scope=Scope.ADMIN,
        handler=diagnostics.show_locks,
        tag="diagnostics",
        conflicts=True,
    ),
    _view("diagnostics", "/diagnostics/contention", diagnostics.show_contention, Scope.ADMIN),
    _view("about", "/about", about.show_about),
    _view("about", "/openapi.json", about.show_openapi),
)

ROUTES: Final[tuple[Route, ...]] = (
    *_JOBS,
    *_COMMANDS,
    *_VIEWS,
    *_SCHEDULES,
    *_GATES,
    *_PEOPLE,
    *_WEBHOOKS,
    *_ADMIN,
)
