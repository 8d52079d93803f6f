"""A job's history to scale."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from perdure.surfaces.desk.charts import (
    Bar,
    Mark,
    Timeline,
    timeline,
)
from perdure.surfaces.desk.charts.timeline import scale_of

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


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


def test_the_names_of_lanes_stand_beside_a_timeline_that_scrolls() -> None:
    drawn = timeline(life(), label="x")
    beside = drawn[drawn.index('class="lane-names"') :]
    assert re.findall(r'class="lane"[^>]*>(\w+)<', beside) == ["waits", "attempts"]
    assert 'aria-hidden="true"' in beside


def test_the_line_of_now_is_drawn_only_while_the_job_is_not_final() -> None:
    assert 'class="now"' in timeline(life(), label="x")
    assert 'class="now"' not in timeline(life(now=None), label="x")


def test_the_label_of_now_stays_inside_the_picture() -> None:
    """Late in the picture it stands before its line, early behind it."""
    late = timeline(life(), label="x")
    assert re.search(r'class="now" x="984" y="13" text-anchor="end"', late)
    ahead = Bar(lane="attempts", start=at(5_000), end=at(5_030), ahead=True)
    early = timeline(life(bars=(*life().bars, ahead)), label="x")
    assert re.search(r'class="now" x="\d+(\.\d+)?" y="13" text-anchor="start"', early)


def test_waits_are_paler_than_attempts() -> None:
    drawn = timeline(life(), label="x")
    assert 'class="bar soft c-retrying"' in drawn
    assert 'class="bar solid c-dead"' in drawn
