"""The rules that both engines apply."""

from __future__ import annotations

from perdure.domain.jobs.states import FINAL
from perdure.policy.consequences import PARENT_ENDED


def test_every_end_of_a_parent_has_its_text() -> None:
    assert set(PARENT_ENDED) == FINAL
