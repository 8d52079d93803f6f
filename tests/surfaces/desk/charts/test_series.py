"""Values over time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from perdure.surfaces.desk.charts import (
    Line,
    series,
)
from perdure.surfaces.desk.view.numbers import short_number

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_series_says_its_values_on_hover_and_its_times_to_the_script() -> None:
    minutes = [NOON, NOON + timedelta(minutes=1)]
    lines = [
        Line(name="finished", values=[3.0, None], colour="ok"),
        Line(name="failed", values=[1.0, 0.0], colour="dead"),
    ]
    chart = series(minutes, lines, heading="Finished", label="Finished", unit=short_number)
    assert "<title>2026-03-04 12:00 UTC: finished 3 · failed 1</title>" in chart
    assert "<title>2026-03-04 12:01 UTC: failed 0</title>" in chart
    assert 'data-as="tick">12:00</time>' in chart
    assert '<li class="c-dead">failed</li>' in chart


def test_the_label_of_a_chart_says_its_last_and_highest_values() -> None:
    lines = [
        Line(name="finished", values=[1.0, 9.0, None, 4.0], colour="ok"),
        Line(name="failed", values=[None] * 4, colour="dead"),
    ]
    times = [NOON + timedelta(minutes=minute) for minute in range(4)]
    drawn = series(times, lines, heading="Jobs", label="Jobs", unit=lambda value: f"{value:.0f} /s")
    assert 'aria-label="Jobs: finished 4 /s, at most 9 /s"' in drawn
    assert 'aria-label="Jobs: no values"' in series(times, lines[1:], heading="Jobs", label="Jobs", unit=str)


def test_a_chart_of_many_days_names_days_and_one_of_hours_the_time() -> None:
    for step, form in ((timedelta(minutes=30), "tick"), (timedelta(hours=12), "daytick")):
        times = [NOON + number * step for number in range(12)]
        drawn = series(times, [], heading="Jobs", label="Jobs", unit=str, step=step)
        assert drawn.count(f'data-as="{form}"') == 4
        assert drawn.endswith("<li>now</li></ol></figure>")


def test_the_levels_of_a_chart_are_in_its_unit_from_the_top_down() -> None:
    drawn = series(
        [], [Line(name="a", values=[55.0], colour="ok")], heading="h", label="x", unit=lambda v: f"{v:.0f} s"
    )
    assert '<ol class="levels levels-3" aria-hidden="true"><li>60 s</li><li>40 s</li><li>20 s</li></ol>' in drawn


def test_a_line_is_to_scale_and_an_area_reaches_its_floor() -> None:
    line = Line(name="a", values=[0.0, 5.0, 10.0], colour="ok")
    times = [NOON + number * timedelta(minutes=1) for number in range(3)]
    drawn = series(times, [line], heading="h", label="x", unit=str)
    assert 'class="line c-ok" d="M0 150L300 75L600 0"' in drawn
    assert 'class="area' not in drawn
    assert [float(x) for x in re.findall(r'class="hit" x="([\d.]+)"', drawn)] == [0, 150, 450]
    assert [float(y) for y in re.findall(r'class="rule"[^>]* y1="([\d.]+)"', drawn)] == [0, 75, 150]
    filled = series(
        times, [Line(name="a", values=[0.0, 10.0, 10.0], colour="ok", area=True)], heading="h", label="x", unit=str
    )
    assert 'class="area c-ok" d="M0 150L300 0L600 0L600 150L0 150Z"' in filled


def test_the_times_below_a_chart_are_its_quarters() -> None:
    times = [NOON + number * timedelta(minutes=10) for number in range(6)]
    drawn = series(times, [], heading="h", label="x", unit=str, step=timedelta(minutes=10))
    assert re.findall(r'data-as="tick">([\d:]+)<', drawn) == ["12:00", "12:15", "12:30", "12:45"]
