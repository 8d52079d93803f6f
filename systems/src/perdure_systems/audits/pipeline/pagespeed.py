"""The PageSpeed Insights API, version 5: `runPagespeed`, or a service that answers the same."""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec

from perdure import HttpTriage, Permanent, Snooze
from perdure_systems.audits import settings
from perdure_systems.audits.addresses import tls
from perdure_systems.audits.pipeline.scoring import rated
from perdure_systems.audits.results import Metric, Opportunity, PageSpeed, Rating, Strategy

CATEGORIES: Final = ("performance", "accessibility", "best-practices", "seo")
_METRICS: Final = {
    "first-contentful-paint": "First Contentful Paint",
    "largest-contentful-paint": "Largest Contentful Paint",
    "total-blocking-time": "Total Blocking Time",
    "cumulative-layout-shift": "Cumulative Layout Shift",
    "speed-index": "Speed Index",
    "interactive": "Time to Interactive",
    "server-response-time": "Server Response Time",
}
_TRIAGE: Final = HttpTriage()
_REQUEST_TIMEOUT_SECONDS: Final = 90
_TOO_MANY_REQUESTS_STATUS: Final = 429


class _Category(msgspec.Struct):
    score: float | None = None


class _Audit(msgspec.Struct, rename="camel"):
    title: str = ""
    description: str = ""
    score: float | None = None
    display_value: str = ""
    numeric_value: float | None = None
    details: dict[str, Any] | None = None


class _Lighthouse(msgspec.Struct, rename="camel"):
    categories: dict[str, _Category]
    audits: dict[str, _Audit]
    final_url: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    lighthouse_result: _Lighthouse
    id: str = ""


async def run_pagespeed(url: str, strategy: Strategy) -> PageSpeed:
    """Let the API measure a page. Its own quota costs no attempt; a page that it refuses is a permanent failure."""
    parameters: list[tuple[str, str | int | float | None]] = [("url", url), ("strategy", strategy)]
    parameters += [("category", category) for category in CATEGORIES]
    if key := settings.pagespeed_key():
        parameters.append(("key", key))
    async with httpx.AsyncClient(timeout=_REQUEST_TIMEOUT_SECONDS, verify=tls()) as client:
        response = await client.get(settings.pagespeed_url(), params=parameters)
    if response.status_code == _TOO_MANY_REQUESTS_STATUS:
        raise Snooze("1m", f"the PageSpeed API is over its quota: {_message(response)}")
    if 400 <= response.status_code < 500:  # noqa: PLR2004 - the client's errors
        raise Permanent(f"the PageSpeed API refused {url}: {response.status_code} {_message(response)}")
    return read_answer(_TRIAGE.check(response).content, url)


def read_answer(body: bytes, url: str) -> PageSpeed:
    """The measurements in an answer of the API."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"the PageSpeed API answered something else for {url}: {error}") from None
    found = answer.lighthouse_result
    return PageSpeed(
        source="pagespeed",
        final_url=found.final_url or answer.id or url,
        scores={name: round(one.score * 100) for name, one in found.categories.items() if one.score is not None},
        metrics=[_metric(name, title, found.audits[name]) for name, title in _METRICS.items() if name in found.audits],
        opportunities=_opportunities(found.audits),
        requests=_count(found.audits, "network-requests"),
        bytes=_number(found.audits, "total-byte-weight"),
    )


def _metric(name: str, title: str, audit: _Audit) -> Metric:
    value = audit.numeric_value or 0.0
    rating: Rating = "unknown" if audit.score is None else rated(audit.score)
    text = f"{value:,.0f} ms" if name == "server-response-time" else audit.display_value.replace("\xa0", " ")
    return Metric(name, title, round(value, 3), text or f"{value:,.0f}", rating)


def _opportunities(audits: dict[str, _Audit]) -> list[Opportunity]:
    found = [
        Opportunity(
            one.title,
            one.description.partition(" [Learn")[0],
            round(one.details.get("overallSavingsMs") or 0),
            round(one.details.get("overallSavingsBytes") or 0),
        )
        for one in audits.values()
        if one.details is not None and one.details.get("type") == "opportunity"
    ]
    worth = [one for one in found if one.saves_ms or one.saves_bytes]
    return sorted(worth, key=lambda one: (one.saves_ms, one.saves_bytes), reverse=True)


def _count(audits: dict[str, _Audit], name: str) -> int | None:
    details = audits[name].details if name in audits else None
    return len(details["items"]) if details and isinstance(details.get("items"), list) else None


def _number(audits: dict[str, _Audit], name: str) -> int | None:
    value = audits[name].numeric_value if name in audits else None
    return None if value is None else round(value)


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError):
        return response.text[:300]
