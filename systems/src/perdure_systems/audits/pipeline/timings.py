"""Measurements without an API: what Chromium itself reports about loading a page."""

from __future__ import annotations

from typing import Any, Final

from playwright.async_api import Page

from perdure_systems.audits.pipeline.scoring import CURVES, performance, rated
from perdure_systems.audits.results import Metric, Opportunity, PageSpeed, Strategy

_TITLES: Final = {
    "first-contentful-paint": "First Contentful Paint",
    "largest-contentful-paint": "Largest Contentful Paint",
    "total-blocking-time": "Total Blocking Time",
    "cumulative-layout-shift": "Cumulative Layout Shift",
    "server-response-time": "Server Response Time",
    "dom-content-loaded": "DOM Content Loaded",
    "load": "Page Load",
}
_WAIT_AFTER_LOAD_MS: Final = 500
_LOAD_TIMEOUT_MS: Final = 60_000
_SLOW_SERVER_FROM_MS: Final = 600
_REQUESTS_ADVISED_LIMIT: Final = 80
_PAGE_ADVISED_LIMIT_BYTES: Final = 1_600_000

# Runs before the page's own scripts. Observers are buffered, so nothing is missed.
OBSERVE: Final = """
window.__audit = {lcp: 0, cls: 0, tbt: 0};
const watch = (type, each) => {
  new PerformanceObserver((list) => list.getEntries().forEach(each)).observe({type, buffered: true});
};
watch("largest-contentful-paint", (entry) => { window.__audit.lcp = entry.startTime; });
watch("layout-shift", (entry) => { if (!entry.hadRecentInput) window.__audit.cls += entry.value; });
watch("longtask", (entry) => { window.__audit.tbt += Math.max(0, entry.duration - 50); });
"""
_READ: Final = """() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const resources = performance.getEntriesByType("resource");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const images = [...document.images];
  return {
    ...window.__audit,
    fcp: paint ? paint.startTime : navigation.domContentLoadedEventEnd,
    ttfb: navigation.responseStart - navigation.requestStart,
    dcl: navigation.domContentLoadedEventEnd,
    load: navigation.loadEventEnd,
    requests: resources.length + 1,
    bytes: resources.reduce((sum, one) => sum + one.transferSize, navigation.transferSize),
    blocking: resources.filter((one) => one.renderBlockingStatus === "blocking").length,
    oversized: images.filter((one) => one.naturalWidth > 2 * one.clientWidth && one.clientWidth > 0).length,
    unsized: images.filter((one) => !one.hasAttribute("width") && !one.style.width).length,
    plain: navigation.decodedBodySize > 2000 && navigation.encodedBodySize === navigation.decodedBodySize,
  };
}"""


async def measure_with_browser(page: Page, url: str, strategy: Strategy) -> PageSpeed:
    """Load the page once and read its timings."""
    await page.add_init_script(OBSERVE)
    response = await page.goto(url, wait_until="load", timeout=_LOAD_TIMEOUT_MS)
    if response is None or not response.ok:
        raise ConnectionError(f"{url} answered {response.status if response else 'nothing'}")
    await page.wait_for_timeout(_WAIT_AFTER_LOAD_MS)
    seen: dict[str, Any] = await page.evaluate(_READ)
    values = {
        "first-contentful-paint": seen["fcp"],
        "largest-contentful-paint": seen["lcp"] or seen["fcp"],
        "total-blocking-time": seen["tbt"],
        "cumulative-layout-shift": seen["cls"],
        "server-response-time": seen["ttfb"],
        "dom-content-loaded": seen["dcl"],
        "load": seen["load"],
    }
    return PageSpeed(
        source="browser",
        final_url=page.url,
        scores={"performance": performance(values, strategy)},
        metrics=[_metric(name, value, strategy) for name, value in values.items()],
        opportunities=_opportunities(seen),
        requests=seen["requests"],
        bytes=round(seen["bytes"]),
    )


def _metric(name: str, value: float, strategy: Strategy) -> Metric:
    curve = CURVES[strategy].get(name)
    text = f"{value:.3f}" if name == "cumulative-layout-shift" else f"{value:,.0f} ms"
    if name == "server-response-time":
        rating = rated(1.0 if value < _SLOW_SERVER_FROM_MS else 0.0)
    else:
        rating = "unknown" if curve is None else rated(curve.score(value))
    return Metric(name, _TITLES[name], round(value, 3), text, rating)


def _opportunities(seen: dict[str, Any]) -> list[Opportunity]:
    found = [
        (
            seen["ttfb"] >= _SLOW_SERVER_FROM_MS,
            "Reduce the server response time",
            "The first byte comes late.",
            seen["ttfb"],
        ),
        (
            seen["blocking"],
            "Remove render-blocking files",
            f"Files that hold up the first paint: {seen['blocking']}.",
            0,
        ),
        (seen["plain"], "Compress the document", "The HTML is sent without gzip or Brotli.", 0),
        (
            seen["oversized"],
            "Serve images in the size shown",
            f"Images that are far too large: {seen['oversized']}.",
            0,
        ),
        (seen["unsized"], "Give images a width and a height", f"Images that shift the layout: {seen['unsized']}.", 0),
        (
            seen["requests"] > _REQUESTS_ADVISED_LIMIT,
            "Make fewer requests",
            f"The page makes {seen['requests']} requests.",
            0,
        ),
        (seen["bytes"] > _PAGE_ADVISED_LIMIT_BYTES, "Send less", f"The page weighs {seen['bytes'] / 1e6:.1f} MB.", 0),
    ]
    return [Opportunity(title, text, round(saves)) for applies, title, text, saves in found if applies]
