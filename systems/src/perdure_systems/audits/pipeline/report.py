"""The step that prints the report: HTML from what the earlier steps have kept, then PDF."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from perdure import NotFoundError
from perdure_systems.audits import storage
from perdure_systems.audits.pipeline.gauges import gauges
from perdure_systems.audits.pipeline.instruments import SIZES, instruments
from perdure_systems.audits.results import PageSpeed, Report, Screenshots, Size, Strategy

REPORT_FILE: Final = "report.pdf"
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"), autoescape=True, undefined=StrictUndefined
)
_OPPORTUNITIES_SHOWN: Final = 12
_WORDS: Final = {
    "good": "This page is in good shape.",
    "fair": "This page works, and leaves room for improvement.",
    "poor": "This page loses visitors while it loads.",
}
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000


async def print_report(
    audit_id: str,
    url: str,
    strategy: Strategy,
    speed: PageSpeed,
    shots: Screenshots | None,
    error: str | None,
    measured_at: datetime,
) -> Report:
    """Print the report of an audit. `included` says which screenshots are in it."""
    pictures: dict[Size, str] = {}
    missing: dict[Size, str] = {} if shots is None else dict(shots.errors)
    for size in SIZES:
        if shots is None:
            missing[size] = error or "no screenshot was taken"
        elif size in shots.taken:
            try:
                content = storage.load(audit_id, shots.taken[size].file)
            except NotFoundError as gone:
                missing[size] = str(gone)
            else:
                pictures[size] = f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
    html = report_html(audit_id, url, strategy, speed, pictures, missing, measured_at)
    footer = _TEMPLATES.get_template("report_footer.html").render(host=urlsplit(url).hostname, audit_id=audit_id)
    pdf = await instruments().print_pdf(html, footer)
    storage.save(audit_id, REPORT_FILE, pdf)
    return Report(REPORT_FILE, len(pdf), list(pictures), missing)


def report_html(
    audit_id: str,
    url: str,
    strategy: Strategy,
    speed: PageSpeed,
    pictures: dict[Size, str],
    missing: dict[Size, str],
    measured_at: datetime,
) -> str:
    """The report as one document that needs nothing from outside."""
    rings = gauges(speed.scores)
    values: dict[str, Any] = {
        "audit_id": audit_id,
        "url": url,
        "host": urlsplit(url).hostname,
        "strategy": strategy,
        "speed": speed,
        "gauges": rings,
        "verdict": _WORDS.get(rings[0].rating, "") if rings else "",
        "pictures": pictures,
        "missing": missing,
        "sizes": SIZES,
        "measured_at": measured_at.astimezone(UTC),
        "opportunities": speed.opportunities[:_OPPORTUNITIES_SHOWN],
        "more": max(0, len(speed.opportunities) - _OPPORTUNITIES_SHOWN),
        "most_ms": max([one.saves_ms for one in speed.opportunities], default=0),
        "in_bytes": in_bytes,
    }
    return _TEMPLATES.get_template("report.html").render(values)


def in_bytes(number: int) -> str:
    """A size as people read it."""
    if number >= _MILLION:
        return f"{number / _MILLION:,.1f} MB"
    return f"{number / _THOUSAND:,.0f} kB" if number >= _THOUSAND else f"{number} bytes"
