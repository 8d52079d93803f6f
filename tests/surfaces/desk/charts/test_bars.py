"""Bars and meters to scale."""

from __future__ import annotations

import re

import pytest

from perdure.surfaces.desk.charts import bars, meter


def heights(drawn: str) -> list[float]:
    return [float(height) for height in re.findall(r'height="([\d.]+)"(?=/?>)', drawn)]


def test_the_highest_bar_fills_the_chart_and_one_of_many_stays_visible() -> None:
    assert heights(bars([0, 1, 500, 1_000], label="x")) == [0.6, 1.5, 12, 24]


def test_a_bar_of_nothing_is_ground_and_has_no_colour() -> None:
    drawn = bars([0, 2], label="x", colour="dead", notes=["at 12:00: 0", "at 12:01: 2"])
    assert re.findall(r'class="(\w[^"]*)" x', drawn) == ["ground", "fill c-dead"]
    assert "<title>at 12:01: 2</title>" in drawn


@pytest.mark.parametrize(
    ("used", "of", "width"), [(0, 10, "0"), (5, 10, "50"), (15, 10, "100"), (-1, 10, "0"), (5, 0, "0")]
)
def test_a_meter_is_filled_by_its_share_and_never_overflows(used: float, of: float, width: str) -> None:
    assert f'class="fill c-running" width="{width}"' in meter(used, of, label="x")


def test_a_meter_may_mark_where_its_limit_is_near() -> None:
    assert 'class="near" x="80"' in meter(1, 4, label="x", near=0.8)
    assert 'class="near"' not in meter(1, 4, label="x")


def test_bars_share_the_width_with_a_gap_behind_each_and_stand_on_one_line() -> None:
    drawn = bars([1, 2], label="x")
    assert re.findall(r'x="(\d+)" y="(\d+)" width="([\d.]+)" height="(\d+)"', drawn) == [
        ("0", "12", "37.5", "12"),
        ("50", "0", "37.5", "24"),
    ]
