"""A small shop to audit, and what the PageSpeed API says of it."""

from __future__ import annotations

from typing import Any, Final

STYLE: Final = """
body { margin: 0; font: 17px/1.6 system-ui, sans-serif; color: #23303a; }
header { padding: 72px 8vw; background: #123b5d; color: #fff; }
header h1 { margin: 0 0 8px; font-size: 46px; } header p { margin: 0; max-width: 34em; color: #c9dceb; }
main { padding: 40px 8vw; display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 24px; }
article { padding: 22px; border: 1px solid #dde4ea; border-radius: 12px; } h2 { margin: 0 0 6px; font-size: 20px; }
"""
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atlas maps</title><link rel="stylesheet" href="/site.css"></head>
<body><header><h1>Atlas maps</h1><p>Printed maps of every coast, corrected each spring, folded by hand.<br>PATH</p>
</header>
<main>
<article><h2>Harbours</h2><p>Depths, lights and moorings of 1,400 harbours.</p></article>
<article><h2>Tides</h2><p>Tables for a year on one sheet that fits any pocket.</p></article>
<article><h2>Winds</h2><p>What to expect, month by month, from the log books of a century.</p></article>
<article><h2>Wrecks</h2><p>Where not to anchor, and what lies there.</p></article>
</main></body></html>
"""


def lighthouse(url: str) -> dict[str, Any]:
    """An answer of `runPagespeed`, version 5, cut to what is read of it."""
    return {
        "captchaResult": "CAPTCHA_NOT_NEEDED",
        "kind": "pagespeedonline#result",
        "id": url,
        "lighthouseResult": {
            "finalUrl": url,
            "categories": {
                "performance": {"id": "performance", "title": "Performance", "score": 0.71},
                "accessibility": {"id": "accessibility", "title": "Accessibility", "score": 0.96},
                "best-practices": {"id": "best-practices", "title": "Best Practices", "score": 0.88},
                "seo": {"id": "seo", "title": "SEO", "score": 0.92},
            },
            "audits": {
                "first-contentful-paint": _metric("First Contentful Paint", 0.93, 1_640.2, "1.6\xa0s"),
                "largest-contentful-paint": _metric("Largest Contentful Paint", 0.44, 4_210.7, "4.2\xa0s"),
                "total-blocking-time": _metric("Total Blocking Time", 0.84, 230.5, "230\xa0ms"),
                "cumulative-layout-shift": _metric("Cumulative Layout Shift", 0.99, 0.043, "0.043"),
                "speed-index": _metric("Speed Index", 0.77, 3_905.0, "3.9\xa0s"),
                "interactive": _metric("Time to Interactive", 0.7, 5_180.0, "5.2\xa0s"),
                "server-response-time": _metric("Initial server response time", 1, 118.4, "Root document took 120 ms"),
                "total-byte-weight": _metric("Total size", 0.9, 2_341_007, "Total size was 2,286 KiB"),
                "network-requests": {"title": "Network Requests", "details": {"type": "table", "items": [{}] * 61}},
                "modern-image-formats": _opportunity(
                    "Serve images in next-gen formats",
                    "Formats like WebP and AVIF often compress better than PNG or JPEG, which means faster downloads.",
                    2_310,
                    812_044,
                ),
                "render-blocking-resources": _opportunity(
                    "Eliminate render-blocking resources",
                    "Resources are blocking the first paint of your page. Consider delivering critical CSS inline.",
                    1_190,
                    0,
                ),
                "unused-javascript": _opportunity(
                    "Reduce unused JavaScript",
                    "Defer loading scripts until they are required to decrease bytes consumed by network activity.",
                    640,
                    210_450,
                ),
                "uses-text-compression": _opportunity("Enable text compression", "Serve text compressed.", 0, 48_210),
                "uses-responsive-images": _opportunity("Properly size images", "Nothing to save here.", 0, 0),
            },
        },
        "analysisUTCTimestamp": "2026-03-01T12:00:00.000Z",
    }


def _metric(title: str, score: float, value: float, text: str) -> dict[str, Any]:
    return {"title": title, "score": score, "numericValue": value, "displayValue": text}


def _opportunity(title: str, text: str, saves_ms: int, saves_bytes: int) -> dict[str, Any]:
    details = {"type": "opportunity", "overallSavingsMs": saves_ms, "overallSavingsBytes": saves_bytes}
    learn = " [Learn more](https://web.dev/)."
    return {"title": title, "description": text + learn, "score": 0.5, "details": details}
