"""Times as people read them, in the viewer's zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.surfaces.desk.view.numbers import span
from perdure.surfaces.desk.view.times import ago, full, moment, sentence

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_times_are_utc_with_the_instant_for_the_script() -> None:
    assert moment(NOON, NOON) == (
        '<time datetime="2026-03-04T12:00:00+00:00" data-as="clock" title="2026-03-04 12:00:00 UTC">12:00:00 UTC</time>'
    )
    assert "2026-03-01 12:00 UTC</time>" in moment(NOON - timedelta(days=3), NOON)
    assert "2026-03-04 12:00:00 UTC</time>" in full(NOON)
    assert ">3 m ago</time>" in ago(NOON - timedelta(minutes=3), NOON)
    assert ">in 20 s</time>" in ago(NOON + timedelta(seconds=20), NOON)
    assert ">now</time>" in ago(NOON, NOON)
    assert moment(None, NOON) == ago(None, NOON) == full(None) == "\u2013"


def test_a_time_within_a_sentence_is_one_for_the_script_too() -> None:
    shown = sentence("held until 2026-03-04 12:05:00Z <b>, not 2026-03-04", NOON)
    assert shown.startswith(f"held until {moment(NOON + timedelta(minutes=5), NOON)} &lt;b&gt;")
    assert shown.endswith(", not 2026-03-04")
    for written in ("2026-03-04T12:05:00+00:00", "2026-03-04T12:05:00.25Z", "2026-03-04 13:05:00+01:00"):
        assert ">12:05:00 UTC</time>" in sentence(f"at {written}", NOON)
    for text in ("2026-13-41 25:61:00Z", "2026-03-04 12:05", "x2026-03-04 12:05:00Z\u202e", "0001-01-01 00:00+23:59"):
        assert "<time" not in sentence(text, NOON)


def test_a_span_within_a_sentence_has_the_form_of_the_rest_of_the_desk() -> None:
    shown = sentence("its last heartbeat was 1h51m ago (of 250ms), then 9m; in <b> 2d.", NOON)
    assert shown == (
        f"its last heartbeat was {span(6_660)} ago (of {span(0.25)}), then {span(540)}; in &lt;b&gt; {span(172_800)}."
    )
    for text in ("queue sync-5m", "host 5m.example", "'5m'", "m5m", "1h5", "5m1h", "99999999d", "5m…"):
        assert "<span title" not in sentence(text, NOON)


def test_a_time_is_near_within_twenty_hours_and_now_within_a_second() -> None:
    near, far = (moment(NOON - timedelta(hours=20) + timedelta(seconds=side), NOON) for side in (1, 0))
    assert ('data-as="clock"' in near, 'data-as="day"' in far) == (True, True)
    assert ">now</time>" in ago(NOON - timedelta(milliseconds=999), NOON)
    assert ">1 s ago</time>" in ago(NOON - timedelta(seconds=1), NOON)
    assert ">in 1 s</time>" in ago(NOON + timedelta(seconds=1), NOON)


def test_a_sentence_is_cut_only_beyond_its_limit() -> None:
    assert sentence("x" * 10, NOON, 10) == "x" * 10
    assert sentence("x" * 11, NOON, 10) == "x" * 9 + "…"
