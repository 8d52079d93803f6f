"""Records as plain Python."""

from __future__ import annotations

import json

import pytest
from tests.support.builders.views import a_view

from perdure.domain.plain_records import plain, unpacked


def test_a_record_can_be_written_by_any_json_library() -> None:
    told = plain(a_view(tags=("eu",)))
    assert json.loads(json.dumps(told)) == told
    assert (told["tags"], told["created_at"]) == (["eu"], "2026-03-04T12:00:00Z")


@pytest.mark.parametrize(("text", "value"), [(None, None), ("[1]", [1]), ("null", None), ("{oops", "{oops"), ("", "")])
def test_a_damaged_document_stays_text(text: str | None, value: object) -> None:
    assert unpacked(text) == value
    deep = "[" * 100_000
    assert unpacked(deep) == deep
