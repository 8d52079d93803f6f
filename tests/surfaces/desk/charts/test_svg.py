"""Elements of SVG."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from perdure.surfaces.desk.charts.svg import Point, area_path, line_path, picture, short, tag


@pytest.mark.parametrize(("number", "text"), [(1.0, "1"), (1.005, "1"), (1.25, "1.25"), (100.0, "100"), (-0.5, "-0.5")])
def test_a_length_has_two_decimals_at_most(number: float, text: str) -> None:
    assert short(number) == text


def test_text_and_values_are_escaped_and_markup_is_not_escaped_twice() -> None:
    assert tag("text", {"title": '"<'}, ["<b>\u202e"]) == '<text title="&#34;&lt;">&lt;b&gt;\\u202e</text>'
    assert tag("g", None, [tag("rect"), Markup("&lt;")]) == "<g><rect/>&lt;</g>"
    assert tag("a", {"href": None, "x": 1.5, "n": 2}) == '<a x="1.5" n="2"/>'


GAPPED: list[Point | None] = [(0, 1), (1, 2), None, None, (4, 3)]


def test_a_line_lifts_its_pen_at_a_missing_point() -> None:
    assert line_path(GAPPED) == "M0 1L1 2M4 3"
    assert line_path([None, None]) == ""


def test_an_area_reaches_the_floor_on_both_sides_of_a_gap() -> None:
    assert area_path(GAPPED, 9) == "M0 1L1 2L1 9L0 9ZM4 3L4 9L4 9Z"
    assert area_path([None, (1, 2)], 9) == "M1 2L1 9L1 9Z"


def test_a_picture_is_as_wide_as_its_container_or_in_its_drawn_size() -> None:
    stretched = picture("Jobs", 100.0, 24.0, "spark", [], stretch=True)
    assert 'preserveAspectRatio="none"' in stretched
    assert "width=" not in stretched
    natural = picture("Jobs", 100.0, 24.0, "tree", [], stretch=False, natural=True)
    assert 'width="100" height="24"' in natural
    assert 'role="img" aria-label="Jobs"' in natural
