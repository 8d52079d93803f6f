"""JSON on the command line."""

from __future__ import annotations

import pytest

from perdure.errors import ArgumentError
from perdure.surfaces.cli.terminal.reading import read_json


def test_any_document_is_read() -> None:
    assert read_json("--args", '{"n": [1, null, "ü"]}') == {"n": [1, None, "ü"]}


@pytest.mark.parametrize("text", ["", "{n: 1}", "'{}'", "[" * 100_000, '"\ud800"'])
def test_text_that_is_no_json_is_refused_with_a_quoted_example(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"""^--args is not JSON: .*as '\{"n": 1\}'$""") as refused:
        read_json("--args", text)
    assert "JSON is malformed" not in str(refused.value)
