"""A tree of jobs."""

from __future__ import annotations

import re

from perdure.surfaces.desk.charts import (
    Node,
    tree,
)


def test_a_tree_places_a_parent_at_the_middle_of_its_children() -> None:
    nodes = [Node(id="p", label="parent")]
    nodes += [Node(id=str(child), label="child", parent="p", colour="ok") for child in range(3)]
    drawn = tree(nodes, label="family")
    assert len(re.findall(r'class="branch"', drawn)) == 3
    heights = [float(y) for y in re.findall(r'class="node" x="[\d.]+" y="([\d.]+)"', drawn)]
    assert heights[0] == heights[2]
    assert tree([Node(id="a", label="own parent", parent="a")], label="odd")


def test_a_tree_with_a_circle_or_a_missing_parent_is_drawn_all_the_same() -> None:
    orphan = tree([Node(id="a", label="a", parent="gone")], label="x")
    assert orphan.count('class="node"') == 1
    assert 'class="branch"' not in orphan
    circle = [Node(id="a", label="a", parent="b"), Node(id="b", label="b", parent="a"), Node(id="c", label="c")]
    assert tree(circle, label="x").count('class="node"') == 1


def test_a_long_label_is_cut_and_whole_in_its_tooltip() -> None:
    drawn = tree([Node(id="a", label="x" * 30, note="12 s", url="/jobs/a")], label="x")
    assert f">{'x' * 23}…</text>" in drawn
    assert f"<title>{'x' * 30}</title>" in drawn
    assert '<a href="/jobs/a">' in drawn
    assert 'class="note"' in drawn


def test_generations_stand_side_by_side_and_siblings_one_below_the_other() -> None:
    nodes = [Node(id="p", label="p"), *(Node(id=each, label=each, parent="p") for each in "ab")]
    drawn = tree(nodes, label="x")
    places = re.findall(r'class="node" x="(\d+)" y="(\d+)"', drawn)
    assert places == [("1", "21"), ("237", "1"), ("237", "41")]
    assert re.findall(r'class="branch" d="([^"]+)"', drawn) == [
        "M191.0 36.0C214.0 36.0 214.0 16.0 237.0 16.0",
        "M191.0 36.0C214.0 36.0 214.0 56.0 237.0 56.0",
    ]
    assert 'width="429" height="73"' in drawn
    assert f">{'x' * 24}</text>" in tree([Node(id="a", label="x" * 24)], label="x")
