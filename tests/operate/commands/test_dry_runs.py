"""Dry runs that a later call confirms."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import SECOND

from perdure.clock import ManualClock
from perdure.errors import ConflictError
from perdure.operate.commands.dry_runs import VALID_FOR, DryRuns
from perdure.storage.port import Store

ABOUT = {"jobs": ["a", "b"], "why": "spring"}
pytestmark = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)


async def test_a_dry_run_is_confirmed_by_the_same_call_of_the_same_actor_only(store: Store) -> None:
    runs = DryRuns(store, "ada")
    made = await runs.make("requeue", ABOUT)
    assert await runs.check(made.id, "requeue", dict(reversed(ABOUT.items()))) == made
    for actor, action, about in (
        ("bob", "requeue", ABOUT),
        ("ada", "cancel", ABOUT),
        ("ada", "requeue", {**ABOUT, "jobs": ["a"]}),
    ):
        with pytest.raises(ConflictError, match="is of another call: it holds for one actor, one action"):
            await DryRuns(store, actor).check(made.id, action, about)


async def test_a_dry_run_is_used_once(store: Store) -> None:
    made = await DryRuns(store, "ada").make("requeue", ABOUT)
    await DryRuns(store, "ada").use(made)
    with pytest.raises(ConflictError, match="was used already: make the dry run again"):
        await DryRuns(store, "ada").use(made)


async def test_a_dry_run_is_valid_for_ten_minutes(store: Store, clock: ManualClock) -> None:
    runs = DryRuns(store, "ada")
    made = await runs.make("requeue", ABOUT)
    assert abs(made.expires_at - (clock.now() + VALID_FOR)) < timedelta(seconds=1)
    clock.move(VALID_FOR - SECOND)
    await runs.check(made.id, "requeue", ABOUT)
    clock.move(SECOND)
    with pytest.raises(ConflictError, match="is older than 10m"):
        await runs.check(made.id, "requeue", ABOUT)


async def test_an_id_that_was_changed_or_made_up_is_refused(store: Store) -> None:
    runs = DryRuns(store, "ada")
    made = await runs.make("requeue", ABOUT)
    for wrong in ("", "dry-1-2-3", made.id[:-1], made.id.upper(), f"{made.id} "):
        with pytest.raises(ConflictError, match="is not the id of a dry run"):
            await runs.check(wrong, "requeue", ABOUT)
    _, at, nonce, signature = made.id.split("-")
    with pytest.raises(ConflictError, match="is of another call"):
        await runs.check(f"dry-{int(at, 16) + 60:x}-{nonce}-{signature}", "requeue", ABOUT)
