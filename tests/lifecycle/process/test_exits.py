"""How processes end, in words."""

from __future__ import annotations

import pytest

from perdure.lifecycle.process.exits import how_it_ended


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0, "ended with exit code 0"),
        (75, "ended with exit code 75"),
        (-9, "was killed by SIGKILL (perhaps by the kernel's out-of-memory killer)"),
        (-15, "was killed by SIGTERM"),
        (-99, "was killed by signal 99"),
    ],
)
def test_a_return_code_is_reported_in_words(code: int, told: str) -> None:
    assert how_it_ended(code) == told
