"""Charts: a label for those who listen, values on hover, and nothing that a strict policy forbids."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from perdure.surfaces.desk.charts import (
    Bar,
    Line,
    Node,
    Timeline,
    bars,
    meter,
    series,
    sparkline,
    timeline,
    tree,
)
from perdure.surfaces.desk.view.numbers import short_number

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>\u202e'


def life(*bars: Bar) -> Timeline:
    return Timeline(lanes=("waits", "attempts"), bars=bars, now=NOON + timedelta(minutes=2))


def every_chart(text: str) -> list[Markup]:
    minutes = [NOON + timedelta(minutes=minute) for minute in range(3)]
    line = Line(name=text, values=[1.0, None, 3.0], colour="ok", area=True)
    return [
        sparkline([1, None, 3], label=text),
        bars([0, 2, 1], label=text, notes=[text] * 3),
        meter(1, 4, label=text),
        series(minutes, [line], heading=text, label=text, unit=short_number),
        timeline(life(Bar(lane="waits", start=NOON, end=minutes[1], label=text, said=text)), label=text),
        tree([Node(id="a", label=text, said=text, note=text, url="/jobs/a")], label=text),
    ]


def test_charts_have_a_name_and_pass_a_strict_policy() -> None:
    for chart in every_chart("Jobs per second"):
        assert 'role="img" aria-label="Jobs per second' in chart
        assert not re.search(r"\sstyle=|\son\w+=|<script|<style", chart)
        ET.fromstring(f"<div>{chart}</div>".replace("<output ", "<output ").replace("&nbsp;", " "))  # noqa: S314 - ours


def test_hostile_text_stays_text_in_charts() -> None:
    for chart in every_chart(HOSTILE):
        assert "<script" not in chart
        assert "\u202e" not in chart
        ET.fromstring(f"<div>{chart}</div>")  # noqa: S314 - ours


def test_charts_without_values_are_drawn_all_the_same() -> None:
    assert sparkline([], label="x")
    assert bars([], label="x")
    assert meter(0, 0, label="none")
    assert series([], [Line(name="a", values=[], colour="ok")], heading="h", label="x", unit=short_number)
    assert timeline(life(), label="x") == ""
    assert tree([], label="x") == ""
