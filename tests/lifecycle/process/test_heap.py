"""What takes memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from pathlib import Path

import pytest

from perdure.lifecycle.process import heap
from perdure.lifecycle.process.heap import describe_heap


class Marked:
    """A type that only this test makes."""


def test_objects_are_reported_by_type_the_largest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = [Marked() for _ in range(10)]
    monkeypatch.setattr(gc, "get_objects", lambda: [*alive, {}, "text" * 1_000])
    found = describe_heap(2)
    assert (found.by, found.objects, len(found.entries)) == ("type", 12, 2)
    text, marked = found.entries
    assert (text.what, text.count, text.size) == ("str", 1, sys.getsizeof("text" * 1_000))
    assert marked.what.endswith("test_heap.Marked")
    assert (marked.count, marked.size) == (10, 10 * sys.getsizeof(alive[0]))


def test_while_tracemalloc_runs_lines_of_code_are_reported() -> None:
    tracemalloc.start()
    try:
        kept = [bytearray(1_000_000) for _ in range(3)]
        found = describe_heap(3)
    finally:
        tracemalloc.stop()
    assert found.by == "line"
    assert any("test_heap.py" in entry.what and entry.size > len(kept) * 1_000_000 for entry in found.entries)


def test_where_the_system_says_nothing_of_memory_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_STATM", Path("/nowhere/statm"))
    monkeypatch.setattr(gc, "get_objects", list)
    assert describe_heap(1).resident is None
