"""Every page of the web desk, for those that go through all of them: screenshots, the crawl, the size."""

from __future__ import annotations

from typing import Final

PAGES: Final = {
    "overview": "/",
    "jobs": "/jobs",
    "jobs-searched": "/jobs?q=kind:charge_card",
    "jobs-not-understood": "/jobs?q=colour:red",
    "jobs-none": "/jobs?q=kind:nobody",
    "job": "/jobs/{job}",
    "job-log": "/jobs/{job}?tab=log",
    "job-gates": "/jobs/{job}?tab=gates",
    "job-dead": "/jobs/{dead_job}?tab=attempts",
    "dead": "/dead",
    "job-waiting": "/jobs/{waiting_job}",
    "job-parent": "/jobs/{parent_job}?tab=children",
    "dead-group": "/dead/{group}",
    "bulk": "/bulk",
    "bulk-plan": "/bulk/plan?action=requeue&q=state:dead",
    "bulk-mark": "/bulk/plan?action=mark&q=state:dead",
    "bulk-reschedule": "/bulk/plan?action=reschedule&q=state:retrying",
    "enqueue": "/enqueue?kind=charge_card",
    "queues": "/queues",
    "queue": "/queues/payments",
    "queue-unserved": "/queues/reports",
    "kinds": "/kinds",
    "kind": "/kinds/charge_card",
    "schedules": "/schedules",
    "schedule": "/schedules/heartbeat",
    "schedule-backfill": "/schedules/heartbeat?from=3h",
    "schedule-form": "/schedules?form=new",
    "schedule-change": "/schedules?form=change&name=nightly-digest",
    "workers": "/workers",
    "alerts": "/alerts",
    "alert-preview": "/alerts/rules/payments/preview",
    "alert-form": "/alerts?form=new",
    "alert-change": "/alerts?form=change&name=payments",
    "alert-channel": "/alerts?form=channel",
    "webhooks": "/webhooks",
    "webhook-form": "/webhooks?form=new",
    "flows": "/flows",
    "emit": "/emit?event=payment:4711",
    "gates": "/gates",
    "pause": "/pause?kind=charge_card",
    "tokens": "/tokens",
    "approvals": "/approvals",
    "audit": "/audit",
    "audit-filtered": "/audit?actor=ada&action=pause&since=2h",
    "keys": "/keys",
    "not-found": "/nowhere",
}
"""Names of pictures, and paths. `{job}` and other names in braces are filled in with what `desk_seed.seed` returns."""


def paths(names: dict[str, str]) -> dict[str, str]:
    """The pages of a database that was seeded."""
    return {name: path.format(**names) for name, path in PAGES.items()}
