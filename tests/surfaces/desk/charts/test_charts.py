"""Charts: a label for those who listen, values on hover, and nothing that a strict policy forbids."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup

from perdure.surfaces.desk.charts import (
    Bar,
    Cell,
    Line,
    Mark,
    Node,
    Timeline,
    bars,
    cells,
    meter,
    series,
    sparkline,
    timeline,
    tree,
)
from perdure.surfaces.desk.charts.scale import ceiling, parts, round_times
from perdure.surfaces.desk.charts.timeline import scale_of
from perdure.surfaces.desk.view.numbers import short_number

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>\u202e'


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def life(**changes: object) -> Timeline:
    whole = {
        "lanes": ("waits", "attempts"),
        "bars": (
            Bar(lane="waits", start=at(0), end=at(60), colour="retrying", label="60 s", soft=True),
            Bar(lane="attempts", start=at(60), end=at(90), colour="dead", said="attempt 1 failed"),
        ),
        "now": at(100),
        **changes,
    }
    return Timeline(**whole)  # type: ignore[arg-type]


def every_chart(text: str) -> list[Markup]:
    minutes = [NOON + timedelta(minutes=minute) for minute in range(3)]
    line = Line(name=text, values=[1.0, None, 3.0], colour="ok", area=True)
    return [
        sparkline([1, None, 3], label=text),
        bars([0, 2, 1], label=text, notes=[text] * 3),
        meter(1, 4, label=text),
        series(minutes, [line], heading=text, label=text, unit=short_number),
        timeline(life(bars=(Bar(lane="waits", start=at(0), end=at(9), label=text, said=text),)), label=text),
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


def test_a_missing_value_breaks_the_line() -> None:
    assert 'd="M0 22M100 2"' in sparkline([0, None, 9], label="x")


def test_charts_without_values_are_drawn_all_the_same() -> None:
    assert sparkline([], label="x")
    assert bars([], label="x")
    assert meter(0, 0, label="none")
    assert series([], [Line(name="a", values=[], colour="ok")], heading="h", label="x", unit=short_number)
    assert timeline(life(bars=()), label="x") == ""
    assert tree([], label="x") == ""


@pytest.mark.parametrize(("largest", "top"), [(824, 900), (1.2, 1.5), (0.064, 0.08), (1_000, 1_000), (0, 1)])
def test_scales_end_at_round_numbers(largest: float, top: float) -> None:
    assert ceiling([largest, None], 1.0 if not largest else 0.001) == pytest.approx(top)
    assert parts(top) in {2, 3}


def test_round_times_lie_within_and_are_few() -> None:
    found = round_times(at(7), at(607), 6)
    assert found[0] == at(120)
    assert all(at(7) <= one <= at(607) for one in found)
    assert len(found) <= 6


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


def test_a_timeline_is_to_scale() -> None:
    scale = scale_of(life())
    assert scale.x(at(60)) - scale.x(at(0)) == pytest.approx(2 * (scale.x(at(90)) - scale.x(at(60))))
    assert not scale.is_bent


def test_what_is_ahead_by_far_leaves_the_past_room() -> None:
    ahead = Bar(lane="attempts", start=at(5_000), end=at(5_030), ahead=True, label="attempt 2")
    whole = life(bars=(*life().bars, ahead))
    scale = scale_of(whole)
    assert scale.is_bent
    assert scale.x(at(100)) > 600
    assert scale.x(at(5_030)) == pytest.approx(990)
    drawn = timeline(whole, label="x")
    assert 'class="break"' in drawn
    assert 'class="bar ahead c-none"' in drawn


def test_what_is_ahead_and_near_has_the_scale_of_the_past_and_no_break() -> None:
    ahead = Bar(lane="attempts", start=at(110), end=at(120), ahead=True, label="2")
    whole = life(bars=(*life().bars, ahead))
    scale = scale_of(whole)
    assert scale.x(at(120)) - scale.x(at(110)) == pytest.approx(scale.x(at(60)) - scale.x(at(50)))
    drawn = timeline(whole, label="x")
    assert 'class="break"' not in drawn
    assert 'data-time="2026-03-04T12:02:00+00:00"' in drawn  # times go on after now


def test_only_what_is_far_from_now_has_a_date_and_what_is_ahead_room_for_its_number() -> None:
    ahead = Bar(lane="attempts", start=at(200_000), end=at(200_001), ahead=True, label="2")
    drawn = timeline(life(bars=(*life().bars, ahead)), label="x")
    assert len(re.findall(r'data-as="day"', drawn)) == 1  # the far end
    assert 'data-as="second"' in drawn
    assert re.search(r'class="bar ahead c-none" x="974" y="\d+" width="16"', drawn)
    assert '<text class="inside ahead"' in drawn


def test_a_short_attempt_is_still_seen_and_an_open_one_ends_now() -> None:
    brief = Bar(lane="attempts", start=at(0), end=at(0.001), colour="dead")
    running = Bar(lane="attempts", start=at(50), colour="running", said="attempt 2 runs")
    drawn = timeline(life(bars=(brief, running), marks=(Mark(lane="attempts", at=at(20), said="crash"),)), label="x")
    assert 'width="3" ' in drawn
    assert "attempt 2 runs: 50 s" in drawn
    assert "<title>crash</title>" in drawn


def test_a_tree_places_a_parent_at_the_middle_of_its_children() -> None:
    nodes = [Node(id="p", label="parent")]
    nodes += [Node(id=str(child), label="child", parent="p", colour="ok") for child in range(3)]
    drawn = tree(nodes, label="family")
    assert len(re.findall(r'class="branch"', drawn)) == 3
    heights = [float(y) for y in re.findall(r'class="node" x="[\d.]+" y="([\d.]+)"', drawn)]
    assert heights[0] == heights[2]
    assert tree([Node(id="a", label="own parent", parent="a")], label="odd")


def test_cells_show_each_job_in_rows_and_leave_the_keyboard_alone() -> None:
    drawn = cells([Cell("dead", f"/jobs/{number}", f"{number} {HOSTILE}") for number in range(45)], label="children")
    root = ET.fromstring(drawn)  # noqa: S314 - ours
    rects = root.findall(".//rect")
    assert len(rects) == 45
    assert len({rect.get("y") for rect in rects}) == 2
    assert {link.get("tabindex") for link in root.findall(".//a")} == {"-1"}
    assert "<script" not in drawn
    assert cells([], label="none") == ""


def test_the_label_of_a_chart_says_its_last_and_highest_values() -> None:
    lines = [
        Line(name="finished", values=[1.0, 9.0, None, 4.0], colour="ok"),
        Line(name="failed", values=[None] * 4, colour="dead"),
    ]
    times = [NOON + timedelta(minutes=minute) for minute in range(4)]
    drawn = series(times, lines, heading="Jobs", label="Jobs", unit=lambda value: f"{value:.0f} /s")
    assert 'aria-label="Jobs: finished 4 /s, at most 9 /s"' in drawn
    assert 'aria-label="Jobs: no values"' in series(times, lines[1:], heading="Jobs", label="Jobs", unit=str)


def test_the_names_of_lanes_stand_beside_a_timeline_that_scrolls() -> None:
    drawn = timeline(life(), label="x")
    beside = drawn[drawn.index('class="lane-names"') :]
    assert re.findall(r'class="lane"[^>]*>(\w+)<', beside) == ["waits", "attempts"]
    assert 'aria-hidden="true"' in beside
