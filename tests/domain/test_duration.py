"""Spans of time are read as people write them, and refused by name."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.duration import LONGEST_DURATION, Duration, format_duration, parse_duration
from perdure.errors import ArgumentError, SettingsError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1h 30m", timedelta(hours=1, minutes=30)),
        ("5d", timedelta(days=5)),
        ("250ms", timedelta(milliseconds=250)),
        ("1w", timedelta(weeks=1)),
        ("1.5h", timedelta(minutes=90)),
        (" 90 ", timedelta(seconds=90)),
        ("0", timedelta(0)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        (timedelta(days=2), timedelta(days=2)),
    ],
)
def test_a_span_is_read_as_written(written: Duration, meant: timedelta) -> None:
    assert parse_duration("delay", written) == meant


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "  ",
        "5x",
        "5M",
        "30m1h",
        "1h1h",
        "-5s",
        "5 minutes",
        "1e3s",
        "NaN",
        "\u0663s",
        "9" * 400 + "d",
        -1,
        float("nan"),
        float("inf"),
        10**400,
        True,
        None,
        timedelta(seconds=-1),
        timedelta(days=36_501),
    ],
)
def test_what_is_no_span_is_refused_by_name_with_an_example(wrong: Duration) -> None:
    with pytest.raises(ArgumentError, match=r'^delay .*"1h30m"') as refused:
        parse_duration("delay", wrong)
    assert refused.value.field == "delay"
    assert len(str(refused.value)) < 250


def test_a_setting_is_refused_as_a_setting() -> None:
    with pytest.raises(SettingsError, match=r"^rescuer\.lease "):
        parse_duration("rescuer.lease", "soon", error=SettingsError)


@pytest.mark.parametrize(
    ("span", "written"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=14), "14d"),
        (timedelta(milliseconds=1250), "1s250ms"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_a_span_is_written_short(span: timedelta, written: str) -> None:
    assert format_duration(span) == written


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST_DURATION))
def test_every_span_reads_back_as_itself(span: timedelta) -> None:
    assert parse_duration("delay", format_duration(span)) == span


@given(st.text())
def test_any_text_is_a_span_or_refused(text: str) -> None:
    try:
        span = parse_duration("delay", text)
    except ArgumentError:
        return
    assert timedelta(0) <= span <= LONGEST_DURATION
