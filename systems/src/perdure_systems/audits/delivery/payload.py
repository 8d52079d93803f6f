"""The payload of an audit's webhook."""

from __future__ import annotations

from perdure_systems.audits import settings
from perdure_systems.audits.pipeline.screenshots import errors_text
from perdure_systems.audits.results import PageSpeed, Report, Strategy
from perdure_systems.kit.rows import as_json


def webhook_body(audit_id: str, url: str, strategy: Strategy, speed: PageSpeed, report: Report) -> str:
    """The JSON of a completed audit. It lists the screenshots in the report, not all that were taken."""
    return as_json(
        {
            "event": "audit.completed",
            "auditId": audit_id,
            "url": url,
            "strategy": strategy,
            "status": "completed_with_warnings" if report.missing else "completed",
            "scores": speed.scores,
            "metrics": {metric.name: metric.value for metric in speed.metrics},
            "screenshotsIncluded": bool(report.included),
            "screenshots": report.included,
            "screenshotError": errors_text(report.missing) or None,
            "pdfUrl": f"{settings.public_url()}/api/v1/audits/{audit_id}/report.pdf",
        }
    )
