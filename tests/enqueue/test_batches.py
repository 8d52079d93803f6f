"""Batches that cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import App
from perdure.domain.flows.child_ids import CHILDREN_LIMIT
from perdure.errors import ArgumentError

app = App("sqlite:///unused.db")
other = App("sqlite:///unused.db")


@app.job
async def send(n: int) -> None: ...


@other.job(name="foreign")
async def foreign(n: int) -> None: ...


@pytest.mark.parametrize(
    ("calls", "more", "said"),
    [
        ([], {}, "calls of a batch are empty: give at least one"),
        (send.call(1), {}, "calls must be a list of calls"),
        (5, {}, "calls must be a list of calls"),
        ([send.call(1)] * (CHILDREN_LIMIT + 1), {}, "calls of a batch are 100,001, 100,000 are allowed"),
        ([send.call(1), foreign.call(1)], {}, "calls"),
        ([send.call(1)], {"then": foreign.call(1)}, "then"),
        ([send.call(1)], {"name": "n" * 101}, "name must be 1 to 100 printable characters"),
    ],
    ids=["empty", "one call", "no calls", "too many", "of another app", "then of another app", "name"],
)
async def test_a_batch_that_cannot_be_meant_is_refused_before_anything_is_stored(
    calls: Any, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=f"^{said}"):
        await app.batch(calls, **more)
