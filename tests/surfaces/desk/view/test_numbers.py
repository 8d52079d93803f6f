"""Numbers and spans as people read them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.surfaces.desk.view.numbers import (
    NOTHING,
    amount,
    number,
    rate,
    share,
    short_number,
    short_span,
    size,
    span,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (418, "418"), (1_204, "1,204"), (31_250, "31 k"), (1_240_000, "1.2 M"), (3e9, "3 G"), (None, "\u2013")],
)
def test_numbers_are_rounded_for_reading(value: float | None, shown: str) -> None:
    assert short_number(value) == shown


def test_a_rounded_number_has_the_exact_one_in_its_tooltip() -> None:
    assert number(1_240_000) == '<span title="1,240,000">1.2 M</span>'
    assert number(418) == "418"
    assert number(10_000, capped=True) == '<span title="at least 10,000">10 k+</span>'


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.0004, "< 1 ms"),
        (0.064, "64 ms"),
        (2.13, "2.1 s"),
        (30, "30 s"),
        (95, "1 m 35 s"),
        (1_500, "25 m"),
        (12_000, "3 h 20 m"),
        (187_200, "2 d 4 h"),
        (-5, "-5 s"),
    ],
)
def test_spans_have_two_units_at_most(seconds: float, shown: str) -> None:
    assert short_span(seconds) == shown
    assert short_span(timedelta(seconds=seconds)) == shown
    assert span(seconds) == f'<span title="{seconds:,.3f} s">{shown.replace("<", "&lt;")}</span>'


def test_rates_shares_and_sizes() -> None:
    assert [rate(0, 60), rate(49_440, 60), rate(150, 60), rate(4, 60), rate(3, 3_600)] == [
        "0 /s",
        "824 /s",
        "2.5 /s",
        "4 /min",
        "3 /h",
    ]
    assert [share(None), share(0.0), share(0.0004), share(0.019), share(0.31)] == [
        "\u2013",
        "0 %",
        "< 0.1 %",
        "1.9 %",
        "31 %",
    ]
    assert [size(412), size(16_384), size(1_200_000)] == ["412 B", "16 KB", "1.2 MB"]


def test_amounts_keep_what_matters() -> None:
    assert [amount(value) for value in (0, 8.1, 8, 1_204.5, 0.0032, 0.123456)] == [
        *("0", "8.1", "8", "1,204.5", "0.0032", "0.1235")
    ]


def test_what_is_not_known_is_a_dash_and_no_rate_is_no_error() -> None:
    assert short_span(None) == span(None) == number(None) == NOTHING
    assert rate(5, 0) == "0 /s"


def test_units_change_exactly_at_their_edges() -> None:
    assert [short_number(value) for value in (9_999, 10_000, 999_400, 1_000_000, 1e9, -10_000)] == [
        *("9,999", "10 k", "999 k", "1 M", "1 G", "-10 k")
    ]
    assert [short_span(seconds) for seconds in (0.001, 0.9994, 1, 10.4, 60, 3_600, 86_400)] == [
        *("1 ms", "999 ms", "1 s", "10 s", "1 m", "1 h", "1 d")
    ]
    assert [short_span(seconds) for seconds in (9 * 60 + 5, 10 * 60 + 5, 36_000 + 120)] == ["9 m 5 s", "10 m", "10 h"]
    assert [rate(count, 60) for count in (60, 59, 1)] == ["1 /s", "59 /min", "1 /min"]
    assert [rate(count, 1) for count in (9.96, 10.4)] == ["10 /s", "10 /s"]
    assert [share(part) for part in (0.001, 1.0)] == ["0.1 %", "100 %"]
    assert [size(count) for count in (999, 1_000, 1_000_000)] == ["999 B", "1 KB", "1 MB"]
    assert amount(1) == "1"


def test_a_value_that_rounds_up_to_the_next_unit_is_shown_in_it() -> None:
    assert [short_number(value) for value in (999_499, 999_999, 999_999_999, -999_999)] == [
        "999 k",
        "1 M",
        "1 G",
        "-1 M",
    ]
    assert [short_number(value) for value in (9.96, 0.996, 9_960_000)] == ["10", "1", "10 M"]
    assert [short_span(seconds) for seconds in (0.9996, 9.96, 59.4, 59.9)] == ["1 s", "10 s", "59 s", "1 m"]
    assert [size(count) for count in (999_499, 999_999, 5_000_000_000)] == ["999 KB", "1 MB", "5,000 MB"]
