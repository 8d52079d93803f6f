"""A square for each job."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from perdure.surfaces.desk.charts import (
    Cell,
    cells,
)

HOSTILE = '"><script>alert(1)</script>\u202e'


def test_cells_show_each_job_in_rows_and_leave_the_keyboard_alone() -> None:
    drawn = cells([Cell("dead", f"/jobs/{number}", f"{number} {HOSTILE}") for number in range(45)], label="children")
    root = ET.fromstring(drawn)  # noqa: S314 - ours
    rects = root.findall(".//rect")
    assert len(rects) == 45
    assert len({rect.get("y") for rect in rects}) == 2
    assert {link.get("tabindex") for link in root.findall(".//a")} == {"-1"}
    assert "<script" not in drawn
    assert cells([], label="none") == ""
