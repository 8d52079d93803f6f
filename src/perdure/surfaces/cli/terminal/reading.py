"""JSON given on the command line."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.errors import ArgumentError


def read_json(option: str, text: str) -> Any:
    """The value of a JSON document."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        problem = str(error).removeprefix("JSON is malformed: ")
        raise ArgumentError(option, f"is not JSON: {problem}; quote it for the shell, as '{{\"n\": 1}}'") from None
